"""The processes that a group ends with: the kernel or program that started it, and others that use it."""

from __future__ import annotations

import time
from typing import Any

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.system.processes import is_same


class Owners:
    """The owners of a group. Without an owner the group outlives all processes, for its lease."""

    def __init__(self) -> None:
        self._grace_seconds = 0.0
        self._running: dict[int, int] = {}  # when each started, by pid: a reused pid is another process
        self._gone_at: float | None = None  # monotonic; set when the last one has ended
        self._last = 0  # the process that ended last

    @property
    def are_wanted(self) -> bool:
        """Whether the group ends with processes."""
        return bool(self._running) or self._gone_at is not None

    def add(self, owner: dict[str, Any]) -> None:
        """Add an owner: the group lives at least as long as this process."""
        self._running[int(owner["pid"])] = int(owner["started"])
        self._grace_seconds = float(owner["grace_seconds"])
        self._gone_at = None

    def have_changed(self) -> bool:
        """Check which owners run; return whether any has ended since the last check."""
        ended = [pid for pid, started in self._running.items() if not is_same(pid, started)]
        for pid in ended:
            del self._running[pid]
            self._last = pid
        if ended and not self._running:
            self._gone_at = time.monotonic()
        return bool(ended)

    @property
    def left_seconds(self) -> float | None:
        """Return the time until the group ends; None while an owner runs, or if it has none."""
        return None if self._gone_at is None else self._gone_at + self._grace_seconds - time.monotonic()

    def farewell(self) -> JupyterDistError:
        """Return why the group has ended."""
        message = say("It has ended with the process that it belonged to (%1).", self._last)
        return JupyterDistError("ended", message, say("JUPYTER_DIST_GRACE_SECONDS keeps groups of kernels longer."))

    def model(self) -> dict[str, Any] | None:
        """Return the EndsWith of docs/api.md."""
        if not self.are_wanted:
            return None
        left = self.left_seconds
        at = None if left is None else time.time() + left
        return {"owners": sorted(self._running), "grace_seconds": self._grace_seconds, "at": at}
