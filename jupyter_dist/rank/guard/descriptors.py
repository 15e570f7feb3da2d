"""Protects the rank's own descriptors from `os.close` and `os.closerange` in cells.

Programs close "all descriptors" by number. In a rank that includes its channel to the agent, its event loop and gloo's.
"""

from __future__ import annotations

import errno
import functools
import os
from collections.abc import Callable

from . import own

_LAST_STANDARD = 2


def protect() -> None:
    """Protect the descriptors that are open now."""
    pid = own.os.getpid()
    ours = {int(name): found for name in own.os.listdir("/proc/self/fd") if (found := _identity(int(name)))}
    for fd in range(_LAST_STANDARD + 1):
        ours.pop(fd, None)

    def is_ours(fd: int) -> bool:
        # A number that was closed may be a cell's file by now.
        return fd in ours and own.os.getpid() == pid and _identity(fd) == ours[fd]

    replaced = {
        "close": _closing(own.os.close, is_ours),
        "closerange": _closing_range(own.os.closerange, is_ours, sorted(ours)),
    }
    vars(os).update(replaced)


def _closing(close: Callable[[int], None], is_ours: Callable[[int], bool]) -> Callable[[int], None]:
    @functools.wraps(close)
    def closing(fd: int) -> None:
        if is_ours(fd):
            raise OSError(errno.EBADF, "This descriptor belongs to the rank")
        close(fd)

    return closing


def _closing_range(
    closerange: Callable[[int, int], None], is_ours: Callable[[int], bool], numbers: list[int]
) -> Callable[[int, int], None]:
    @functools.wraps(closerange)
    def closing(fd_low: int, fd_high: int, /) -> None:
        for number in numbers:
            if fd_low <= number < fd_high and is_ours(number):
                closerange(fd_low, number)
                fd_low = number + 1
        closerange(fd_low, fd_high)

    return closing


def _identity(fd: int) -> tuple[int, int] | None:
    try:
        status = own.os.fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino
