"""Re-creates the process group: after a hung collective was interrupted, or with new processes for dead ranks."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from jupyter_dist.agent.processes.ending import DIE_SECONDS, wait_gone
from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.ranks import format_ranks
from jupyter_dist.transport.frames import Header
from jupyter_dist.transport.tasks import start_task

if TYPE_CHECKING:
    from jupyter_dist.agent.processes.starter import Starter

    from .group import Group

REJOIN_SECONDS = 60.0


class Reform:
    """Waits until no rank runs a cell, then makes every rank leave and join again; variables are kept."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._task: asyncio.Task[None] | None = None
        self._needed = False
        self._interrupted = False
        self._left: list[int] = []  # the ranks that had left it when users were last told

    def heard(self, reply: Header) -> None:
        """Check for a process group that is broken, or that an interrupt left with a half-done collective."""
        if reply.get("process_group") == "broken":
            self._needed = self._group.dispatcher.holds = True
        if reply["status"] == "interrupted":
            self._interrupted = True

    def rank_died(self, dead: RankProcess) -> None:
        """Make collectives with a dead rank fail at once, and also a rendezvous that it will not reach."""
        group = self._group
        if group.state == "ending" or dead not in group.ranks:
            return
        assert dead.exit is not None
        for rank in group.living():
            rank.send({"t": "peer_lost", "rank": dead.rank, "reason": dead.exit["reason"]})
        # torch waits for a missing file, but not for a link that points to itself.
        store = group.stores.current()
        with contextlib.suppress(OSError):
            store.unlink(missing_ok=True)
            store.symlink_to(store)

    def forget(self) -> None:
        """Reset: all ranks were replaced, so nothing is broken."""
        self._needed = self._interrupted = self._group.dispatcher.holds = False
        self._left = []
        if self._task is not None:
            self._task.cancel()

    def poll(self) -> None:
        """Start if it is needed and possible; queued cells wait for it."""
        group = self._group
        if group.dispatcher.queue.in_state("running"):
            return
        # Ranks that began different numbers of collectives would mismatch the next one, or wait forever.
        uneven = len({rank.collective_seq for rank in group.living()}) > 1
        needed = self._needed or (self._interrupted and uneven)
        self._needed = self._interrupted = group.dispatcher.holds = False
        self._tell_who_left()
        if needed and len(group.living()) < group.spec.world_size:
            group.note = "A rank is dead, and collectives fail until it is replaced or the group is restarted."
        elif needed:
            self._begin()
        group.dispatcher.pump()  # does nothing if it starts, because that closes the dispatcher

    def on_request(self) -> None:
        """Re-create it even if nothing is broken, or after user code destroyed it.

        Raises:
            JupyterDistError: `group_not_ready`, if ranks are dead or running cells.
        """
        group = self._group
        if group.state != "ready" or not group.dispatcher.is_open:
            hint = "Replace the dead ranks instead." if group.state == "degraded" else "Wait until it is ready."
            raise JupyterDistError("group_not_ready", f"Not all ranks of group '{group.spec.name}' are ready.", hint)
        if group.dispatcher.queue.in_state("running"):
            message = "A cell is running; ranks can only join when they are idle."
            raise JupyterDistError("group_not_ready", message, "Interrupt the cell or wait until it ends.")
        self._begin()

    def _begin(self) -> None:
        self._group.dispatcher.is_open = False
        self._task = start_task(self._run(), "reform", self._failed)

    def _failed(self, error: BaseException) -> None:
        """Handle an internal error: cells must not wait forever for a new process group."""
        group = self._group
        group.tell(f"The process group could not be re-created ({error!r:.200}). Restart the group.")
        group.dispatcher.is_open = True
        group.dispatcher.pump()

    def _tell_who_left(self) -> None:
        left = [rank.rank for rank in self._group.living() if rank.process_group == "none"]
        if left and left != self._left:
            who = f"Rank{'s' if len(left) > 1 else ''} {format_ranks(left)} destroyed the process group"
            way_on = "Run torch.distributed.init_process_group() in a cell on all ranks, or re-create it with 'reform'"
            self._group.tell(f"{who}: collectives fail. {way_on}; all variables are kept.")
        elif self._left and not left:
            self._group.tell("All ranks are in the process group again.")
        self._left = left

    async def replace_dead(self, starter: Starter) -> None:
        """Start a new process for every dead rank; the others keep theirs, and their variables.

        Raises:
            JupyterDistError: `start_failed`; the group stays degraded.
        """
        group = self._group
        self._needed = self._interrupted = group.dispatcher.holds = False
        survivors, store_path = group.living(), group.stores.new()
        fresh = group.renew_dead(store_path)
        numbers = format_ranks(rank.rank for rank in fresh)
        rejoining = asyncio.create_task(self._rejoin(survivors, str(store_path)), name="rejoin")
        try:
            await group.start_ranks(starter, fresh)
        except JupyterDistError as err:
            for rank in fresh:
                rank.kill()
            # A death reported later would be attributed to the next attempt.
            await wait_gone(fresh, DIE_SECONDS)
            group.tell(f"Rank {numbers} could not be replaced: {err.message}")
        else:
            group.tell(f"Rank {numbers} was replaced: its variables are gone, the other ranks keep theirs.")
        await asyncio.gather(rejoining, return_exceptions=True)
        self.end_replacing()

    def begin_replacing(self) -> None:
        """Hold cells back, and show it, as soon as it is requested."""
        self._group.dispatcher.is_open = False
        self._group.set_state("restarting")

    def end_replacing(self) -> None:
        """Use the ranks that are alive from now on."""
        group = self._group
        group.dispatcher.is_open = True
        group.set_state("degraded" if len(group.living()) < group.spec.world_size else "ready")
        group.dispatcher.pump()

    async def _run(self) -> None:
        group = self._group
        try:
            revived = await self._rejoin(group.living(), str(group.stores.new()))
        except JupyterDistError as err:
            dead = len(group.living()) < group.spec.world_size
            way_on = "Replace the dead rank" if dead else "Restart the group"
            text = f"The process group is broken and could not be re-created ({err.message}). {way_on}."
        else:
            models = f" {revived} DistributedDataParallel models were moved to it." if revived else ""
            text = f"The process group was re-created; all variables are kept.{models}"
        self._left = []
        group.tell(text)
        group.dispatcher.is_open = True
        group.dispatcher.pump()

    async def _rejoin(self, ranks: list[RankProcess], store_path: str) -> int:
        """Make these ranks join over this store; return how many DDP models were moved to the new process group."""
        for rank in ranks:
            rank.set_state("joining")
        joins = (self._rejoin_one(rank, store_path) for rank in ranks)
        outcomes = await asyncio.gather(*joins, return_exceptions=True)  # wait for all: none is left half-joined
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        return sum(revived for revived in outcomes if isinstance(revived, int))

    async def _rejoin_one(self, rank: RankProcess, store_path: str) -> int:
        rank.collective_seq, rank.process_group = 0, "broken"  # until it has joined the new one
        try:
            answer = await rank.request("rejoin", REJOIN_SECONDS, store_path=store_path)
            rank.process_group = "ok"
        finally:
            if not rank.gone.is_set():
                rank.set_state("idle")
        return int(answer["revived"])
