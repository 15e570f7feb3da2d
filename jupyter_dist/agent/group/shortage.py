"""The report after the kernel killed a rank because memory was short: the memory of the other ranks on its machine."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.journal.writer import JournalWriter
from jupyter_dist.system.limits import within

USAGE_SECONDS = 2.0  # for nodes to answer
MAX_NAMED = 16
GIB = 1 << 30


class Shortage:
    """A kill by the kernel; created before the other ranks are notified, so that they still hold the same memory."""

    def __init__(self, killed: RankProcess, ranks: Iterable[RankProcess]) -> None:
        self._killed = killed
        self._execution_id = killed.execution_id
        node = killed.handle.node if killed.handle is not None else None
        self._others = [
            rank
            for rank in ranks
            if rank is not killed and rank.state != "dead" and rank.handle is not None and rank.handle.node == node
        ]
        self._sizes = asyncio.gather(*(_resident_bytes(rank) for rank in self._others))

    async def report(self, journal: JournalWriter) -> None:
        """Add a note to the killed rank's cell; the other ranks on its machine report their memory below it."""
        sizes = {rank.rank: size for rank, size in zip(self._others, await self._sizes, strict=True) if size}
        journal.append(
            "note", note(self._killed.rank, sizes).encode(), rank=self._killed.rank, execution_id=self._execution_id
        )
        if self._execution_id is not None:
            for rank in self._others:
                rank.send({"t": "report_memory", "execution_id": self._execution_id})


def note(killed: int, sizes: dict[int, int]) -> str:
    """Return the sentence about the ranks beside a killed one. Pure.

    Args:
        killed: the rank that the kernel killed.
        sizes: by rank, the resident memory in bytes of the living ranks on its machine.
    """
    if not sizes:
        return f"Rank {killed} was the only rank on its machine. Other programs there may hold memory, too."
    largest = sorted(sizes, key=lambda rank: -sizes[rank])
    named = ", ".join(f"rank {rank} {sizes[rank] / GIB:.1f} GiB" for rank in largest[:MAX_NAMED])
    more = f" and {len(largest) - MAX_NAMED} more" if len(largest) > MAX_NAMED else ""
    return f"When the kernel killed rank {killed}, the other ranks on its machine held: {named}{more}."


async def _resident_bytes(rank: RankProcess) -> int | None:
    assert rank.handle is not None
    try:
        usage = await within(USAGE_SECONDS, rank.handle.usage())
    except asyncio.TimeoutError:  # its node does not answer
        return None
    return usage[0] if usage else None
