"""The group: its ranks and their processes, its cells, and its state."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from jupyter_dist.agent.processes import records
from jupyter_dist.agent.processes.death import Ending, OutOfMemory
from jupyter_dist.agent.processes.ending import end_ranks, give_up
from jupyter_dist.agent.processes.failedstart import died_early, too_late
from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.agent.processes.starters import RankStarter
from jupyter_dist.agent.processes.starting.environment import free_port, rank_spec
from jupyter_dist.agent.processes.starting.process import ProcessHandle
from jupyter_dist.agent.processes.starting.startmethod import Preparing
from jupyter_dist.journal.records.gathering import MANY_RANKS, Gathering, gather_seconds
from jupyter_dist.journal.writer import JournalWriter
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import join, say, words_of
from jupyter_dist.protocol.states import (
    AWAY_GROUP_STATES,
    GONE_GROUP_STATES,
    GROUP_LIFE,
    HOW_TO_BE_READY,
    GroupState,
)
from jupyter_dist.protocol.wire.specs import GroupSpec, RankSpec
from jupyter_dist.system.limits import within
from jupyter_dist.transport.frames import Header
from jupyter_dist.transport.tasks import start_task

from .cells.dispatch import Dispatcher
from .cells.execution import AgentExecution
from .comms import Comms
from .conditions import conditions
from .process_group import ProcessGroup, Todo
from .rejoin import (
    FileStores,
    Retries,
    Stores,
    explain_failure,
    give_up_waiting_for,
    give_up_waiting_for_device,
    rejoin,
)
from .shortage import Shortage

if TYPE_CHECKING:
    from jupyter_dist.agent.nodes.head import Nodes
    from jupyter_dist.protocol.models import models
    from jupyter_dist.protocol.wire.road import Stop

STARTS_AT_ONCE = 16  # on a machine


class AgentGroup:
    """The ranks of one GroupSpec, and the cells that go to them."""

    def __init__(
        self,
        spec: GroupSpec,
        directory: Path,
        on_records: Callable[[], None],
        on_group: Callable[[], None],
        on_execution: Callable[[AgentExecution], None],
    ) -> None:
        self.spec = spec
        self.journal = JournalWriter(
            directory / "journal", on_records, on_group, spec.journal_bytes, spec.user_journal_bytes
        )
        self._join_records()
        self.process_group = ProcessGroup()
        self.dispatcher = Dispatcher(self.journal, self.process_group, self._execution_changed)
        self.comms = Comms()
        self.directory = directory
        self.ranks: list[RankProcess] = []
        self.num_shapes = 0  # counts changes of the number of ranks, also the undone ones
        self.most_ranks = spec.world_size  # the highest number so far: the journal has their records
        self.replaced: models.ReplaceModel | None = None
        self.state: GroupState = "starting"
        self.generation = 0
        self.note: str | None = spec.note
        self._ending: tuple[str, str] | None = None  # a note, and the success that ends it
        self._conditions = conditions(spec)
        self.error: JupyterDistError | None = None
        self.started_at = time.time()
        self.ready_seconds: float | None = None
        self.stores: Stores = FileStores(directory)
        self.nodes: Nodes | None = None  # if its ranks are on several machines
        self.device_reports: Callable[[], list[str]] = list  # sentences on errors that the devices' driver reports
        self.on_nodes_end: Callable[[], None] = lambda: None  # their engine asks them to end
        self.on_part: Callable[[str, RankProcess, dict[str, Any]], None] = lambda *_: None  # a RankPart sent a message
        self.has_left = False  # whether ranks have left their process groups, and join again later
        self._on_group = self.on_ranks = on_group  # `on_ranks`: only ranks have changed, as cells change them
        self._on_execution = on_execution
        self._formed: asyncio.Future[None] | None = None
        self._not_idle: RankProcess | None = None  # a rank that was not, when it was last looked for
        self._rejoining: asyncio.Task[None] | None = None
        self._retries = Retries(self._try_again)
        self._by_process: dict[ProcessHandle, RankProcess] = {}
        self._ended_early: dict[ProcessHandle, Ending] = {}  # before their start was answered
        self.out_of_memory = OutOfMemory()
        self._starting_since = time.monotonic()

    # -- life ---------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Create the ranks of a new generation, without processes."""
        if self.nodes is not None:
            self.nodes.begin_generation()
        store_path = self.stores.new()
        if self._rejoining is not None:
            self._rejoining.cancel()
        master = free_port() if self.nodes is None else None
        self.ranks = [
            RankProcess(rank_spec(self.spec, rank, store_path, self.generation, master), self.journal, self)
            for rank in range(self.spec.world_size)
        ]
        self._by_process, self._ended_early = {}, {}
        self.comms.clear()
        self.dispatcher.take_ranks(self.ranks, self.spec.node_ranges)
        self._on_group()

    async def start_ranks(self, starter: RankStarter, ranks: list[RankProcess]) -> None:
        """Start the processes of these ranks and wait until every rank of the group is idle.

        Raises:
            JupyterDistError: `start_failed`, naming the rank and the cause.
        """
        seconds, self._formed = self.spec.start_timeout_seconds, asyncio.get_running_loop().create_future()
        try:  # with a limit for processes, too: a fresh Python may hang before its first line (site, a network drive)
            # Concurrently: the zygote forks one while this process handles the one before.
            gates = defaultdict[int | None, asyncio.Semaphore](lambda: asyncio.Semaphore(STARTS_AT_ONCE))
            starts = (self._start_rank(starter, rank, gates[rank.spec.node]) for rank in ranks)
            for outcome in await within(seconds, asyncio.gather(*starts, return_exceptions=True)):
                if isinstance(outcome, BaseException):
                    raise outcome
            await within(seconds, self._formed)
            if dead := [rank for rank in ranks if rank.state == "dead"]:  # since all were idle
                raise died_early(dead[0])
        except asyncio.TimeoutError as err:
            raise too_late(self.ranks, seconds) from err
        finally:
            self._formed = None

    def recreate_process_group(self) -> None:
        """Re-create the process group in the same processes, even if it is not broken; every variable is kept.

        Raises:
            JupyterDistError: `group_not_ready`, if ranks are dead or running cells.
        """
        if self.state != "ready":
            message = say("Not all ranks of group '%1' are ready.", self.spec.name)
            if self.state == "dead":
                message = say("All ranks of group '%1' are dead.", self.spec.name)
            raise JupyterDistError("group_not_ready", message, HOW_TO_BE_READY[self.state])
        self._do(self.process_group.requested(bool(self.dispatcher.queue.in_state("running"))))

    def renew_dead(self, store_path: str) -> list[RankProcess]:
        """Replace every dead rank by a new one without a process; return the new ranks."""
        renewed = {rank.rank: rank.successor(store_path) for rank in self.ranks if rank.state == "dead"}
        self.ranks = [renewed.get(rank.rank, rank) for rank in self.ranks]
        self.dispatcher.replace_ranks(self.ranks)
        return list(renewed.values())

    def take_shape(self, spec: GroupSpec, ranks: Sequence[tuple[RankProcess, RankSpec]]) -> None:
        """Have another size: these ranks, each with its place."""
        self.spec, self.ranks = spec, [rank for rank, _ in ranks]
        self.most_ranks = max(self.most_ranks, spec.world_size)
        self._join_records()
        for rank, place in ranks:
            rank.take_place(place)
        self.dispatcher.take_shape(self.ranks, spec.node_ranges)
        self._on_group()

    def begin_generation(self) -> None:
        """Begin again with new ranks, after the old ones have ended."""
        self.generation += 1
        self.replaced, self.has_left = None, False
        self.started_at, self.error, self.note = time.time(), None, None
        self._starting_since = time.monotonic()
        self.journal.append("note", b"The group was restarted.", rank=None, execution_id=None)
        self.prepare()

    async def end(self) -> list[str]:
        """End all ranks; return a sentence about each process that had to be killed."""
        self.stop_cells("ending", JupyterDistError("ended", say("The group was shut down.")))
        return await end_ranks(self.ranks, "the group was shut down", patient=True)

    def close(self) -> None:
        """Close the journal."""
        self.journal.close()

    def fail(self, error: JupyterDistError) -> None:
        """Enter the state dead, with the reason: no cell may wait for ranks that do not come."""
        self.error = error
        self.stop_cells("dead", error)

    def set_state(self, state: GroupState) -> None:
        """Enter a state and notify the server."""
        GROUP_LIFE.check(self.state, state)
        self.state = state
        self._on_group()

    async def process_exited(self, handle: ProcessHandle, ending: Ending) -> None:
        """Handle a process that a starter reaped: if it is a rank of this generation, the rank is dead."""
        rank = self._by_process.get(handle)
        if handle.node is None and not (rank and rank.was_killed):
            ending = self.out_of_memory.explain(handle, ending)
        if rank is not None:
            await self._rank_ended(rank, ending)
        else:
            self._ended_early[handle] = ending

    # -- events of ranks (RankListener) ---------------------------------------------------------------

    def ranks_changed(self) -> None:
        """Handle new states of ranks; the group is up when the last rank is idle."""
        self.on_ranks()
        if self._formed is not None and not self._formed.done() and not self._is_starting():
            self._formed.set_result(None)

    def _is_starting(self) -> bool:
        """Whether a rank is not idle. The last such rank is checked first, because thousands report their states."""
        last = self._not_idle
        is_here = last is not None and last.rank < len(self.ranks) and self.ranks[last.rank] is last
        if last is None or not is_here or last.state == "idle":
            self._not_idle = next((rank for rank in self.ranks if rank.state != "idle"), None)
        return self._not_idle is not None

    def ranks_replied(self, ranks: Sequence[RankProcess], reply: Header, seconds: Sequence[float | None]) -> None:
        """Handle ranks that finished their parts of a cell."""
        if reply.get("process_group") == "lost":
            give_up_waiting_for_device(ranks, self.living())
        self.process_group.replied(reply, (other for other in self.ranks if other.state == "idle"))
        self.dispatcher.ranks_replied(ranks, reply, seconds)
        self._settle()

    def rank_sent(self, rank: RankProcess, header: Header, content: dict[str, Any], size: int) -> None:
        """Handle a message of the code on a rank (protocol/wire/road.py)."""
        if header["kind"] in ("stopped", "stopped_over"):
            if rank.execution_id == header["execution_id"]:
                rank.awaits_user(False, cast("Stop", content) if content else None)
        elif not header["kind"].startswith("comm_"):
            self.dispatcher.rank_sent(rank, header, content)
        elif sentence := self.comms.rank_sent(rank.rank, header["kind"], header["execution_id"], content, size):
            records.write(rank, sentence)

    def part_sent(self, name: str, rank: RankProcess, content: dict[str, Any]) -> None:
        """Handle a message of a part on a rank."""
        self.on_part(name, rank, content)

    def rank_died(self, rank: RankProcess) -> None:
        """Handle the end of a rank's process."""
        if rank not in self.ranks:
            return  # it has left the group: another rank may have its number
        if self.state != "ending" and not self.has_left:
            give_up_waiting_for(rank, self.living(), self.stores)
        if self._formed is not None and not self._formed.done():
            self._formed.set_exception(died_early(rank))
            return
        self.comms.rank_died(rank.rank)
        self.dispatcher.rank_died(rank)
        self._settle()
        if self.state in ("ready", "degraded"):
            self.set_state("degraded" if self.living() else "dead")
            self.dispatcher.pump()
        elif self.state in AWAY_GROUP_STATES:
            self._died_away(rank)

    def _died_away(self, rank: RankProcess) -> None:
        """Name a rank that died while the values of the group were away: no cell reports it."""
        assert rank.exit is not None
        state = say(self.state)
        self.add_note(say("Rank %1 %2, while the group was %3.", rank.rank, rank.exit["reason"], state))
        if not self.living():
            self.fail(JupyterDistError("rank_dead", say("All ranks died while the group was %1.", state)))

    def preparing(self) -> Preparing:
        """Return how long a starter may prepare for this group, and how it reports that it imports torch."""

        def note(text: str) -> None:
            self.note = text

        return Preparing(self.spec.start_timeout_seconds, self._importing, note)

    def _importing(self) -> None:
        """Report the import of torch on the machines of the ranks."""
        for rank in self.ranks:
            if rank.state == "starting":
                rank.set_state("importing")

    def use_nodes(self, nodes: Nodes) -> None:
        """Have the ranks on these nodes. Called before `prepare`."""
        self.nodes, self.stores = nodes, nodes.stores

    def nodes_changed(self) -> None:
        """Handle a new state of a node."""
        self._on_group()

    def nodes_end(self) -> None:
        """Handle the report of a node that its engine asks it to end: it keeps running for the group's grace."""
        self.on_nodes_end()

    def let_nodes_end(self) -> None:
        """Have nodes that were asked to end do so now."""
        if self.nodes is not None:
            self.nodes.let_end()

    def running_calls(self) -> list[dict[str, Any]]:
        """Return the calls that ranks carry out now, whose files those on other machines may ask for."""
        return self.dispatcher.running_calls()

    def nodes_reached(self, ranks: range, reason: str | None) -> None:
        """Handle a lost link to these ranks, with the reason, or a link that is back."""
        for rank in (rank for rank in self.ranks if rank.rank in ranks):
            rank.reached(reason)
        if reason is None:
            self.dispatcher.pump()  # cells that waited for the link

    def add_note(self, text: str, *, until: str | None = None) -> None:
        """Show a note to users, in the group and in its journal.

        Args:
            text: a sentence.
            until: what ends it in the group, besides the next one: `cell`, a cell that succeeds; `variables`, that all
                ranks have been given variables; or what a part names with `end_note`.
        """
        self.note = text
        self._ending = None if until is None else (text, until)
        self.journal.append("note", text.encode(), rank=None, execution_id=None)
        self._on_group()

    def status_changed(self) -> None:
        """Send the status to the server: something that it is made of has changed."""
        self._on_group()

    # -- reading --------------------------------------------------------------------------------------

    def living(self, ranks: list[int] | None = None) -> list[RankProcess]:
        """Return the ranks that have a process; of the given ones, if any are given."""
        return [rank for rank in self.ranks if rank.state != "dead" and (ranks is None or rank.rank in ranks)]

    def check_takes_cells(self) -> None:
        """Raise JupyterDistError `group_not_ready` if cells cannot be queued."""
        if self.state in GONE_GROUP_STATES:
            message = say("Group '%1' is %2.", self.spec.name, say(self.state))
            raise JupyterDistError("group_not_ready", message, say("Restart it, or start another one."))

    def check_awake(self) -> None:
        """Raise JupyterDistError `group_not_ready` if the tensors of the group are not where they belong."""
        if self.state in AWAY_GROUP_STATES:
            message = say("Group '%1' is %2.", self.spec.name, say(self.state))
            raise JupyterDistError("group_not_ready", message, say("Resume it, or run a cell, which resumes it."))

    def status(self) -> dict[str, Any]:
        """Return the `group` status of docs/messaging.md."""
        queue = self.dispatcher.queue
        return {
            "state": self.state,
            "spec": self.spec.to_dict(),
            "generation": self.generation,
            "most_ranks": self.most_ranks,
            "replaced": self.replaced,
            "disk": self.journal.disk or None,
            "note": (note := join(self.note, self.journal.disk, *self._lasting()) or None),
            "note_words": words_of(note),
            "error": self.error.to_dict() if self.error else None,
            "started_at": self.started_at,
            "ready_seconds": self.ready_seconds,
            "ranks": [rank.model() for rank in self.ranks],
            "nodes": [] if self.nodes is None else self.nodes.models(),
            "spare_nodes": [] if self.nodes is None else self.nodes.spare_models(),
            "join": None if self.nodes is None else self.nodes.command(),
            "running": [execution.id for execution in queue.in_state("running")],
            "queued": [execution.id for execution in queue.in_state("queued")],
            "seq": self.journal.last_seq,
        }

    def _lasting(self) -> list[str]:
        return [*self.device_reports(), *self._conditions, *([] if self.nodes is None else self.nodes.conditions())]

    # -- inside -----------------------------------------------------------------------------------------

    def _join_records(self) -> None:
        """Let ranks share records of the journal, as suits their number."""
        loop, num_ranks = asyncio.get_running_loop(), self.spec.world_size
        is_many = num_ranks > MANY_RANKS
        self.journal.join_records(Gathering(loop, gather_seconds(num_ranks)) if is_many else loop.call_soon)

    def _execution_changed(self, execution: AgentExecution) -> None:
        self._on_execution(execution)

    def end_note(self, what: str) -> None:
        """Show a note no longer, if this ends it."""
        if self._ending == (self.note, what):
            self.note = self._ending = None
            self._on_group()

    async def _start_rank(self, starter: RankStarter, rank: RankProcess, gate: asyncio.Semaphore) -> None:
        async with gate:
            handle, channel = await starter.start(rank.spec)
            rank.started(handle, channel)
            self._by_process[handle] = rank
        if (ending := self._ended_early.pop(handle, None)) is not None:
            await self._rank_ended(rank, ending)

    async def _rank_ended(self, rank: RankProcess, ending: Ending) -> None:
        out_of_memory = ending.out_of_memory and not rank.was_killed
        shortage = Shortage(rank, self.ranks) if out_of_memory else None
        await rank.ended(ending, out_of_memory)
        if shortage is not None:
            await shortage.report(self.journal)

    # -- the process group --------------------------------------------------------------------------------

    def _settle(self) -> None:
        if not self.dispatcher.queue.in_state("running"):  # not for each of many replies
            self.end_note("cell")
            self._do(self.process_group.settle(self.living(), self.spec.world_size, is_running=False))

    def _do(self, todo: Todo) -> None:
        for text in todo.notes:
            self.add_note(text)
        if todo.news is not None:
            self.add_note(todo.news, until="cell")
        if todo.note is not None:
            self.note = todo.note
            self._on_group()
        if todo.rejoin:
            self._rejoining = start_task(self._rejoin(), "rejoin", self._rejoin_failed)
        if todo.retry:
            self._retries.plan()
        if todo.pump:
            self.dispatcher.pump()

    async def _rejoin(self) -> None:
        try:
            if self.nodes is not None:
                await self.nodes.check_paths()
            revived = await rejoin(self.living(), self.stores.new())
        except JupyterDistError as err:
            explain_failure(self.living(), err.message)
            is_whole = len(self.living()) == self.spec.world_size
            self._do(self.process_group.not_rejoined(err.message, is_whole))
        else:
            self._retries.stop()
            self._do(self.process_group.rejoined(revived))

    async def _try_again(self) -> None:
        """Try again to re-create the process group, if nodes reach each other now."""
        if self.state != "ready":
            return
        if self.nodes is not None and not await self.nodes.are_connected():
            self._retries.plan()
        else:
            self._do(self.process_group.again(bool(self.dispatcher.queue.in_state("running"))))

    def _rejoin_failed(self, error: BaseException) -> None:
        """Handle an internal error: cells must not wait forever for a new process group."""
        self._do(self.process_group.not_rejoined(f"{error!r:.200}", is_whole=True))

    def formed(self, *, is_start: bool = False) -> None:
        """Give cells to the ranks that are alive from now on; after a start, note how long it took."""
        if is_start:
            self.ready_seconds = time.monotonic() - self._starting_since
        todo = self.process_group.formed()
        living = len(self.living())
        self.set_state("ready" if living == self.spec.world_size else "degraded" if living else "dead")
        self._do(todo)

    async def end_failed_start(self, error: JupyterDistError) -> None:
        """End the ranks of a start that failed, and be dead with this reason."""
        self.error = error
        self.stop_cells("ending", error)
        await give_up(self.ranks, "the group could not be started")
        self.journal.append("note", str(error).encode(), rank=None, execution_id=None)
        self.set_state("dead")

    def stop_cells(self, state: GroupState, error: JupyterDistError) -> None:
        """Enter a state in which no cell runs; end running and queued ones with this reason."""
        self.set_state(state)
        self._retries.stop()
        self.process_group.close()
        self.dispatcher.end_all(error)
