"""The group: starts, restarts and ends its ranks, and keeps its state."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jupyter_dist.agent.processes.death import Ending, OutOfMemory
from jupyter_dist.agent.processes.ending import end_ranks, sweep
from jupyter_dist.agent.processes.environment import free_port, rank_spec
from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.agent.processes.starter import Starter
from jupyter_dist.agent.processes.stores import Stores
from jupyter_dist.journal.writer import JournalWriter
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.specs import GroupSpec
from jupyter_dist.protocol.states import GONE_GROUP_STATES, GroupState
from jupyter_dist.transport.frames import Header

from .dispatch import Dispatcher
from .execution import Execution
from .failures import died_early, too_late
from .reform import Reform

STARTS_AT_ONCE = 16


class Group:
    """The ranks of one GroupSpec, and the cells that go to them."""

    def __init__(
        self,
        spec: GroupSpec,
        directory: Path,
        on_records: Callable[[], None],
        on_group: Callable[[], None],
        on_execution: Callable[[Execution], None],
    ) -> None:
        self.spec = spec
        self.journal = JournalWriter(
            directory / "journal", on_records, on_group, spec.journal_bytes, spec.user_journal_bytes
        )
        self.dispatcher = Dispatcher(self.journal, on_execution)
        self.ranks: list[RankProcess] = []
        self.state: GroupState = "starting"
        self.generation = 0
        self.note: str | None = None
        self.error: JupyterDistError | None = None
        self.started_at = time.time()
        self.ready_seconds: float | None = None
        self.stores = Stores(directory)
        self._on_group = on_group
        self._formed: asyncio.Future[None] | None = None
        self.reform = Reform(self)
        self._by_pid: dict[int, RankProcess] = {}
        self._out_of_memory = OutOfMemory()
        self._starting_since = time.monotonic()

    # -- life ---------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Create the ranks of a new generation, without processes."""
        store_path = self.stores.new()
        self.reform.forget()
        master = free_port()
        self.ranks = [
            RankProcess(rank_spec(self.spec, rank, store_path, self.generation, master), self.journal, self)
            for rank in range(self.spec.world_size)
        ]
        self._by_pid = {}
        self.dispatcher.take_ranks(self.ranks)
        self._on_group()

    async def start(self, starter: Starter) -> None:
        """Start the process of every rank and wait until all have joined the process group.

        Raises:
            JupyterDistError: `start_failed`, naming the rank and the cause; nothing is left running then.
        """
        try:
            await self.start_ranks(starter, self.ranks)
        except JupyterDistError as err:
            await self._fail(err)
        self.ready_seconds = time.monotonic() - self._starting_since
        self.dispatcher.is_open = True
        self.set_state("ready")
        self.dispatcher.pump()

    async def start_ranks(self, starter: Starter, ranks: list[RankProcess]) -> None:
        """Start the processes of these ranks and wait until every rank of the group is idle.

        Raises:
            JupyterDistError: `start_failed`, naming the rank and the cause.
        """
        self._formed = asyncio.get_running_loop().create_future()
        try:
            # Concurrently: the zygote forks one while this process handles the one before.
            gate = asyncio.Semaphore(STARTS_AT_ONCE)
            starts = (self._start_rank(starter, rank, gate) for rank in ranks)
            for outcome in await asyncio.gather(*starts, return_exceptions=True):
                if isinstance(outcome, BaseException):
                    raise outcome
            await asyncio.wait_for(self._formed, self.spec.start_timeout_seconds)
        except asyncio.TimeoutError as err:
            raise too_late(self.ranks, self.spec.start_timeout_seconds) from err
        finally:
            self._formed = None

    def renew_dead(self, store_path: Path) -> list[RankProcess]:
        """Replace every dead rank by a new one without a process; return the new ranks."""
        renewed = {
            rank.rank: RankProcess(dataclasses.replace(rank.spec, store_path=str(store_path)), self.journal, self)
            for rank in self.ranks
            if rank.state == "dead"
        }
        self.ranks = [renewed.get(rank.rank, rank) for rank in self.ranks]
        self.dispatcher.replace_ranks(self.ranks)
        return list(renewed.values())

    def begin_restart(self) -> None:
        """End running and queued cells; cells submitted from now on are for the new ranks."""
        self._stop_cells("restarting", JupyterDistError("restarted", "The group was restarted."))

    async def restart(self, starter: Starter) -> None:
        """End all ranks and start new ones. Variables are lost; the zygote keeps its imports."""
        await end_ranks(self.ranks, patient=False)
        await starter.settle()
        await sweep(os.getpid(), starter.children())
        self.generation += 1
        self.started_at, self.error, self.note = time.time(), None, None
        self._starting_since = time.monotonic()
        self.journal.append("note", b"The group was restarted.", rank=None, execution_id=None)
        self.prepare()
        await self.start(starter)

    async def end(self) -> list[str]:
        """End all ranks; return a sentence about each process that had to be killed."""
        self._stop_cells("ending", JupyterDistError("ended", "The group was shut down."))
        return await end_ranks(self.ranks, patient=True)

    def close(self) -> None:
        """Close the journal."""
        self.journal.close()

    def set_state(self, state: GroupState) -> None:
        """Enter a state and tell the server."""
        self.state = state
        self._on_group()

    async def process_exited(self, pid: int, ending: Ending) -> None:
        """Handle a process that a starter reaped: if it is a rank of this generation, the rank is dead."""
        out_of_memory = ending.signal == signal.SIGKILL and self._out_of_memory.struck()
        if rank := self._by_pid.get(pid):
            await rank.ended(ending, out_of_memory)

    # -- events of ranks (RankListener) ---------------------------------------------------------------

    def rank_changed(self, rank: RankProcess) -> None:
        """Handle a rank's new state; the group is up when the last rank is idle."""
        self._on_group()
        waiting = self._formed is not None and not self._formed.done()
        if waiting and all(other.state == "idle" for other in self.ranks):
            assert self._formed is not None
            self._formed.set_result(None)

    def rank_replied(self, rank: RankProcess, reply: Header) -> None:
        """Handle a rank that finished its part of a cell."""
        self.reform.heard(reply)
        self.dispatcher.rank_replied(rank, reply)
        self.reform.poll()

    def rank_died(self, rank: RankProcess) -> None:
        """Handle the end of a rank's process."""
        self.reform.rank_died(rank)
        if self._formed is not None:
            if not self._formed.done():
                self._formed.set_exception(died_early(rank))
            return
        self.dispatcher.rank_died(rank)
        self.reform.poll()
        if self.state in ("ready", "degraded"):
            all_dead = all(other.state == "dead" for other in self.ranks)
            self.set_state("dead" if all_dead else "degraded")
            self.dispatcher.pump()

    def tell(self, text: str) -> None:
        """Show a note to users, in the group and in its journal."""
        self.note = text
        self.journal.append("note", text.encode(), rank=None, execution_id=None)
        self._on_group()

    # -- reading --------------------------------------------------------------------------------------

    def living(self, ranks: list[int] | None = None) -> list[RankProcess]:
        """Return those of the given ranks that have a process."""
        return [rank for rank in self.ranks if rank.state != "dead" and (ranks is None or rank.rank in ranks)]

    def check_takes_cells(self) -> None:
        """Raise JupyterDistError `group_not_ready` if cells cannot be queued."""
        if self.state in GONE_GROUP_STATES:
            message = f"Group '{self.spec.name}' is {self.state}."
            raise JupyterDistError("group_not_ready", message, "Restart it, or start another one.")

    def status(self) -> dict[str, Any]:
        """Return the `group` status of docs/messaging.md."""
        queue = self.dispatcher.queue
        return {
            "state": self.state,
            "spec": self.spec.to_dict(),
            "generation": self.generation,
            "disk": self.journal.disk or None,
            "note": " ".join(filter(None, (self.note, self.journal.disk))) or None,
            "error": self.error.to_dict() if self.error else None,
            "started_at": self.started_at,
            "ready_seconds": self.ready_seconds,
            "ranks": [rank.model() for rank in self.ranks],
            "running": [execution.id for execution in queue.in_state("running")],
            "queued": [execution.id for execution in queue.in_state("queued")],
            "seq": self.journal.last_seq,
        }

    # -- inside -----------------------------------------------------------------------------------------

    async def _start_rank(self, starter: Starter, rank: RankProcess, gate: asyncio.Semaphore) -> None:
        async with gate:
            fds = rank.open()
            try:
                born = await starter.start(rank.spec, fds)
            finally:
                for fd in fds:
                    with contextlib.suppress(OSError):
                        os.close(fd)
            self._by_pid[born.pid] = rank
            await rank.started(born.pid, born.started)

    async def _fail(self, error: JupyterDistError) -> None:
        self.error = error
        self._stop_cells("ending", error)
        await end_ranks(self.ranks, patient=False)
        self.journal.append("note", str(error).encode(), rank=None, execution_id=None)
        self.set_state("dead")
        raise error

    def _stop_cells(self, state: GroupState, error: JupyterDistError) -> None:
        self.set_state(state)
        self.dispatcher.close(error)
