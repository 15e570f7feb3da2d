"""Runs the signal handlers of cells in the cells' code, never in ours.

A handler that raises, as a time limit by `signal.alarm` does, would leave a lock of ours held, or send text twice.
A mask does not prevent that: another thread takes the signal, and Python still calls the handler in the main thread.
"""

from __future__ import annotations

import functools
import signal
from collections import deque
from collections.abc import Callable
from types import FrameType
from typing import Any

from . import own, usercode


class Handlers:
    """Holds back a handler whose signal arrives in our code, until the main thread is back in the cell's."""

    def __init__(
        self, ours: Callable[..., None], may_run: Callable[[FrameType | None], bool], wake: Callable[[], None]
    ) -> None:
        """Replace nothing yet.

        Args:
            ours: the handler of SIGINT, which takes care of itself.
            may_run: whether a handler may run, and raise, in that frame of the main thread.
            wake: has the side thread notice that a handler waits, if its signal arrived between cells.
        """
        self._ours = ours
        self._may_run = may_run
        self._wake = wake
        self._pid = own.os.getpid()
        self.waiting: deque[int] = deque()  # signals; only the main thread changes the queue
        self.held_at = 0.0  # when the first of them arrived

    def install(self) -> None:
        """Replace `signal.signal` and `signal.getsignal`; both still take and return the cell's own handlers."""

        @functools.wraps(own.signal.signal)
        def set_handler(signalnum: int, handler: Any) -> Any:
            wraps = callable(handler) and handler != self._ours
            return _unwrapped(own.signal.signal(signalnum, _Guarded(handler, self) if wraps else handler))

        @functools.wraps(own.signal.getsignal)
        def get_handler(signalnum: int) -> Any:
            return self.of(signalnum)

        vars(signal).update(signal=set_handler, getsignal=get_handler)

    @staticmethod
    def of(signalnum: int) -> Any:
        """Return the handler that the cell, or we, have set."""
        return _unwrapped(own.signal.getsignal(signalnum))

    def call(self, handler: Callable[..., Any], signum: int, frame: FrameType | None) -> None:
        """Call a handler now, or hold it back."""
        # A forked child has no side thread that would remind it.
        if self._in_child() or self._may_run(frame):
            if signum in self.waiting:  # as the kernel does: a signal that waits comes once
                self.waiting.remove(signum)
            usercode.call(handler, signum, frame)
        elif signum not in self.waiting:
            if not self.waiting:
                self.held_at = own.time.monotonic()
            self.waiting.append(signum)
            self._wake()

    def run(self, frame: FrameType) -> None:
        """Run the handlers that were held back (main thread, in the cell's code); their exceptions pass through."""
        if self._in_child():  # handlers that waited in the rank are for the rank
            self.waiting.clear()
        while self.waiting:
            signum = self.waiting.popleft()
            handler = own.signal.getsignal(signum)
            if isinstance(handler, _Guarded):  # else the cell has taken it back
                usercode.call(handler.handler, signum, frame)

    def _in_child(self) -> bool:
        return own.os.getpid() != self._pid


class _Guarded:
    """The handler that Python calls instead of the cell's handler."""

    def __init__(self, handler: Callable[..., Any], handlers: Handlers) -> None:
        self.handler = handler
        self._handlers = handlers

    def __call__(self, signum: int, frame: FrameType | None) -> None:
        self._handlers.call(self.handler, signum, frame)


def _unwrapped(handler: Any) -> Any:
    return handler.handler if isinstance(handler, _Guarded) else handler
