"""Pings the side thread of every rank. A rank that does not respond is shown as such, never treated as dead."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable

from jupyter_dist.agent.group.group import AgentGroup
from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import join, say, with_words
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.transport.frames import Header
from jupyter_dist.transport.tasks import start_task

from .look import MAX_TEXT, silence_of

ASK_EVERY_SECONDS = 5.0
ANSWER_SECONDS = 2.0
SIGNAL_SECONDS = 0.5  # in which a cell that notices a signal has ended
NEW_SECONDS = 1.0  # a cell that is newer mostly ends by itself
IDLE_AT_ONCE = 256  # of more idle ranks than these, a part is asked at a time
# An interrupt ends Python code at once and a hung collective after a second; a cell that still runs then is reported.
IGNORED_SECONDS = 4.5
KILL_HINT = say("If it does not end by itself, kill this rank; the other ranks keep their variables.")
_COMPILES = say("Compiles with torch.compile")


# In a stack of the newest 50 frames one of these is there, from the first step of torch.compile to the last.
_COMPILER_FILES = (
    "torch/_dynamo/convert_frame.py",
    "torch/_dynamo/symbolic_convert.py",
    "torch/_inductor/compile_fx.py",
    "torch/_inductor/graph.py",
    "torch/_inductor/scheduler.py",
    "torch/_inductor/codecache.py",
)


class Pulse:
    """Pings the ranks of a group, from `start` until `stop`."""

    def __init__(self, group: AgentGroup) -> None:
        self._group = group
        self._task: asyncio.Task[None] | None = None
        self._checks: set[asyncio.Task[None]] = set()
        self._waiting: dict[int, tuple[tuple[str | None, ...], float]] = {}  # rank -> (cell, its activity), since when

    def start(self) -> None:
        """Start pinging; `stop` ends it."""
        self._task = start_task(self._run(), "pulse", lambda _: self.start())

    def stop(self) -> None:
        """Stop pinging. Idempotent."""
        for task in (self._task, *self._checks):
            if task is not None:
                task.cancel()

    def check_interrupted(self, ranks: list[RankProcess]) -> Awaitable[None]:
        """Ping these ranks now, to see whether an interrupt arrived, and again when it should have had an effect.

        The returned task ends when each of them has answered, or is known not to respond.
        """
        self._check_in(IGNORED_SECONDS + 0.1, ranks)
        return asyncio.shield(self._check_in(0, ranks))

    def _check_in(self, seconds: float, ranks: list[RankProcess]) -> asyncio.Task[None]:
        async def check() -> None:
            await asyncio.sleep(seconds)
            await self._check_all(ranks)

        task = asyncio.create_task(check(), name="pulse, interrupted")
        self._checks.add(task)
        task.add_done_callback(self._checks.discard)
        return task

    async def _run(self) -> None:
        for turn in itertools.count():
            await asyncio.sleep(ASK_EVERY_SECONDS)
            self._group.dispatcher.end_forgotten()
            living = self._group.living()
            parts = -(-len(living) // IDLE_AT_ONCE) or 1
            # Neighbours together: ranks of one node are asked, and answer, in one message of the link.
            part = range(turn % parts * IDLE_AT_ONCE, (turn % parts + 1) * IDLE_AT_ONCE)
            now = time.time()
            await self._check_all(
                [rank for i, rank in enumerate(living) if i in part or (rank.state != "idle" and _is_asked(rank, now))]
            )

    async def _check_all(self, ranks: list[RankProcess]) -> None:
        await asyncio.gather(*(self._check(rank) for rank in ranks))

    async def _check(self, rank: RankProcess) -> None:
        if rank.state not in ("idle", "busy", "unresponsive") or rank.unreachable is not None:
            return
        execution_id = rank.execution_id
        try:
            answer = await rank.request("stack" if execution_id else "ping", ANSWER_SECONDS)
        except JupyterDistError as err:
            if err.code == "timed_out" and not await _is_freed(rank, execution_id):
                rank.set_state("unresponsive", self._with_interrupt(rank, silence_of(await rank.look())))
            return
        if rank.state == "unresponsive":
            rank.set_state("busy" if rank.execution_id else "idle")
        if rank.state == "busy" and rank.execution_id == execution_id:
            self._show_waiting(rank, answer)

    def _show_waiting(self, rank: RankProcess, answer: Header) -> None:
        does = _COMPILES if is_compiling(answer) else None
        if does is None and (collective := collective_of(answer)) is not None:
            does = say("Waits in %1", collective)
        # The number distinguishes a rank that waits from a loop that is in the same collective at every ping.
        place = (rank.execution_id, does, str(answer.get("collective")))
        if does is None:
            self._waiting.pop(rank.rank, None)
            call = with_words(answer.get("call") or "", answer.get("call_words"))
            call = call if len(call) <= MAX_TEXT else call[:MAX_TEXT]
            still = say("Still in %1", call) if call else say("Still runs")
            rank.set_state("busy", self._with_interrupt(rank, still) if _is_ignored(rank) else None)
            return
        if self._waiting.get(rank.rank, ((), 0.0))[0] != place:
            self._waiting[rank.rank] = (place, time.monotonic())
        seconds = time.monotonic() - self._waiting[rank.rank][1]
        others = [other.rank for other in self._group.living() if other.state == "idle"]
        waits = say("%1 (%2 s)", does, f"{seconds:.0f}") if seconds >= 1 else does
        if others and does is not _COMPILES:
            waits = say("%1; idle: %2", waits, RankSet(others))
        rank.set_state("busy", self._with_interrupt(rank, waits))

    @staticmethod
    def _with_interrupt(rank: RankProcess, does: str) -> str:
        """Return the message, with the interrupt added if the rank had time enough to stop."""
        if not _is_ignored(rank):
            return does
        rank.ignores_interrupt = True
        does = does if does.endswith(".") else say("%1.", does)
        return join(say("Interrupted %1 s ago.", f"{rank.interrupted_seconds:.0f}"), does, KILL_HINT)


async def _is_freed(rank: RankProcess, execution_id: str | None) -> bool:
    """Interrupt a rank that does not answer by a signal, if it was interrupted; return whether that ended its cell."""
    if rank.execution_id == execution_id and rank.interrupt_by_signal():
        await asyncio.sleep(SIGNAL_SECONDS)
    return rank.execution_id != execution_id or rank.state not in ("idle", "busy", "unresponsive")


def _is_asked(rank: RankProcess, now: float) -> bool:
    """Whether to ask a rank that is not idle; a rank that was idle a moment ago has answered then."""
    return rank.state != "busy" or abs(now - rank.state_at) >= NEW_SECONDS


def _is_ignored(rank: RankProcess) -> bool:
    return rank.interrupted_seconds >= IGNORED_SECONDS


def is_compiling(answer: Header) -> bool:
    """Whether a rank is in torch.compile's compilation, from its answer to `stack`; not in what was compiled."""
    return any(str(frame.get("file", "")).endswith(_COMPILER_FILES) for frame in answer.get("stack") or ())


def collective_of(answer: Header) -> str | None:
    """Return the collective that a rank waits in, from its answer to `stack`."""
    for frame in answer.get("stack") or ():
        if str(frame.get("file", "")).endswith("torch/distributed/distributed_c10d.py"):
            return str(frame.get("function"))[:MAX_TEXT]
    # Not in torch's Python: in backward(), in Work.wait(), or waiting for a device that runs the collective.
    outstanding = answer.get("collective")
    return str(outstanding["name"])[:MAX_TEXT] if outstanding else None
