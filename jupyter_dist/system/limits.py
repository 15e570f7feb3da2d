"""Time limits on what an event loop waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def within(seconds: float | None, awaited: Awaitable[T]) -> T:
    """Return the result of `awaited`, or cancel it after this time.

    Use it in place of `asyncio.wait_for`, which loses a cancellation that comes in the same turn of the loop as the
    result (before Python 3.12): the cancelled task continues, and a wait for its end never returns.

    Raises:
        asyncio.TimeoutError: there was no result in this time.
        asyncio.CancelledError: the caller was cancelled, whether there is a result or not.
    """
    future = asyncio.ensure_future(awaited)
    try:
        done, _ = await asyncio.wait((future,), timeout=seconds)
        if not done:
            raise asyncio.TimeoutError
        return future.result()
    finally:
        if not future.done():
            future.cancel()
            await asyncio.wait((future,))  # it cleans up
        if not future.cancelled():
            future.exception()  # if the caller was cancelled, it is retrieved only here
