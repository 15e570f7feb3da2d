"""The frames of other threads, and of coroutines that another thread runs. Called in the side thread.

CPython 3.11 makes the object of a frame when it is asked for. This may start the garbage collector, whose callbacks and
finalizers are Python code: other threads run meanwhile, and may return from the very function whose object is being
made, which then refers to freed memory. Ranks died of it. So the collector does not start in the meantime. Versions
before make no such object, and later ones collect between instructions only.
"""

from __future__ import annotations

import sys
from types import FrameType

from .own import gc, threading

_NEVER = 1 << 30
_MAX_MADE = 2000  # of a recursion
_COLLECTS_MEANWHILE = sys.version_info[:2] == (3, 11)
_kept: list[tuple[int, int, int]] = []


def of_threads() -> dict[int, FrameType]:
    """Return the innermost frame of each thread, by the identifier of the thread."""
    with being_made():
        found = sys._current_frames()
        for frame in found.values():
            _make_callers(frame)
        return found


def of_main_thread() -> FrameType | None:
    """Return the innermost frame of the main thread."""
    with being_made():
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        _make_callers(frame)
        return frame


class being_made:  # noqa: N801 - read as a statement; a generator would cost more than a look at a stack
    """Keep the collector from starting while objects of frames are made.

    By its threshold: `gc.disable()` would stay in force if code of the user that runs meanwhile looked whether it is
    enabled, to leave it as it was.
    """

    def __enter__(self) -> None:
        before = thresholds()
        self._is_held = _COLLECTS_MEANWHILE and before[0] > 0
        if self._is_held:
            _kept[:] = [before]
            gc.set_threshold(_NEVER, before[1], before[2])

    def __exit__(self, *_: object) -> None:
        if self._is_held and gc.get_threshold()[0] == _NEVER:  # else a cell has set another one
            gc.set_threshold(*_kept[0])


def thresholds() -> tuple[int, int, int]:
    """Return the thresholds of the collector, as they are when no frames are being made."""
    found = gc.get_threshold()
    return _kept[0] if found[0] == _NEVER and _kept else found


def _make_callers(frame: FrameType | None) -> None:
    """Ask for the callers of a frame once: what was made lives as long as the call."""
    left = _MAX_MADE if _COLLECTS_MEANWHILE else 0
    while left and frame is not None:
        frame = frame.f_back
        left -= 1
