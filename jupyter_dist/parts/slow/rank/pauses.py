"""The pauses of Python's garbage collector."""

from __future__ import annotations

import sys
from collections import defaultdict
from typing import Any

from jupyter_dist.rank.guard.own import gc, time

from .stacks import Line, users_line

PLACED_SECONDS = 0.002  # of collections that are noted for a line at once: to find it takes some microseconds


class CollectorPauses:
    """Adds up how long collections take, from `begin` to `end`, in whichever thread they run."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._number = 0
        self._began: float | None = None
        # Seconds, by the user's line that has made the objects.
        self._lines: defaultdict[Line | None, float] = defaultdict(float)
        self._unplaced = 0.0

    def begin(self) -> None:
        """Count from now on."""
        if self._note not in gc.callbacks:
            gc.callbacks.append(self._note)

    def end(self) -> None:
        """Count no longer. Idempotent."""
        while self._note in gc.callbacks:
            gc.callbacks.remove(self._note)
        self._began = None

    def take(self) -> tuple[int, float, Line | None]:
        """Return the number of collections since the last call, their seconds, and the line that took most of them."""
        lines, self._lines = self._lines, defaultdict(float)
        line = max(lines, key=lines.__getitem__, default=None)
        found = self._number, self._seconds, line if lines[line] > self._seconds / 2 else None
        self._number, self._seconds = 0, 0.0
        return found

    def _note(self, phase: str, _: dict[str, Any]) -> None:
        now = time.monotonic()
        if phase == "start":
            self._began = now
        elif self._began is not None:
            self._seconds += now - self._began
            self._unplaced += now - self._began
            self._number += 1
            self._began = None
            if self._unplaced > PLACED_SECONDS:
                self._lines[users_line(sys._getframe(1))] += self._unplaced
                self._unplaced = 0.0
