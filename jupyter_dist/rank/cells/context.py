"""The context variables of cells: one context for all of them, as in any kernel.

Settings of torch.compile, numpy and decimal are context variables. asyncio runs each callback and each task in a copy
of its creator's context, so that the settings of a cell would be lost in the next cell.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from contextvars import Context
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")

INTERRUPTIBLE = True  # a cell that awaits runs below these functions on the stack


class StepsInContext(Generic[T]):
    """Awaits a coroutine whose steps run in `context` itself, which is left while the coroutine waits.

    `create_task(context=...)` does the same from Python 3.11 on.
    """

    def __init__(self, context: Context, coroutine: Coroutine[Any, Any, T]) -> None:
        self._context = context
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, T]:
        step = partial(self._coroutine.send, None)
        while True:
            try:
                waits_for = self._context.run(step)
            except StopIteration as stop:
                result: T = stop.value
                return result
            try:
                step = partial(self._coroutine.send, (yield waits_for))
            except BaseException as err:  # cancelled: for the cell's code
                step = partial(self._coroutine.throw, err)


async def run_in(context: Context, coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in this context; return its result, or raise its exception."""
    return await StepsInContext(context, coroutine)
