"""The pauses of Python's garbage collector."""

from __future__ import annotations

from typing import Any

from jupyter_dist.rank.guard.own import gc, time


class CollectorPauses:
    """Adds up how long collections take, from `begin` to `end`, in whichever thread they run."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._number = 0
        self._began: float | None = None

    def begin(self) -> None:
        """Count from now on."""
        if self._note not in gc.callbacks:
            gc.callbacks.append(self._note)

    def end(self) -> None:
        """Count no longer. Idempotent."""
        while self._note in gc.callbacks:
            gc.callbacks.remove(self._note)
        self._began = None

    def take(self) -> tuple[int, float]:
        """Return the number of collections since the last call, and how many seconds they took."""
        found = self._number, self._seconds
        self._number, self._seconds = 0, 0.0
        return found

    def _note(self, phase: str, _: dict[str, Any]) -> None:
        now = time.monotonic()
        if phase == "start":
            self._began = now
        elif self._began is not None:
            self._seconds += now - self._began
            self._number += 1
            self._began = None
