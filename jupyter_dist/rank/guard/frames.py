"""The frames of other threads, and of coroutines that another thread runs. Called in the side thread.

CPython 3.11 makes the object of a frame when it is asked for. This may start the garbage collector, whose callbacks and
finalizers are Python code: other threads run meanwhile, and may return from the very function whose object is being
made, which then refers to freed memory. Ranks died of it. So the collector does not start in the meantime. Versions
before make no such object, and later ones collect between instructions only.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
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
        if _COLLECTS_MEANWHILE:  # its callers are asked for when anything may run
            for frame in found.values():
                _make_callers(frame)
        return found


def of_main_thread() -> FrameType | None:
    """Return the innermost frame of the main thread."""
    return of_threads().get(threading.main_thread().ident or 0)


@contextlib.contextmanager
def being_made() -> Iterator[None]:
    """Keep the collector from starting while objects of frames are made.

    By its threshold: `gc.disable()` would stay in force if code of the user that runs meanwhile looked whether it is
    enabled, to leave it as it was.
    """
    before = thresholds()
    if not _COLLECTS_MEANWHILE or not before[0]:
        yield
        return
    _kept[:] = [before]
    gc.set_threshold(_NEVER, *before[1:])
    try:
        yield
    finally:
        if gc.get_threshold()[0] == _NEVER:  # else a cell has set another one
            gc.set_threshold(*before)


def thresholds() -> tuple[int, int, int]:
    """Return the thresholds of the collector, as they are when no frames are being made."""
    found = gc.get_threshold()
    return _kept[0] if found[0] == _NEVER and _kept else found


def _make_callers(frame: FrameType) -> None:
    """Ask for the callers of a frame once: what was made lives as long as the call."""
    caller: FrameType | None = frame
    for _ in range(_MAX_MADE):
        if caller is None:
            break
        caller = caller.f_back
