"""Watches running cells for ranks that wait for each other, and gives the cell its verdict (verdict.py).

It looks soon after a cell has begun, after a rank has ended its part, and every few seconds while a cell runs. A look
asks the side threads of all ranks; a second one shortly afterwards must find the same.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable
from typing import Any

from jupyter_dist.agent.group.execution import Execution
from jupyter_dist.agent.group.group import Group
from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.protocol.accelerators import ACCELERATORS
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.transport.frames import Header
from jupyter_dist.transport.tasks import start_task

from .verdict import Call, Fact, Facts, State, judge

FIRST_SECONDS = 0.6  # most cells end within it
SETTLE_SECONDS = 0.4
LOOK_SECONDS = 3.0
CONFIRM_SECONDS = 0.7
ANSWER_SECONDS = 2.0
MAX_MEMBERS = 8192
MAX_TEXT = 200

_CELL = re.compile(r"<ipython-input-(\d+)-")
_LIBRARIES = ("site-packages", "dist-packages", "/lib/python", "<frozen", "jupyter_dist/")


class HangWatch:
    """Watches the cells of a group, from `changed` on, while any runs."""

    def __init__(self, group: Group, on_change: Callable[[Execution], None]) -> None:
        self._group = group
        self._on_change = on_change
        self._timer: asyncio.TimerHandle | None = None
        self._looking: asyncio.Task[None] | None = None

    def changed(self, execution: Execution) -> None:
        """Handle a new state of an execution. Called for every cell, so it only sets a timer."""
        if execution.state != "running":
            return
        if self._timer is None:
            self._look_in(FIRST_SECONDS)
        elif time.monotonic() - execution.began > FIRST_SECONDS:  # a rank has ended its part late
            self._look_in(SETTLE_SECONDS)

    def stop(self) -> None:
        """Stop watching. Idempotent."""
        for pending in (self._timer, self._looking):
            if pending is not None:
                pending.cancel()

    def _look_in(self, seconds: float) -> None:
        if self._looking is not None and not self._looking.done():
            return  # it sets the timer when it is done
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            if self._timer.when() <= loop.time() + seconds:
                return
            self._timer.cancel()
        self._timer = loop.call_later(seconds, self._begin_look)

    def _begin_look(self) -> None:
        self._timer = None
        if self._running():
            self._looking = start_task(self._judge_and_go_on(), "watch for hangs")

    async def _judge_and_go_on(self) -> None:
        try:
            await self._judge()
        finally:
            self._looking = None
            if self._running():
                self._look_in(LOOK_SECONDS)

    async def _judge(self) -> None:
        before = await self._look()
        if not any(fact.state == "waits" for fact in before.values()):
            self._tell({})
            return
        await asyncio.sleep(CONFIRM_SECONDS)
        now = await self._look()
        cpu_tells = not ACCELERATORS[self._group.spec.accelerator].has_devices
        self._tell(judge(before, now, cpu_tells))

    def _tell(self, verdicts: dict[str, Any]) -> None:
        for execution in self._running():
            verdict = verdicts.get(execution.id)
            known = execution.verdict
            if verdict is not None:
                is_same = known is not None and (known["kind"], known["reason"]) == (verdict["kind"], verdict["reason"])
                verdict["since"] = known["since"] if known is not None and is_same else time.time()
            if verdict != known:
                execution.verdict = verdict
                self._on_change(execution)

    def _running(self) -> list[Execution]:
        return self._group.dispatcher.queue.in_state("running")

    async def _look(self) -> Facts:
        facts = await asyncio.gather(*(self._fact(rank) for rank in self._group.ranks))
        return {fact.rank: fact for fact in facts}

    async def _fact(self, rank: RankProcess) -> Fact:
        if rank.state == "dead":
            return Fact(rank.rank, "dead")
        execution_id = rank.execution_id
        try:
            answer = await rank.request("stack", ANSWER_SECONDS)
        except JupyterDistError:
            return Fact(rank.rank, "unknown")
        if rank.execution_id != execution_id:  # it went on while it answered
            return Fact(rank.rank, "runs")
        return self._fact_of(rank, answer, execution_id)

    def _fact_of(self, rank: RankProcess, answer: Header, execution_id: str | None) -> Fact:
        threads = bool(answer.get("threads"))
        begun, cpu_seconds = answer.get("begun"), float(answer.get("cpu_seconds") or 0.0)
        if execution_id is None:
            may_start = threads or self._has_queued(rank)
            return Fact(rank.rank, "idle", None, self._last_cell(rank), begun, None, cpu_seconds, may_start)
        if self._asks(rank, execution_id):
            place = f"{place_of(answer)}, where it asks for input".removeprefix(", where ")
            return Fact(rank.rank, "runs", None, place, begun, execution_id, cpu_seconds)
        call = _call(answer.get("wait"))
        state: State = "runs" if call is None or threads else "waits"
        return Fact(rank.rank, state, call, place_of(answer), begun, execution_id, cpu_seconds)

    def _asks(self, rank: RankProcess, execution_id: str) -> bool:
        execution = self._group.dispatcher.queue.find(execution_id)
        return execution is not None and execution.asking is not None and rank.rank in execution.asking

    def _last_cell(self, rank: RankProcess) -> str:
        ended = [e for e in self._group.dispatcher.queue if e.execution_count and rank.rank in e.spec.ranks]
        return f"since cell [{ended[-1].execution_count}]" if ended else ""

    def _has_queued(self, rank: RankProcess) -> bool:
        """Whether a cell is queued for it that waits for no cell that hangs."""
        return any(rank.rank in execution.spec.ranks for execution in self._group.dispatcher.queue.startable())


def place_of(answer: Header) -> str:
    """Return the user's line that a rank is at, from its answer to `stack`: the innermost that is no library's."""
    frames = [frame for frame in answer.get("stack") or () if isinstance(frame, dict)]
    own = [frame for frame in frames if not any(part in str(frame.get("file")) for part in _LIBRARIES)]
    if not own:
        return ""
    frame = own[-1]
    file = str(frame.get("file"))
    cell = _CELL.match(file)
    name = f"cell [{cell[1]}]" if cell else file.rpartition("/")[2]
    code = str(frame.get("code") or "")
    return f"line {frame.get('line')} of {name[:MAX_TEXT]}{f': {code[:MAX_TEXT]}' if code else ''}"


def _call(wait: Any) -> Call | None:
    """Return what a rank says that it waits in; None if that is nothing, or not what a rank would say."""
    if not isinstance(wait, dict) or not isinstance(wait.get("members"), list):
        return None
    members = frozenset(rank for rank in wait["members"][:MAX_MEMBERS] if isinstance(rank, int))
    peer, seq = wait.get("peer"), wait.get("seq")
    return Call(
        str(wait.get("name"))[:MAX_TEXT],
        str(wait.get("group"))[:MAX_TEXT],
        members,
        peer if isinstance(peer, int) else None,
        bool(wait.get("is_p2p")),
        seq if isinstance(seq, int) else None,
        _shape(wait.get("sizes"), wait.get("dtypes")),
    )


def _shape(sizes: Any, dtypes: Any) -> str:
    """Return shapes and types of its tensors: "float [4, 3]"."""
    if not isinstance(sizes, list) or not isinstance(dtypes, list):
        return ""
    kinds = [*map(str, dtypes), *([""] * len(sizes))]
    pairs = zip(sizes, kinds, strict=False)
    return ", ".join(f"{kind.lower()} {json.dumps(size)}".strip() for size, kind in pairs)[:MAX_TEXT]
