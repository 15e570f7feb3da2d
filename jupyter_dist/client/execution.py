"""A submitted cell for everybody else: what aioexecution.py does, without `await`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from .aioexecution import GAP_SECONDS, AsyncExecution
from .display import show_live
from .result import Result

if TYPE_CHECKING:
    from .group import Group

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
        """Wait for its end, showing what comes; Ctrl-C interrupts the ranks, and is raised when they have stopped."""
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
            result = self.result()
            if show is not None:
                show(result)
            raise

    def __repr__(self) -> str:
        return f"<Execution {self.id} of '{self.group.name}'>"
