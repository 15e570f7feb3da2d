"""Background tasks whose failures are logged and reported to their owner, and timers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

log = logging.getLogger(__name__)


def start_task(
    work: Coroutine[Any, Any, None], name: str, on_failure: Callable[[BaseException], None] | None = None
) -> asyncio.Task[None]:
    """Start a background task; the caller keeps it and cancels it eventually.

    `on_failure` gets the exception that ended the task.
    """
    task = asyncio.create_task(work, name=name)

    def ended(task: asyncio.Task[None]) -> None:
        if task.cancelled() or (error := task.exception()) is None:
            return
        log.error("The task '%s' failed", name, exc_info=error)
        if on_failure is not None:
            on_failure(error)

    task.add_done_callback(ended)
    return task


def call_within(timer: asyncio.TimerHandle | None, seconds: float, function: Callable[[], None]) -> asyncio.TimerHandle:
    """Return the timer if it is due within this time, else a new one in its place that calls the function then."""
    loop = asyncio.get_running_loop()
    if timer is not None:
        if timer.when() <= loop.time() + seconds:
            return timer
        timer.cancel()
    return loop.call_later(seconds, function)
