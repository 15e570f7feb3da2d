"""Samples the memory of ranks while a page shows it: /proc for every rank, the rank's own counters for its device."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from jupyter_dist.agent.group.group import AgentGroup
from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.agent.processes.starting.process import ProcessHandle
from jupyter_dist.protocol.accelerators import ACCELERATORS
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.transport.tasks import start_task

from .facts import Facts, waits_in
from .look import finite

if TYPE_CHECKING:
    from jupyter_dist.protocol.models import machine

ASK_SECONDS = 0.5
IDLE_TICKS = 4  # idle ranks are sampled this many times less often
DEVICE_FIELDS = ("allocated_bytes", "reserved_bytes", "peak_bytes", "device_used_bytes")

Look = tuple[float, Facts]


class Sampler:
    """Takes a MemorySample (docs/api.md) at an interval, from `watch(seconds)` until `watch(0)`.

    Idle ranks are sampled less often. The facts of the watch for hangs are sent along: ranks are not asked twice.
    """

    def __init__(
        self, group: AgentGroup, on_sample: Callable[[machine.MemorySample], None], last_look: Callable[[], Look | None]
    ) -> None:
        self._group = group
        self._on_sample = on_sample
        self._last_look = last_look
        self._sent_look: Look | None = None
        self._task: asyncio.Task[None] | None = None
        self._cpu_seen: dict[ProcessHandle, tuple[float, float]] = {}  # process -> (monotonic time, CPU seconds)

    def watch(self, seconds: float) -> None:
        """Sample at this interval from now on; 0 stops."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        if seconds > 0:
            self._task = start_task(self._run(max(0.2, seconds)), "sampler", lambda _: self._watch_again(seconds))

    def _watch_again(self, seconds: float) -> None:
        """Sample again after an error, as without descriptors: the page that shows it has not left."""
        failed = self._task
        asyncio.get_running_loop().call_later(seconds, lambda: self.watch(seconds) if self._task is failed else None)

    async def _run(self, seconds: float) -> None:
        ticks = IDLE_TICKS
        while True:
            ranks = [rank for rank in self._group.living() if rank.handle is not None and rank.unreachable is None]
            ticks += 1
            # Idle ranks barely change, and an open page must cost next to nothing.
            if ticks >= IDLE_TICKS or any(rank.execution_id is not None for rank in ranks):
                rows = await asyncio.gather(*(self._sample(rank) for rank in ranks))
                self._on_sample(self._with_look({"at": time.time(), "ranks": rows}))
                ticks = 0
            await asyncio.sleep(seconds)

    def _with_look(self, sample: machine.MemorySample) -> machine.MemorySample:
        """Add the last look, once."""
        look = self._last_look()
        if look is None or look is self._sent_look:
            return sample
        self._sent_look = look
        return {**sample, "seen_at": look[0], "seen": seen_of(look[1])}

    async def _sample(self, rank: RankProcess) -> machine.RankMemory:
        assert rank.handle is not None
        used = self._used(rank.handle, await rank.handle.usage())
        row: dict[str, Any] = {"rank": rank.rank, **dict.fromkeys(DEVICE_FIELDS), **used}
        if ACCELERATORS[rank.spec.accelerator].has_devices:
            # A rank stuck in C code does not answer in time; the other numbers are still shown.
            with contextlib.suppress(JupyterDistError):
                answer = await rank.request("sample", ASK_SECONDS)
                row.update({name: finite(answer.get(name)) for name in DEVICE_FIELDS})
        return cast("machine.RankMemory", row)

    def _used(self, handle: ProcessHandle, usage: tuple[int, float] | None) -> dict[str, Any]:
        if usage is None:  # it has just ended
            return {"resident_bytes": 0, "cpu_percent": 0.0}
        resident, used = usage
        now = time.monotonic()
        then, used_then = self._cpu_seen.get(handle, (now, used))
        self._cpu_seen[handle] = (now, used)
        percent = 100 * (used - used_then) / (now - then) if now > then else 0.0
        return {"resident_bytes": resident, "cpu_percent": round(percent, 1)}


def seen_of(facts: Facts) -> list[machine.RanksSeen]:
    """Return where the ranks were that ran a cell; ranks at the same place share an entry."""
    found: dict[tuple[str, str, str | None], list[int]] = {}
    for fact in facts.values():
        if fact.execution_id is not None:
            found.setdefault((fact.execution_id, fact.place, waits_in(fact)), []).append(fact.rank)
    return [
        {"ranks": str(RankSet(ranks)), "execution_id": execution_id, "place": place, "call": call}
        for (execution_id, place, call), ranks in found.items()
    ]
