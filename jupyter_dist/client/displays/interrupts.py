"""Ctrl-C at a bad time."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


@contextlib.contextmanager
def held_interrupts() -> Iterator[None]:
    """Handle a Ctrl-C that is pressed within the block at its end, but a second one at once.

    For functions that show output: interrupted half way, they would lose output, or show it twice. Signals come to the
    main thread only; elsewhere this does nothing.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    was_pressed = False

    def press(number: int, frame: FrameType | None) -> None:
        nonlocal was_pressed
        if was_pressed:
            handler(number, frame)
        was_pressed = True

    signal.signal(signal.SIGINT, press)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if was_pressed:
            handler(signal.SIGINT, None)
