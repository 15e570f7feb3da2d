"""Waits for a change of a group, with a deadline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


class Changes:
    """Wakes tasks that wait for a condition."""

    def __init__(self) -> None:
        self._waiters: set[asyncio.Future[None]] = set()

    def wake(self) -> None:
        """Make all waiting tasks check their condition."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait_until(self, is_so: Callable[[], bool], seconds: float) -> bool:
        """Wait until the condition holds, at most this long; return whether it does."""
        deadline = time.monotonic() + seconds
        while not is_so():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.add(waiter)
            try:
                await asyncio.wait_for(waiter, left)
            except asyncio.TimeoutError:
                return is_so()
            finally:
                self._waiters.discard(waiter)
        return True
