"""Watches running cells for ranks that wait for each other, and gives the cell its verdict (verdict.py).

It looks soon after a cell has begun, after a rank has ended its part, and every few seconds while a cell runs. A look
asks the side threads of all ranks; a second one shortly afterwards must find the same.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from jupyter_dist.agent.group.cells.execution import AgentExecution
from jupyter_dist.agent.part import AgentCore, AgentPart
from jupyter_dist.agent.watch.facts import COMES, Fact, Facts, waits_in
from jupyter_dist.protocol.accelerators import ACCELERATORS
from jupyter_dist.protocol.models.sentences import join, say, words_of
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.transport.tasks import call_within, start_task

from . import askras, rasreport
from .stillness import Stillness
from .verdict import judge

if TYPE_CHECKING:
    from jupyter_dist.parts.hangs.models import Verdict

FIRST_SECONDS = 0.6  # most cells end within it
SETTLE_SECONDS = 0.4
LOOK_SECONDS = 3.0
CONFIRM_SECONDS = 0.7
FEW_RANKS = 256  # a look at more costs this process more than a cell on all of them: it comes later in proportion
PATHS_SECONDS = 15.0  # until nodes that reach each other try again
_NOT_NAMED_WITHOUT_RAS = ("order", "mismatch", "shapes", "still", "cut")  # verdicts that name no missing rank


class HangWatch(AgentPart):
    """Watches the cells of a group, from `changed` on, while any runs."""

    def __init__(self, core: AgentCore) -> None:
        super().__init__(core)
        self._group, self._proving = core.group, core.proving
        self._shown: dict[str, tuple[Verdict, int]] = {}  # by execution, and for how many ranks
        self._timer: asyncio.TimerHandle | None = None
        self._looking: asyncio.Task[None] | None = None
        self._wish: float | None = None  # how soon to look again after the present look
        self._stillness = Stillness()
        self._paths: tuple[float, str] | None = None  # when nodes tried to connect to each other, and who could not
        self._ras: dict[str, list[str]] = {}  # what NCCL itself reports, by execution

    def changed(self, execution: AgentExecution) -> None:
        """Handle a new state of an execution. Called for every cell, so it only sets a timer."""
        if execution.is_final:
            self._proving.hang_gone(execution)
        shown = self._shown.get(execution.id)
        if shown is not None and (execution.is_final or len(execution.spec.ranks) != shown[1]):  # others have joined
            self._show(execution, None)
        if execution.is_final and self._timer is not None and not self._running():
            self._timer.cancel()  # or the next cell is looked at as soon as it has begun
            self._timer = None
        if execution.state == "running":
            self._proving.acted(besides=execution)
            # A rank that has ended its part late may be the last that could help.
            has_run = time.monotonic() - execution.began > FIRST_SECONDS
            self._look_in(min(LOOK_SECONDS, (SETTLE_SECONDS if has_run else FIRST_SECONDS) * self._times_later))

    @property
    def _times_later(self) -> float:
        return max(1.0, self._group.spec.world_size / FEW_RANKS)

    def stop(self) -> None:
        """Stop watching. Idempotent."""
        for pending in (self._timer, self._looking):
            if pending is not None:
                pending.cancel()

    def _look_in(self, seconds: float) -> None:
        """Look after so many seconds, or earlier if a look is planned already."""
        if self._looking is not None and not self._looking.done():
            self._wish = min(seconds, self._wish if self._wish is not None else seconds)
            return
        self._timer = call_within(self._timer, seconds, self._begin_look)

    def _begin_look(self) -> None:
        self._timer = None
        if self._running():
            self._looking = start_task(self._judge_and_continue(), "watch for hangs", self.core.failed)

    async def _judge_and_continue(self) -> None:
        try:
            await self._judge()
        finally:
            self._looking = None
            wish, self._wish = self._wish, None
            if self._running():
                self._look_in(LOOK_SECONDS if wish is None else wish)

    async def _judge(self) -> None:
        before = await self.core.looks.take()
        cpu_counts = not ACCELERATORS[self._group.spec.accelerator].has_devices
        still = self._stillness.after(before, cpu_counts, time.monotonic())
        self._ras = {}
        if not any(fact.state == "waits" for fact in before.values()):
            self._report(judge(before, before, cpu_counts, still), before)
            return
        await asyncio.sleep(CONFIRM_SECONDS)
        now = await self.core.looks.take()
        verdicts = judge(before, now, cpu_counts, still)
        if (paths := await self._broken_paths(verdicts)) is not None:
            verdicts = judge(before, now, cpu_counts, still, paths)
        await self._ask_ras(verdicts)
        self._report(verdicts, now)

    async def _ask_ras(self, verdicts: dict[str, Verdict]) -> None:
        """Add to verdicts what NCCL reports of the communicators of waiting ranks; it never makes a verdict."""
        hung = {
            execution_id: RankSet(rank for part in verdict["waiting"] for rank in RankSet.from_text(part["ranks"]))
            for execution_id, verdict in verdicts.items()
            if verdict["kind"] == "cannot_end" or verdict["reason"] in _NOT_NAMED_WITHOUT_RAS
        }
        communicators, ranks = await askras.ask(self._group) if hung else ([], {})
        for execution_id, waiting in hung.items():
            found = self._ras[execution_id] = rasreport.sentences(communicators, ranks, waiting)
            verdict = verdicts[execution_id]
            if found and verdict["reason"] in _NOT_NAMED_WITHOUT_RAS:
                verdict["message"] = message = join(verdict["message"], *found)
                verdict["message_words"] = words_of(message)

    async def _broken_paths(self, verdicts: dict[str, Verdict]) -> str | None:
        """Return which nodes do not reach each other, if a cell is still; None without nodes, or if none waits so."""
        nodes = self._group.nodes
        if nodes is None or not any(verdict["reason"] == "still" for verdict in verdicts.values()):
            return None
        if self._paths is None or self._paths[1] or time.monotonic() - self._paths[0] > PATHS_SECONDS:
            self._paths = time.monotonic(), await nodes.broken_paths()
        return self._paths[1]

    def _report(self, verdicts: dict[str, Verdict], facts: Facts) -> None:
        for execution in self._running():
            verdict = verdicts.get(execution.id)
            known = self._known(execution)
            if verdict is not None:
                is_same = known is not None and (known["kind"], known["reason"]) == (verdict["kind"], verdict["reason"])
                verdict["since"] = known["since"] if known is not None and is_same else time.time()
                if could_join := _could_join(execution, verdict):
                    verdict["could_join"] = could_join
            if verdict != known:
                self._show(execution, verdict)
                self._keep(execution, known, facts)
                self.core.execution_changed(execution)

    def _known(self, execution: AgentExecution) -> Verdict | None:
        return self._shown[execution.id][0] if execution.id in self._shown else None

    def _show(self, execution: AgentExecution, verdict: Verdict | None) -> None:
        self._shown.pop(execution.id, None)
        if verdict is not None:
            self._shown[execution.id] = verdict, len(execution.spec.ranks)
        execution.add("verdict", verdict)
        execution.cannot_end = verdict is not None and verdict["kind"] == "cannot_end"

    def _keep(self, execution: AgentExecution, before: Verdict | None, facts: Facts) -> None:
        """Keep a verdict that the cell cannot end, with what each rank was found doing, or note that it has gone."""
        verdict = self._known(execution)
        was_hung = before is not None and before["kind"] == "cannot_end"
        if verdict is None or verdict["kind"] != "cannot_end":
            if was_hung:
                self._proving.hang_gone(execution)
        elif before is None or (before["kind"], before["reason"]) != (verdict["kind"], verdict["reason"]):
            witnesses = [*self._ras.get(execution.id, ()), *map(_witness, facts.values())]
            self._proving.hang_shown(execution, verdict["message"], witnesses)

    def _running(self) -> list[AgentExecution]:
        return self._group.dispatcher.queue.in_state("running")


def _witness(fact: Fact) -> str:
    """Describe a rank in a line."""
    counts = ", ".join(f"{name}: {number}" for name, number in fact.counts.items())
    begun = say("collectives begun: %1", counts) if counts else ""
    comes = say(fact.comes) if fact.comes in COMES else fact.comes
    parts = [_STATES[fact.state], waits_in(fact), fact.place, comes, fact.error, fact.left_over, begun]
    return say("rank %1: %2", fact.rank, join(*parts, by="; "))


_STATES = {
    "waits": say("waits"),
    "runs": say("runs"),
    "idle": say("idle"),
    "dead": say("dead"),
    "unknown": say("unknown"),
}


def _could_join(execution: AgentExecution, verdict: Verdict) -> str | None:
    """Return the ranks that are waited for if the cell was sent to none of them: run there, too, it may end."""
    needed = RankSet(rank for part in verdict["needed"] for rank in RankSet.from_text(part["ranks"]))
    is_missing = (verdict["kind"], verdict["reason"]) == ("cannot_end", "missing") and execution.spec.call is None
    return str(needed) if is_missing and needed.isdisjoint(execution.spec.ranks) else None
