"""A submitted cell for everybody else: what aioexecution.py does, without `await`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from jupyter_dist.client.asynchronous.execution import GAP_SECONDS, AsyncExecution
from jupyter_dist.client.results.display import show_live
from jupyter_dist.client.results.result import Result
from jupyter_dist.protocol.ranks import format_ranks

if TYPE_CHECKING:
    from .group import Group

STOP_SECONDS = 2.0  # after an interrupt, so long in silence

Show = Callable[[Result], None]


class Execution:
    """A cell that was submitted: a future."""

    def __init__(self, execution: AsyncExecution, group: Group) -> None:
        self.group = group
        self._execution = execution
        self._loop = group.client._loop

    @property
    def id(self) -> str:
        """The execution's id."""
        return self._execution.id

    def done(self) -> bool:
        """Whether it has ended."""
        return self._loop.run(self._execution.done())

    def peek(self) -> Result:
        """What is there now."""
        return self._loop.run(self._execution.peek())

    def result(self, timeout_seconds: float | None = None) -> Result:
        """Wait for its end; Ctrl-C ends the wait alone. Raises TimeoutError."""
        return self._loop.run(self._execution.result(timeout_seconds))

    def stream(self, gap_seconds: float = GAP_SECONDS) -> Iterator[Result]:
        """What is there so far, at most once in `gap_seconds`; the last one is `done`."""
        return self._loop.iterate(self._execution.stream(gap_seconds))

    def cancel(self) -> None:
        """Take it from the queue, or interrupt it; the ranks keep their variables."""
        self._loop.run(self._execution.cancel())

    def wait(self, stream: bool | Show = False) -> Result:
        """Wait for its end, showing what comes; Ctrl-C interrupts the ranks, and is raised when they have stopped.

        A second Ctrl-C ends the wait for ranks that do not stop.
        """
        show: Show | None = show_live() if stream is True else stream or None
        try:
            if show is None:
                return self.result()
            for result in self.stream():
                show(result)
            result.was_streamed, result.is_shown = True, stream is True
            return result
        except KeyboardInterrupt:
            self.cancel()
            result = self._wait_for_stop()
            if show is not None:
                show(result)
            raise

    def _wait_for_stop(self) -> Result:
        """Wait until interrupted ranks have stopped; say which have not, and how to stop waiting for them."""
        try:
            return self.result(STOP_SECONDS)
        except TimeoutError:
            running = [rank for rank, found in self.peek().items() if found.status == "running"]
        if running:  # else it has ended in this moment
            who = f"Rank {running[0]} has" if len(running) == 1 else f"Ranks {format_ranks(running)} have"
            kill = f"group.kill({running[0]}) ends a rank that nothing else stops; the others keep their variables."
            sys.stderr.write(f"{who} not stopped yet. Interrupt once more to stop waiting. {kill}\n")
        return self.result()

    def __repr__(self) -> str:
        return f"<Execution {self.id} of '{self.group.name}'>"
