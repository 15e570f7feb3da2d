"""The signals on which a command ends, after the group that it started."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

ENDING = (signal.SIGTERM, signal.SIGHUP)
STATUS_BASE = 128  # of a shell, for a command that a signal has ended


class EndedBySignal(SystemExit):
    """Raised in the main thread, at any line."""


@contextmanager
def ending_on_signals() -> Iterator[None]:
    """Raise EndedBySignal on SIGTERM and SIGHUP; the second one ends the process as usual.

    A signal that is ignored, as by nohup, stays so.
    """
    before = {signum: signal.getsignal(signum) for signum in ENDING}

    def end(signum: int, _: FrameType | None) -> NoReturn:
        signal.signal(signum, signal.SIG_DFL)
        raise EndedBySignal(STATUS_BASE + signum)

    for signum, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(signum, end)
    try:
        yield
    finally:
        for signum, handler in before.items():
            if handler is not None:
                signal.signal(signum, handler)
