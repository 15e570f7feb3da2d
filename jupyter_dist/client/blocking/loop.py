"""An event loop in its own thread, for programs without one, and for kernels whose loop is busy with the cell."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs coroutines; the caller waits, and can be interrupted meanwhile."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        # A daemon thread, so that a program ends even if it does not close its client.
        self._thread = threading.Thread(target=self._loop.run_forever, name="jupyter_dist", daemon=True)
        self._thread.start()

    @property
    def is_closed(self) -> bool:
        """Whether it is closed."""
        return self._loop.is_closed()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine until it ends; it is cancelled if the caller is interrupted."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # no effect if it has ended
            raise

    def run_through(self, coroutine: Coroutine[Any, Any, T]) -> tuple[T, bool]:
        """Run a coroutine to its end although the caller is interrupted; return whether it was. Twice ends it."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            try:
                return future.result(), False
            except KeyboardInterrupt:
                return future.result(), True
        except BaseException:
            future.cancel()
            raise

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """Iterate over an asynchronous iterator."""
        while True:
            try:
                yield self.run(_next(items))
            except StopAsyncIteration:
                return

    def close(self) -> None:
        """Stop the loop and its thread. Idempotent."""
        if not self.is_closed:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


async def _next(items: AsyncIterator[T]) -> T:
    return await items.__anext__()
