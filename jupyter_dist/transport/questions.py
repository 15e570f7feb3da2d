"""Asking a peer with a number and waiting for the answer that has it: the same on every connection of an event loop."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Generic, TypeVar

from jupyter_dist.system.limits import within

A = TypeVar("A")


class Questions(Generic[A]):
    """The open questions to a peer; each ends with an answer, a time limit, or the peer."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[asyncio.Future[A], Callable[[A], None] | None]] = {}
        self._numbers = itertools.count(1)

    async def ask(
        self, send: Callable[[int], None], timeout_seconds: float, take: Callable[[A], None] | None = None
    ) -> A:
        """Send a question with its number, and return the answer; `take` gets it in order with other messages.

        Raises:
            asyncio.TimeoutError: there was no answer in this time; a later answer is dropped.
            Exception: raised by `send` or `take`, or passed to `refuse` or `fail`.
        """
        number = next(self._numbers)
        answer: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self._open[number] = answer, take
        try:
            send(number)
            return await within(timeout_seconds, answer)
        finally:
            del self._open[number]

    def answer(self, number: object, answer: A) -> None:
        """Deliver an answer; it is dropped if its question no longer waits."""
        waiting, take = self._waiting(number)
        if waiting is None:
            return
        try:
            if take is not None:
                take(answer)
            waiting.set_result(answer)
        except Exception as err:  # the outermost level of the reader: the caller gets the error, and reading continues
            waiting.set_exception(err)

    def refuse(self, number: object, error: Exception) -> None:
        """End a question with an error."""
        waiting, _ = self._waiting(number)
        if waiting is not None:
            waiting.set_exception(error)

    def fail(self, make_error: Callable[[], Exception]) -> None:
        """End all open questions with an error each, because the peer is gone."""
        for number in list(self._open):
            self.refuse(number, make_error())

    def _waiting(self, number: object) -> tuple[asyncio.Future[A] | None, Callable[[A], None] | None]:
        waiting, take = self._open.get(number, (None, None)) if isinstance(number, int) else (None, None)
        return (None, None) if waiting is None or waiting.done() else (waiting, take)
