"""Checks of a group: what the ranks of a cell have seen, put side by side and judged."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from jupyter_dist.agent.contact.server_link import Answer, RequestHandler, answer
from jupyter_dist.agent.group.cells.execution import AgentExecution
from jupyter_dist.agent.part import AgentCore, AgentPart
from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.transport.frames import Header
from jupyter_dist.transport.rows import read, read_several
from jupyter_dist.transport.tasks import start_task

from .judging.judge import judge
from .judging.seen import Seen
from .options import ChecksOptions
from .reports import CallFact, EndedSteps, Pass, StepLook

if TYPE_CHECKING:
    from jupyter_dist.parts.checks import models

ANSWER_SECONDS = 5.0
MODEL_SECONDS = 30.0  # of one question about a model
JUDGE_SECONDS = 0.1  # after a report, so that the reports of all ranks are judged together
MAX_CELLS = 4  # that are judged at a time


class CheckedCell:
    """The reports of a running cell, and its checks."""

    def __init__(self, execution: AgentExecution) -> None:
        self.execution = execution
        self.seen = Seen()
        self.since: dict[tuple[str, str], tuple[float, int | None]] = {}  # by check: when, and the first step
        self.checks: list[models.Check] = []
        self.num_looks = 0
        self.is_planned = False  # it is judged soon


class ChecksOfGroup(AgentPart):
    """Judges the cells of a group as their ranks report steps."""

    def __init__(self, core: AgentCore) -> None:
        super().__init__(core)
        self._cells: dict[str, CheckedCell] = {}
        self._is_on = self.options(ChecksOptions).checks
        self._task: asyncio.Task[None] | None = None

    def status(self) -> dict[str, Any]:
        """Return whether cells are checked."""
        return {"on": self._is_on}

    def requests(self) -> Mapping[str, RequestHandler]:
        """Return the handlers of `set_checks` and `check_model`."""
        return {"set_checks": self._set, "check_model": self._check_model}

    async def _check_model(self, header: Header, payload: bytes) -> Answer:
        """Pass a question about what a model trains with to a rank that runs no cell, and its answer back."""
        rank = self.core.group.ranks[header["rank"]]
        if rank.state == "busy":
            return answer(reply={"busy": True})
        return answer(reply=(await rank.request("check_model", MODEL_SECONDS, payload)).fields())

    async def _set(self, header: Header, _: bytes) -> Answer:
        self._is_on = header["on"] is True
        await asyncio.gather(*map(self._tell, self.core.group.ranks))
        self.core.status_changed()
        return answer(on=self._is_on)

    async def _tell(self, rank: RankProcess) -> None:
        with contextlib.suppress(JupyterDistError):
            await rank.request("set_checks", ANSWER_SECONDS, on=self._is_on)

    def received(self, rank: RankProcess, content: dict[str, Any]) -> None:
        """Handle a report: a step, or the end of a cell on a rank."""
        if self._is_on:
            self._report(rank, content)
        elif self._task is None or self._task.done():  # the rank is new
            self._task = start_task(self._tell(rank), "switch of checks", self.core.failed)

    def _report(self, rank: RankProcess, content: dict[str, Any]) -> None:
        execution = self.core.group.dispatcher.queue.find(str(content.get("execution_id")))
        if execution is None or rank.rank not in execution.spec.ranks:
            return
        cell = self._cells.get(execution.id)
        if cell is None:
            if execution.is_final or len(self._cells) >= MAX_CELLS:
                return
            cell = self._cells[execution.id] = CheckedCell(execution)
        cell.seen.ranks = tuple(sorted(execution.spec.ranks))
        if "look" in content:
            look = read(StepLook, content["look"])
            if look is not None:
                cell.seen.add(rank.rank, look)
        elif "facts" in content:
            for fact in read_several(CallFact, content["facts"]):
                cell.seen.add_fact(rank.rank, fact)
        else:
            cell.seen.ended[rank.rank] = read_several(EndedSteps, content.get("ended"))
            cell.seen.passes[rank.rank].extend(read_several(Pass, content.get("passes")))
        if not cell.is_planned:
            cell.is_planned = True
            asyncio.get_running_loop().call_later(JUDGE_SECONDS, self._judge_surely, cell)

    def changed(self, execution: AgentExecution) -> None:
        """Judge a cell that has ended for the last time."""
        if execution.is_final and (cell := self._cells.pop(execution.id, None)) is not None:
            cell.seen.has_ended = execution.state == "ok"
            self._take(cell)
            self.core.proving.causes_shown(execution, [], cell.num_looks, topic="checks")  # none is open after the cell

    def stop(self) -> None:
        """Judge no more."""
        self._cells.clear()
        if self._task is not None:
            self._task.cancel()

    def _judge_surely(self, cell: CheckedCell) -> None:
        try:
            self._judge(cell)
        except Exception as err:
            self.core.failed(err)

    def _judge(self, cell: CheckedCell) -> None:
        cell.is_planned = False
        if cell.execution.id in self._cells and self._take(cell):
            self.core.execution_changed(cell.execution)

    def _missed(self, cell: CheckedCell) -> Iterator[tuple[int, str]]:
        """Yield the ranks that have not run an earlier cell with variables of this one, and which cell."""
        queue = self.core.group.dispatcher.queue
        ran = sorted(key for key, _ in cell.seen.facts_of("ran"))
        found = [one for one in map(queue.find, ran) if one is not None]
        for rank in cell.seen.ranks:
            its = {one.code_checksum for one in found if rank in one.spec.ranks}
            for one in found:
                if rank not in one.spec.ranks and one.code_checksum not in its:
                    yield rank, say("cell [%1] (%2)", one.execution_count, one.line)

    def _take(self, cell: CheckedCell) -> bool:
        """Judge the reports; return whether something else is shown now."""
        cell.seen.missed = dict(self._missed(cell))
        found, now = {one.key: one for one in judge(cell.seen)}, time.time()
        cell.since = {key: cell.since.get(key, (now, one.step)) for key, one in found.items()}
        checks = [one.model(*cell.since[key]) for key, one in found.items()]
        cell.num_looks += 1
        self.core.proving.causes_shown(cell.execution, checks, cell.num_looks, topic="checks")
        if checks == cell.checks:
            return False
        cell.checks = checks
        cell.execution.add("checks", checks)
        return True
