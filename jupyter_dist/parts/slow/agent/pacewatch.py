"""Watches the pace of running cells: asks their ranks every few seconds, and gives the cell what makes it slow.

Cells that end soon are not asked. The first looks come quickly, so that a cause is named within ten seconds, later ones
seldom, so that they cost next to nothing; while a cause is shown, they come more often, to see it go.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING

from jupyter_dist.agent.contact.server_link import Answer, RequestHandler, answer
from jupyter_dist.agent.group.cells.execution import AgentExecution
from jupyter_dist.agent.part import AgentCore, AgentPart
from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.transport.frames import Header
from jupyter_dist.transport.tasks import start_task

from .asking.clocks import Clocks
from .asking.reports import RankReport, read_report
from .asking.unsure import UnsureLines
from .judge import ShownCauses, judge
from .observed import StepsSeen, observe, steps_of
from .summary import PaceTotals, witnesses_of

if TYPE_CHECKING:
    from jupyter_dist.parts.slow import models

FIRST_SECONDS = 0.9
LOOK_SECONDS = 1.65
LATER_SECONDS = 12.0  # while nothing is found
SHOWN_SECONDS = 4.0
NUM_QUICK = 6  # looks
WINDOW_SECONDS = 12.5  # what is judged, and at least
LEAST_LOOKS = 2  # of them
ANSWER_SECONDS = 2.0
MAX_ARRIVALS = 4096  # of all ranks together, in a look
LEAST_ARRIVALS = 24
QUICK_ARRIVALS, LATER_ARRIVALS = 128, 64  # of a rank in a look, if they cover so many steps and seconds
NUM_STEPS = 8
COVERED_SECONDS = 0.35
MANY_RANKS = 64  # judging more of them takes a tenth of a second: it is done more seldom
MANY_SECONDS = 12.0
MAX_HISTORY = 60
MAX_LOOKS = 7


class WatchedCell:
    """The reports of a running cell, and the causes that they show."""

    def __init__(self, execution_id: str) -> None:
        self.execution_id = execution_id
        self.num_looks = self.num_ranks = 0
        self.reports: deque[tuple[float, dict[int, RankReport]]] = deque()
        self._looks: deque[dict[int, RankReport]] = deque(maxlen=MAX_LOOKS)
        self.unsure = UnsureLines()
        self.totals = PaceTotals()
        self.history: list[StepsSeen] = []
        self.shown = ShownCauses()
        self.causes: list[models.SlowCause] = []
        self._steps: tuple[int | None, float | None] = (None, None)  # collectives in a step, and its seconds

    def take(self, now: float, found: dict[int, RankReport], clocks: Clocks, hosts: dict[int, str]) -> None:
        """Judge the cell again, with another report of each rank."""
        self.num_looks += 1
        self.num_ranks = len(found)
        if self.num_looks == 1:  # the ranks begin to measure
            found = {rank: report for rank, report in found.items() if report.arrivals}
        self.reports.append((now, found))
        while now - self.reports[0][0] > WINDOW_SECONDS and len(self.reports) > LEAST_LOOKS:
            self.reports.popleft()
        shifts = {rank: clocks.shift(hosts[rank]) for rank in found}
        by_rank = {rank: [one[rank] for _, one in self.reports if rank in one] for rank in found}
        unsure = max((wrong for _, wrong in shifts.values()), default=0.0) if len(set(hosts.values())) > 1 else 0.0
        self._looks.append(found)
        looks = {rank: [one[rank] for one in self._looks if rank in one] for rank in found}
        seen = observe(by_rank, {rank: shift for rank, (shift, _) in shifts.items()}, unsure, looks)
        alone = {rank: [report] for rank, report in found.items()}
        newest = observe(alone, {rank: shifts[rank][0] for rank in found}, steps=seen.steps)
        self._steps = seen.period, seen.step_seconds
        if (steps := steps_of(newest)) is not None:
            self.history.append(steps)
        seen.history = self.history[-MAX_HISTORY:]
        self.totals.add(found, newest, time.time())
        self.causes = self.shown.after(judge(seen) if self.num_looks > 1 else [])

    @property
    def max_arrivals(self) -> int:
        """How many collectives a rank reports at the next look: each costs the agent about 20 us in all."""
        period, seconds = self._steps
        usual = QUICK_ARRIVALS if self.num_looks < NUM_QUICK or self.causes else LATER_ARRIVALS
        if period is not None and seconds:
            usual = max(usual, NUM_STEPS * period, round(COVERED_SECONDS * period / seconds))
        return max(LEAST_ARRIVALS, min(usual, MAX_ARRIVALS // max(1, self.num_ranks)))

    @property
    def next_seconds(self) -> float:
        """After how many seconds to look again."""
        if self.num_looks < NUM_QUICK:
            return LOOK_SECONDS
        if self.num_ranks > MANY_RANKS:
            return MANY_SECONDS
        return SHOWN_SECONDS if self.causes else LATER_SECONDS

    def model(self) -> models.Pace:
        """Return the Pace of docs/api.md."""
        return self.totals.model(self.execution_id, self.causes)


class PaceWatch(AgentPart):
    """Watches the cells of a group, from `changed` on, while any runs."""

    def __init__(self, core: AgentCore) -> None:
        super().__init__(core)
        self._clocks = Clocks()
        self._cells: dict[str, WatchedCell] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def changed(self, execution: AgentExecution) -> None:
        """Handle a new state of an execution. Called for every cell, so it only sets a timer."""
        if execution.state == "running" and not execution.spec.silent:
            if execution.id not in self._timers:
                loop = asyncio.get_running_loop()
                self._timers[execution.id] = loop.call_later(FIRST_SECONDS, self._begin, execution)
        elif execution.is_final:
            self._ended(execution)

    def requests(self) -> Mapping[str, RequestHandler]:
        """Return the handler of `pace`."""
        return {"pace": self._pace}

    def stop(self) -> None:
        """Stop watching. Idempotent."""
        for timer in self._timers.values():
            timer.cancel()
        for task in self._tasks.values():
            task.cancel()

    async def _pace(self, header: Header, _: bytes) -> Answer:
        """Return where the time of a running cell goes; None if it was not watched yet."""
        cell = self._cells.get(str(header["execution_id"]))
        return answer(pace=None if cell is None or cell.num_looks < 2 else cell.model())

    def _begin(self, execution: AgentExecution) -> None:
        self._tasks[execution.id] = start_task(self._watch(execution), "watch of the pace", self.core.failed)

    def _ended(self, execution: AgentExecution) -> None:
        timer, task = self._timers.pop(execution.id, None), self._tasks.pop(execution.id, None)
        if timer is not None:
            timer.cancel()
        if task is not None:
            task.cancel()
        cell = self._cells.pop(execution.id, None)
        execution.add("slowness", None)
        if cell is not None and cell.num_looks > 1:
            execution.add("pace", cell.model())
            self.core.proving.causes_shown(execution, [], cell.num_looks)  # no cause is open after the cell

    async def _watch(self, execution: AgentExecution) -> None:
        cell = self._cells[execution.id] = WatchedCell(execution.id)
        while not execution.is_final:
            began = time.monotonic()
            await self._look(execution, cell)
            await asyncio.sleep(max(0.0, cell.next_seconds - (time.monotonic() - began)))

    async def _look(self, execution: AgentExecution, cell: WatchedCell) -> None:
        running = [self.core.group.ranks[rank] for rank in execution.running_ranks]
        cell.num_ranks = len(running)
        limit = cell.max_arrivals
        answers = await asyncio.gather(*(self._ask(rank, execution.id, limit) for rank in running))
        known = [(rank, report) for rank, report in zip(running, answers, strict=True) if report is not None]
        settled = await asyncio.gather(*(cell.unsure.settle(rank, report) for rank, report in known))
        found = {rank.rank: report for (rank, _), report in zip(known, settled, strict=True)}
        before = cell.causes
        hosts = {rank.rank: str(rank.spec.node) for rank in running}
        cell.take(time.monotonic(), found, self._clocks, hosts)
        if cell.causes != before and not execution.is_final:
            execution.add("slowness", cell.causes)
            causes = [
                cause for cause in cell.causes if cause["kind"] != "line"
            ]  # a fact is not refuted by the next one
            self.core.proving.causes_shown(execution, causes, cell.num_looks, witnesses_of(cell.model()))
            self.core.execution_changed(execution)

    async def _ask(self, rank: RankProcess, execution_id: str, max_arrivals: int) -> RankReport | None:
        asked = time.monotonic()
        try:
            answer = await rank.request("pace", ANSWER_SECONDS, max_arrivals=max_arrivals)
        except JupyterDistError:
            return None
        report = read_report(answer) if answer.get("execution_id") == execution_id else None
        if report is not None:
            self._clocks.note(str(rank.spec.node), 1e6 * asked, 1e6 * time.monotonic(), report.now)
        return report
