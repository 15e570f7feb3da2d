"""Background tasks whose failures are logged and reported to their owner."""

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
