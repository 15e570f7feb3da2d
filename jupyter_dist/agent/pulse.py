"""Asking every rank's side thread whether it is there: silence is shown, and never taken for death."""

from __future__ import annotations

import asyncio

from jupyter_dist.protocol.errors import JupyterDistError

from .group import Group
from .rank_process import RankProcess

ASK_EVERY_SECONDS = 5.0
ANSWER_SECONDS = 2.0
SILENT = "Does not answer: C code holds the interpreter, or the process is stopped or swapping."


class Pulse:
    """Pings the ranks of a group, from `start` until `stop`."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._task: asyncio.Task[None] | None = None
        self._checks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.create_task(self._run(), name="pulse")

    def stop(self) -> None:
        """End. Idempotent."""
        for task in (self._task, *self._checks):
            if task is not None:
                task.cancel()

    def check_soon(self, ranks: list[RankProcess]) -> None:
        """Ask these at once: they were interrupted, and somebody waits to see whether that helped."""
        for rank in ranks:
            task = asyncio.create_task(self._check(rank), name=f"pulse of rank {rank.rank}")
            self._checks.add(task)
            task.add_done_callback(self._checks.discard)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(ASK_EVERY_SECONDS)
            await asyncio.gather(*(self._check(rank) for rank in self._group.living()))

    async def _check(self, rank: RankProcess) -> None:
        if rank.state not in ("idle", "busy", "unresponsive"):
            return
        try:
            await rank.request("ping", ANSWER_SECONDS)
        except JupyterDistError as err:
            if err.code == "timed_out" and not rank.gone.is_set():
                rank.set_state("unresponsive", SILENT)
        else:
            if rank.state == "unresponsive":
                rank.set_state("busy" if rank.execution_id else "idle")
