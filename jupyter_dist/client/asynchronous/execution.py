"""A submitted cell, for asyncio programs."""

from __future__ import annotations

import asyncio
import contextlib
import time
import warnings
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from jupyter_dist.client.answers.infos import InputAnsweredInfo
from jupyter_dist.client.connection.feeds import ExecutionFeed
from jupyter_dist.client.connection.http import SilentServerError
from jupyter_dist.client.results.result import Result
from jupyter_dist.protocol.errors import TimedOutError
from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.states import FINAL_EXECUTION_STATES
from jupyter_dist.system.limits import within

from .plain import PlainAsyncExecution

if TYPE_CHECKING:
    from .group import AsyncGroup

POLL_SECONDS = 30
# How often streamed output is delivered.
GAP_SECONDS = 0.25
# How long a cell without output is not shown at all.
SHORT_SECONDS = 0.05

_WAIT_OR_CANCEL = "Wait again with result(), or stop it with cancel()."


class AsyncExecution(PlainAsyncExecution):
    """A submitted cell, similar to a future."""

    def __init__(self, group: AsyncGroup, model: models.ExecutionModel, feed: ExecutionFeed | None = None) -> None:
        self.group = group
        self.model = model
        self._feed = feed  # if the cell is followed since its submission
        self._known_notices = group.notices  # shown for earlier cells, and still true

    @property
    def id(self) -> str:
        """Return the id of the execution."""
        return str(self.model["id"])

    async def peek(self, wait_seconds: float = 0) -> Result:
        """Return the result so far, or the final one if it ends within that time."""
        path = ("groups", self.group.id, "executions", self.id)
        view = await self.group.client.api.ask("GET", *path, params={"wait": wait_seconds})
        self.model = view["execution"]
        return Result(self.group.model, self.model, view["items"])

    async def done(self) -> bool:
        """Whether the execution has ended."""
        return self.model["state"] in FINAL_EXECUTION_STATES or (await self.peek()).done

    async def result(self, timeout_seconds: float | None = None) -> Result:
        """Wait until the cell ends and return the result.

        Raises:
            TimedOutError: the cell is still running; wait again, or cancel it. The error is a TimeoutError, too.
            JupyterDistError: `server_gone`, if the server does not answer; `cancelled`, if the client is closed.
        """
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        if (feed := self._feed) is not None:
            feed.on_notices = self._warn
            self._warn(feed.execution.get("notices"))
            with contextlib.suppress(asyncio.TimeoutError):
                await within(timeout_seconds, feed.over.wait())
            if feed.ended:
                return self._result_of(feed)
            if isinstance(feed.error, SilentServerError):
                self._feed = None  # the next call asks the server
                raise feed.error
        while True:
            left = POLL_SECONDS if deadline is None else min(POLL_SECONDS, deadline - time.monotonic())
            result = await self.peek(max(0.0, left))
            if result.done:
                return result
            if deadline is not None and time.monotonic() >= deadline:
                raise TimedOutError(f"Execution {self.id} is still {result.state}.", _WAIT_OR_CANCEL)

    async def stream(self, gap_seconds: float = GAP_SECONDS) -> AsyncIterator[Result]:
        """Yield the result so far, at most once per `gap_seconds`; the last one is `done`.

        If nothing new arrives for that time, the same result is yielded again, as complete for now.
        """
        if self._feed is not None and self._feed.ended:
            yield self._result_of(self._feed)
            return
        feed, self._feed = self._feed or ExecutionFeed(self.group.id, self.model), None
        async with self.group.client.channel.following(feed):
            await _first(feed)
            while True:
                await feed.wait()
                result = self._result_of(feed)
                yield result
                if result.done:
                    return
                await _pause(feed, gap_seconds)
                if not feed.changed.is_set():
                    yield result

    async def answer(self, text: str | None, ranks: str | None = None, seq: int | None = None) -> InputAnsweredInfo:
        """Answer the question of ranks (`Result.asking`). Only a cell submitted with `allow_stdin=True` may ask.

        Args:
            text: A line; None is the end of input: the rank's code gets an EOFError.
            ranks: A rank expression; by default all ranks that ask, if they ask the same.
            seq: The number of the question: a question that comes later is not answered.

        Raises:
            JupyterDistError: `not_asking`, if the question has been answered; `rank_dead`, ...
        """
        body = {"text": text, **({} if ranks is None else {"ranks": ranks}), **({} if seq is None else {"seq": seq})}
        path = ("groups", self.group.id, "executions", self.id, "input")
        return InputAnsweredInfo(await self.group.client.api.ask("POST", *path, body=body))

    def _result_of(self, feed: ExecutionFeed) -> Result:
        self.model = feed.execution
        result = Result(self.group.model, feed.execution, list(feed.view.items))
        result.notices = self._new_notices(feed.execution.get("notices"))
        return result

    def _new_notices(self, notices: list[str] | None) -> list[str]:
        """Return the notices that were not shown for an earlier cell."""
        if notices is None:  # the answer to the submission, or a group on one machine
            return []
        self._known_notices = [notice for notice in self._known_notices if notice in notices]
        self.group.notices = notices
        return [notice for notice in notices if notice not in self._known_notices]

    def _warn(self, notices: list[str] | None) -> None:
        """Warn at once, because results before the last one may not be shown."""
        for notice in self._new_notices(notices):
            warnings.warn(f"Group '{self.group.name}': {notice}", RuntimeWarning, stacklevel=2)

    async def extend(self, ranks: str = "all") -> None:
        """Run the cell, as it was submitted, on more ranks while it runs, if a collective in it waits for them.

        Ranks that already have the cell are skipped. `verdict["could_join"]` of a cell that cannot end names ranks.
        """
        path = ("groups", self.group.id, "executions", self.id, "extend")
        self.model = await self.group.client.api.ask("POST", *path, body={"ranks": ranks})

    async def cancel(self) -> None:
        """Remove the cell from the queue, or interrupt it; the ranks keep their variables."""
        await self.group.client.api.ask("DELETE", "groups", self.group.id, "executions", self.id)


async def _first(feed: ExecutionFeed) -> None:
    """Wait a moment for output or the end: most cells are short, and need not be shown as running."""
    deadline = time.monotonic() + SHORT_SECONDS
    while not (feed.over.is_set() or feed.view.items) and (left := deadline - time.monotonic()) > 0:
        feed.changed.clear()
        with contextlib.suppress(asyncio.TimeoutError):
            await within(left, feed.changed.wait())
    feed.changed.set()


async def _pause(feed: ExecutionFeed, seconds: float) -> None:
    """Wait to batch changes, but not for the end."""
    with contextlib.suppress(asyncio.TimeoutError):
        await within(seconds, feed.over.wait())
