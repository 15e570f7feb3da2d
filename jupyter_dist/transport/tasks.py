"""Tasks that nobody awaits: one that fails is logged, and its owner told, instead of being silently missed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

log = logging.getLogger(__name__)


def start_task(
    work: Coroutine[Any, Any, None], name: str, on_failure: Callable[[BaseException], None] | None = None
) -> asyncio.Task[None]:
    """Run in the background; the caller keeps the task and cancels it in the end.

    `on_failure` gets the exception that ended it: what the task did for its owner is not done any more.
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
