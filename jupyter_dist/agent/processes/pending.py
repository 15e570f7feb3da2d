"""Requests that a rank has not answered yet."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.transport.frames import Header


class Pending:
    """Pending requests by number. Each ends with an answer, a timeout, or the death of the rank."""

    def __init__(self) -> None:
        self._answers: dict[int, asyncio.Future[Header]] = {}
        self._numbers = itertools.count(1)

    async def ask(self, send: Callable[[int], None], timeout_seconds: float) -> Header:
        """Send a request with its number and return the answer. Raises asyncio.TimeoutError."""
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        try:
            send(number)
            return await asyncio.wait_for(answer, timeout_seconds)
        finally:
            del self._answers[number]

    def answered(self, answer: Header) -> None:
        """Deliver an answer; one that is no longer awaited is dropped."""
        waiting = self._answers.get(answer["id"])
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    def fail(self, error: JupyterDistError) -> None:
        """Fail all open requests with this error."""
        for waiting in self._answers.values():
            if not waiting.done():
                waiting.set_result({"ok": False, "error": error.to_dict()})
