"""Ends the ranks of a group: asks first, then kills."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Collection, Sequence

from jupyter_dist.system.processes import END_SECONDS, TreeShutdown, reap

from . import death
from .rank_process import RankProcess

# How long ranks may take to exit before they are killed. An idle rank runs exit handlers, which write files: as long as
# Jupyter gives kernels. A rank that runs a cell is interrupted, and may be in C code.
IDLE_SECONDS = 5.0
BUSY_SECONDS = 2.0
DIE_SECONDS = 5.0
POLL_SECONDS = 0.02


async def end_ranks(ranks: Sequence[RankProcess], because: str, *, patient: bool) -> list[str]:
    """End their processes; return a sentence about each that was asked to exit and had to be killed.

    Patient: they exit as Python does, which flushes files and runs exit handlers; ranks that do not respond are killed.
    """
    if patient:
        idle = [rank for rank in _living(ranks) if rank.state == "idle"]
        busy = [rank for rank in _living(ranks) if rank.state not in ("idle", "unresponsive")]
        await asyncio.gather(_leave(idle, IDLE_SECONDS, because), _leave(busy, BUSY_SECONDS, because))
    late = [rank for rank in _living(ranks) if rank.handle is not None]  # others wait for their node
    killed = [f"Rank {rank.rank} did not exit in time and was killed." for rank in late]
    for rank in _living(ranks):
        rank.kill(because)
    await wait_gone(ranks, DIE_SECONDS)
    for rank in _living(ranks):
        rank.release()  # it never got a process, or is stuck in the kernel: there is nothing more to read
    if not patient:
        return []
    companions = {pid: name for rank in ranks for pid, name in rank.ended_with_it}
    return killed + [name_killed(pid, name) for pid, name in companions.items()]


async def _leave(ranks: Sequence[RankProcess], seconds: float, because: str) -> None:
    """Ask ranks to exit, wait for that long, and kill the others."""
    for rank in ranks:
        rank.leave(seconds, because)
    await wait_gone(ranks, seconds)


async def give_up(ranks: Sequence[RankProcess], because: str) -> None:
    """Kill ranks. All are dead afterwards, also ranks that never had a process, whose end would never be reported."""
    for rank in ranks:
        rank.kill(because)
    await wait_gone(ranks, DIE_SECONDS)
    for rank in _living(ranks):
        await rank.ended(death.Ending(None, None if rank.handle is None else signal.SIGKILL))


def name_killed(pid: int, name: str) -> str:
    """Return a sentence about a killed process that a rank had started."""
    return f"Process {pid} ({name}), which a rank had started, was killed."


def _living(ranks: Sequence[RankProcess]) -> list[RankProcess]:
    return [rank for rank in ranks if rank.state != "dead"]


async def wait_gone(ranks: Sequence[RankProcess], seconds: float) -> None:
    """Wait until no rank has a process, at most for this time."""
    gone = [asyncio.create_task(rank.gone.wait()) for rank in _living(ranks) if rank.pid is not None]
    if gone:
        _, late = await asyncio.wait(gone, timeout=seconds)
        for task in late:
            task.cancel()


async def sweep(root: int, spare: Collection[int]) -> list[str]:
    """End every process below `root` except `spare`; return sentences that name the killed processes."""
    ending, deadline = TreeShutdown(root, spare), time.monotonic() + END_SECONDS
    while not ending.step() and time.monotonic() < deadline:
        reap(spare)
        await asyncio.sleep(POLL_SECONDS)
    return [name_killed(pid, name) for pid, name in ending.killed.items()]
