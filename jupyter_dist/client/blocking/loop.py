"""An event loop in its own thread, for programs without one, and for kernels whose loop is busy with the cell."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from jupyter_dist.client.connection.http import client_closed
from jupyter_dist.protocol.errors import JupyterDistError

STOP_SECONDS = 1.0  # how long cancelled coroutines may clean up

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
        self._is_given_up = False
        self._ended: SimpleQueue[object] = SimpleQueue()

    def start(self, when_ended: Callable[[_Call[T]], None]) -> None:
        """Run the coroutine; called in the loop's thread."""
        self._task = self._loop.create_task(self._coroutine)
        self._task.add_done_callback(lambda _: when_ended(self))
        self._task.add_done_callback(self._ended.put)

    def result(self) -> T:
        """Wait for the end of the coroutine; return its result, or raise its error.

        May be called again after an interrupt, even if the interrupt came when the wait was just over.

        Raises:
            JupyterDistError: `cancelled`, if the loop was closed meanwhile.
        """
        if not self._is_given_up and (self._task is None or not self._task.done()):
            self._ended.get()
        if self._task is None or not self._task.done() or self._task.cancelled():
            raise client_closed()
        return self._task.result()

    def cancel(self) -> None:
        """Cancel the coroutine; no effect if it has ended."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def give_up(self) -> None:
        """End the wait: the loop was closed before it had started or ended the coroutine."""
        if self._task is None:
            self._coroutine.close()
        self._is_given_up = True
        self._ended.put(None)


class LoopThread:
    """Runs coroutines; the caller waits, and can be interrupted meanwhile."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._calls: set[_Call[Any]] = set()
        self._is_closing = False  # used by the loop's thread
        # A daemon thread, so that a program ends even if it does not close its client.
        self._thread = threading.Thread(target=self._loop.run_forever, name="jupyter_dist", daemon=True)
        self._thread.start()

    @property
    def is_closed(self) -> bool:
        """Whether the loop is closed; always true in a forked child, because the thread belongs to its parent."""
        return self._loop.is_closed() or self._pid != os.getpid()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine until it ends; it is cancelled if the caller is interrupted.

        Raises:
            JupyterDistError: `cancelled`, if this is closed, also meanwhile; `bad_request` in a forked child.
        """
        call = self._begun(coroutine)
        try:
            return call.result()
        except BaseException:
            call.cancel()
            raise

    def run_through(self, coroutine: Coroutine[Any, Any, T]) -> tuple[T, bool]:
        """Run a coroutine to its end although the caller is interrupted; return whether it was. Twice ends it.

        Raises like `run`.
        """
        call = self._begun(coroutine)
        try:
            try:
                return call.result(), False
            except KeyboardInterrupt:
                return call.result(), True
        except BaseException:
            call.cancel()
            raise

    def _begun(self, coroutine: Coroutine[Any, Any, T]) -> _Call[T]:
        if self._pid != os.getpid():
            coroutine.close()
            message = f"This client belongs to process {self._pid}, which has forked this one."
            raise JupyterDistError("bad_request", message, "connect() and attach() in this process.")
        call = _Call(coroutine, self._loop)
        self._calls.add(call)
        try:
            self._loop.call_soon_threadsafe(self._start, call)
        except RuntimeError:  # the loop is closed
            call.give_up()
        return call

    def _start(self, call: _Call[Any]) -> None:
        if self._is_closing:
            call.give_up()
        else:
            call.start(self._calls.discard)

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """Iterate over an asynchronous iterator."""
        while True:
            try:
                yield self.run(_next(items))
            except StopAsyncIteration:
                return

    def close(self) -> None:
        """Stop the loop and its thread; pending calls raise `cancelled`. Idempotent."""
        if not self.is_closed:
            self._loop.call_soon_threadsafe(self._begin_stop)
            self._thread.join()
            self._loop.close()
            while self._calls:
                self._calls.pop().give_up()

    def _begin_stop(self) -> None:
        self._is_closing = True
        self._stopping = self._loop.create_task(self._stop())

    async def _stop(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=STOP_SECONDS)
        self._loop.stop()


async def _next(items: AsyncIterator[T]) -> T:
    return await items.__anext__()
