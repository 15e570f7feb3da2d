"""A submitted cell: the blocking counterpart of asynchronous/execution.py."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING

from jupyter_dist.client.answers.infos import InputPromptInfo
from jupyter_dist.client.asynchronous.execution import AsyncExecution
from jupyter_dist.client.displays.interrupts import held_interrupts
from jupyter_dist.client.displays.live import Show, show_live
from jupyter_dist.client.results.result import Result
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.ranks import RankSet

from .asking import Ask
from .wrapped import BlockingExecution

if TYPE_CHECKING:
    from .group import Group

STOP_SECONDS = 2.0  # after an interrupt, how long to wait without a message


class Execution(BlockingExecution):
    """A submitted cell, similar to a future.

    Ctrl-C during `result()` ends only the wait; during `wait()` it interrupts the ranks.
    """

    def __init__(self, execution: AsyncExecution, was_interrupted: bool, group: Group, ask: Ask | None = None) -> None:
        self.group = group
        self._ask = ask
        self._asked: list[InputPromptInfo] = []
        self._warned_of: set[str] = set()
        self.was_interrupted = was_interrupted  # during the submission
        self._execution = execution
        self._loop = group.client._loop

    @property
    def model(self) -> models.ExecutionModel:
        """Return the last known state of the execution (docs/api.md, Execution)."""
        return self._execution.model

    def wait(self, stream: bool | Show = False) -> Result:
        """Wait until the cell ends, and show its output. Ctrl-C interrupts the ranks, and is raised after their stop.

        A second Ctrl-C ends the wait for ranks that do not stop.
        """
        show: Show | None = show_live() if stream is True else stream or None
        try:
            if self.was_interrupted:
                raise KeyboardInterrupt
            if show is None and self._ask is None:
                return self.result()
            for result in self.stream():
                if show is not None:
                    with held_interrupts():
                        show(result)
                else:
                    self._warn_of(result.notices)
                self._answer_questions(result)
            if show is None:
                return result
            result.was_streamed, result.is_shown = True, stream is True
            return result
        except KeyboardInterrupt:
            self.cancel()
            result = self._wait_for_stop()
            if show is not None:
                with held_interrupts():
                    show(result)
            raise

    def _warn_of(self, notices: list[str]) -> None:
        for notice in notices:
            if notice not in self._warned_of:
                self._warned_of.add(notice)
                warnings.warn(f"Group '{self.group.name}': {notice}", RuntimeWarning, stacklevel=3)

    def _answer_questions(self, result: Result) -> None:
        """Ask for the answer to the first question, once the ranks that ask the same have had time to do so."""
        asked, self._asked = self._asked, result.asking
        if self._ask is None or not asked or asked != result.asking:
            return
        question = asked[0]
        try:
            self.answer(self._ask(question), question.ranks, question.seq)
        except JupyterDistError as err:
            if err.code not in ("not_asking", "rank_dead"):
                raise
            sys.stderr.write(f"{err}\n")
        self._asked = []

    def _wait_for_stop(self) -> Result:
        """Wait until interrupted ranks have stopped; print which have not, and how to stop waiting."""
        try:
            return self.result(STOP_SECONDS)
        except TimeoutError:
            running = [rank for rank, found in self.peek().items() if found.status == "running"]
        if running:  # otherwise the cell has just ended
            who = f"Rank {running[0]} has" if len(running) == 1 else f"Ranks {RankSet(running)} have"
            kill = f"group.kill({running[0]}) kills a rank that cannot be interrupted; the others keep their variables."
            sys.stderr.write(f"{who} not stopped yet. Interrupt again to stop waiting. {kill}\n")
        return self.result()

    def __repr__(self) -> str:
        return f"<Execution {self.id} of '{self.group.name}'>"
