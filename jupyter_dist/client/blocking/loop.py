"""An event loop in its own thread, for programs without one, and for kernels whose loop is busy with the cell."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class _Call(Generic[T]):
    """A coroutine that runs in the loop's thread while the caller waits for it.

    A caller may be interrupted at any instruction. It shares no lock with the loop's thread: an interrupted
    `concurrent.futures.Future.result()` can keep its lock, for which the loop would then wait forever, or release a
    lock that it does not hold (RuntimeError in place of KeyboardInterrupt). `SimpleQueue.get()` is one step.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> None:
        self._coroutine = coroutine
        self._loop = loop
        self._task: asyncio.Task[T] | None = None
        self._ended: SimpleQueue[object] = SimpleQueue()
        loop.call_soon_threadsafe(self._start)

    def _start(self) -> None:
        self._task = self._loop.create_task(self._coroutine)
        self._task.add_done_callback(self._ended.put)

    def result(self) -> T:
        """Wait for the end of the coroutine; return what it returned, or raise what it raised.

        May be called again after an interrupt, also after one that came when the wait was just over.
        """
        if self._task is None or not self._task.done():
            self._ended.get()
        assert self._task is not None
        return self._task.result()

    def cancel(self) -> None:
        """Cancel it; no effect if it has ended."""
        self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()


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
        call = _Call(coroutine, self._loop)
        try:
            return call.result()
        except BaseException:
            call.cancel()
            raise

    def run_through(self, coroutine: Coroutine[Any, Any, T]) -> tuple[T, bool]:
        """Run a coroutine to its end although the caller is interrupted; return whether it was. Twice ends it."""
        call = _Call(coroutine, self._loop)
        try:
            try:
                return call.result(), False
            except KeyboardInterrupt:
                return call.result(), True
        except BaseException:
            call.cancel()
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
