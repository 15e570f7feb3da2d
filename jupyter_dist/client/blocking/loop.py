"""An event loop in a thread of its own, for programs that have none, and kernels whose loop waits for the cell."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs coroutines; the caller waits, and can be interrupted while it does."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        # A daemon: a program that forgets to close its client ends all the same.
        self._thread = threading.Thread(target=self._loop.run_forever, name="jupyter_dist", daemon=True)
        self._thread.start()

    @property
    def is_closed(self) -> bool:
        """Whether it can run nothing any more."""
        return self._loop.is_closed()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end; it is cancelled when the caller is interrupted."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # nothing, unless it still runs
            raise

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """Iterate over what comes."""
        while True:
            try:
                yield self.run(_next(items))
            except StopAsyncIteration:
                return

    def close(self) -> None:
        """Stop; nothing runs on it any more. Idempotent."""
        if not self.is_closed:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


async def _next(items: AsyncIterator[T]) -> T:
    return await items.__anext__()
