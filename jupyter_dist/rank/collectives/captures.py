"""Captures of graphs on devices (CUDA graphs): whether the main thread is in one.

During a capture, a call of another thread that queries the device may end the capture with an error, as reading the
list of waiting collectives does (seen on an H200: `StreamCaptureInvalidated`). So such calls are left out meanwhile.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from jupyter_dist.rank.guard.own import threading

_LOCK_SECONDS = 1.0  # a call of the driver that hangs must not block other threads
_lock = threading.Lock()
_number = 0
_has_captured = False


def watch(graphs: Any) -> None:
    """Count the captures that this class of graphs begins and ends."""
    if callable(getattr(graphs, "capture_begin", None)) and callable(getattr(graphs, "capture_end", None)):
        graphs.capture_begin = _counted(graphs.capture_begin)
        graphs.capture_end = _uncounted(graphs.capture_end)


def has_captured() -> bool:
    """Whether a capture has begun in this process: its graph has the addresses of tensors."""
    return _has_captured


@contextlib.contextmanager
def none_meanwhile(of_interest: bool = True) -> Iterator[bool]:
    """Yield whether no capture is on; none begins until the block ends."""
    if not of_interest:
        yield True
        return
    has_lock = _lock.acquire(timeout=_LOCK_SECONDS)
    try:
        yield has_lock and _number == 0
    finally:
        if has_lock:
            _lock.release()


def _count(difference: int) -> None:
    global _number, _has_captured  # noqa: PLW0603 (a process has one capture at a time, rarely more)
    has_lock = _lock.acquire(timeout=_LOCK_SECONDS)
    _number = max(0, _number + difference)
    _has_captured = _has_captured or difference > 0
    if has_lock:
        _lock.release()


def _counted(begin: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(begin)
    def begin_capture(*arguments: Any, **options: Any) -> Any:
        _count(1)
        try:
            return begin(*arguments, **options)
        except BaseException:
            _count(-1)
            raise

    return begin_capture


def _uncounted(end: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(end)
    def end_capture(*arguments: Any, **options: Any) -> Any:
        try:
            return end(*arguments, **options)
        finally:
            _count(-1)

    return end_capture
