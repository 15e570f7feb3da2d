"""The agent: preloaded at first, then a group; its lease and its shutdown."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import shutil
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyter_dist.agent.group.cells.execution import AgentExecution
from jupyter_dist.agent.group.cells.proving import Proving
from jupyter_dist.agent.group.group import AgentGroup
from jupyter_dist.agent.group.starts import GroupStarts
from jupyter_dist.agent.processes.death import Ending
from jupyter_dist.agent.processes.ending import give_up, sweep
from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.agent.processes.starters import LocalStarter, NoStarter, RankStarter
from jupyter_dist.agent.processes.starting.environment import (
    HEAD_FILES,
    check_open_files,
    free_port,
    widen_open_files,
)
from jupyter_dist.agent.processes.starting.process import ProcessHandle
from jupyter_dist.agent.processes.starting.startmethod import StartMethod
from jupyter_dist.agent.watch.freeing import Freeing
from jupyter_dist.agent.watch.look import Looks
from jupyter_dist.agent.watch.pulse import Pulse
from jupyter_dist.agent.watch.sampler import Sampler
from jupyter_dist.journal.records.gathering import MANY_RANKS
from jupyter_dist.protocol.errors import JupyterDistError, bad_request
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.states import STARTING_RANK_STATES
from jupyter_dist.protocol.wire.changes import StatusSender
from jupyter_dist.protocol.wire.specs import HEAD_VARIABLE, GroupSpec
from jupyter_dist.system.files.private import make_folder
from jupyter_dist.system.processes import end_orphans, reap
from jupyter_dist.transport.tasks import call_within, start_task

from .contact.groupjson import write_group_json
from .contact.keyed import KeyedRequests
from .contact.owners import Owners
from .contact.server_link import AT_ANY_TIME, After, Answer, RequestHandler, ServerLink, answer
from .part import AgentCore, AgentParts, find_parts

if TYPE_CHECKING:
    from jupyter_dist.agent.nodes.head import Nodes
    from jupyter_dist.protocol.models import machine, models

# A warm agent whose server is gone will never be claimed.
UNCLAIMED_LEASE_SECONDS = 30.0
CHECK_SECONDS = 1.0
GROUP_PUSH_SECONDS = 0.02
# A message about many ranks takes milliseconds of this process, of the server and of the page.
MANY_PUSH_SECONDS, MOST_PUSH_SECONDS, RANK_PUSH_SECONDS = 0.2, 1.0, 0.001
LAST_MESSAGE_SECONDS = 10.0  # a busy machine may take this long to read why the group has ended
MAX_KILLED_NAMED = 1000
# The end of a cell waits this long for a slow server to take its records; later the server reads the cell's records.
OVERTAKE_SECONDS = 1.0
MAX_OVERTAKEN_BYTES = 16 << 20  # of the cell's records; of more, the server reads the first and the last

log = logging.getLogger(__name__)


def push_seconds(num_ranks: int) -> float:
    """Return how long changes of ranks by cells are gathered: each message has all ranks, so many take longer."""
    if num_ranks <= MANY_RANKS:
        return GROUP_PUSH_SECONDS
    return min(MOST_PUSH_SECONDS, max(MANY_PUSH_SECONDS, RANK_PUSH_SECONDS * num_ranks))


class Agent:
    """The agent of one group directory, from the first connection to the last process."""

    def __init__(self, directory: Path, make_handlers: Callable[[Agent], dict[str, RequestHandler]]) -> None:
        self.group: AgentGroup | None = None
        self.lease_seconds = UNCLAIMED_LEASE_SECONDS
        self._directory = directory
        self._environment: models.GroupEnvironment = {}
        self._created_at = time.time()
        self.owners = Owners()
        self._farewell: JupyterDistError | None = None  # why the agent ends by itself while a server may be connected
        self._starter: RankStarter  # set by `run`: a zygote belongs to the loop
        self._sampler: Sampler | None = None
        self._pulse: Pulse | None = None
        self._freeing: Freeing | None = None
        self.proving = Proving()
        self._starts: GroupStarts | None = None
        self.keyed = KeyedRequests(self.group_answer)
        self._ended = asyncio.Event()
        self._group_push: asyncio.TimerHandle | None = None
        self._parts: AgentParts | None = None
        self._stored: GroupSpec | None = None  # in group.json
        self._progress: dict[str, AgentExecution] = {}  # executions on many ranks, of which some have ended their part
        # Samples are not read while no server is connected.
        self._handlers = make_handlers(self)
        self._link = ServerLink(directory / "agent.sock", self._handlers, on_left=self._server_left)
        self._status_sender = StatusSender()  # to the server that sent `hello` last

    async def run(self) -> None:
        """Serve until asked to stop, or until the lease expires."""
        find_parts()
        preload = json.loads(os.environ.get("JUPYTER_DIST_PRELOAD", "[]"))
        is_head = os.environ.pop(HEAD_VARIABLE, "") == "1"
        self._starter = NoStarter() if is_head else LocalStarter(StartMethod(preload, self._process_exited))
        self._write_group_json()
        await self._link.listen()
        self._watch_lease()
        await self._ended.wait()
        self._lease.cancel()
        await self._end()

    def stop(self) -> None:
        """End the group and the agent (SIGTERM, lease, shutdown)."""
        self._ended.set()

    # -- for requests -------------------------------------------------------------------------------

    def need_group(self) -> AgentGroup:
        """Return the group. Raises JupyterDistError while this agent is only warm."""
        if self.group is None:
            raise bad_request("This agent has no group yet.")
        return self.group

    def begin_group(self, spec: GroupSpec, environment: models.GroupEnvironment) -> None:
        """Become this group and start it in the background."""
        if self.group is not None:
            raise bad_request("This agent has its group already.")
        self._environment = environment
        self.lease_seconds = spec.lease_seconds
        if spec.owner is not None:
            self.owners.add(spec.owner)
        if spec.is_on_nodes:
            widen_open_files(HEAD_FILES)
        check_open_files(spec.world_size)
        free_port()
        try:
            self.group = AgentGroup(
                spec, self._directory, self._link.records_grew, self._group_changed, self._execution_changed
            )
            self.group.comms.on_news = self._comms_changed
            self.group.on_ranks = self._ranks_changed
            if spec.is_on_nodes:
                self.group.use_nodes(self._open_to_nodes(spec, self.group))
            self._write_group_json()
            self.group.prepare()
        except (OSError, JupyterDistError) as err:  # before anything waits for this group
            self.group = None
            if isinstance(err, JupyterDistError):
                raise
            hint = say("Free some space there, or set JUPYTER_RUNTIME_DIR.")
            raise JupyterDistError("bad_directory", f"{self._directory}: {err.strerror}.", hint) from err
        self._link.use_journal(self.group.journal)
        self._freeing, looks = Freeing(self.group), Looks(self.group)
        self._sampler = Sampler(self.group, self._sampled, lambda: looks.last)
        self._pulse = Pulse(self.group)
        self._pulse.start()
        self._starts = GroupStarts(self.group, self._starter, self._first_start_failed)
        core = AgentCore(
            group=self.group,
            starts=self._starts,
            proving=self.proving,
            looks=looks,
            begun_rank=self.begun_rank,
            used=lambda: self.need_parts().used(),
            execution_changed=self._part_changed,
            status_changed=self._group_changed,
            group_answer=self.group_answer,
            interrupt=self.interrupt,
            send=lambda *_: None,
            failed=lambda _: None,
        )
        self._parts = AgentParts(core, self._handlers)
        self._handlers.update({name: self.keyed.once(request) for name, request in self._parts.requests.items()})
        self._starts.start()

    def _open_to_nodes(self, spec: GroupSpec, group: AgentGroup) -> Nodes:
        from jupyter_dist.agent.nodes.head import Nodes  # noqa: PLC0415 - groups on one machine do not need it

        return Nodes(spec, self._directory, self._process_exited, group)

    def own(self, owner: dict[str, Any]) -> None:
        """Add this process to the owners of the group; a group that outlives all processes is not changed."""
        if self.owners.are_wanted:
            self.owners.add(owner)
            self._group_changed()

    def ends(self, at: float | None) -> None:
        """Take the end of the group's allocation, in seconds since 1970, and show it; None: it has no limit."""
        self.need_group()
        if self._parts is not None:
            self._parts.ends(at)
        self._group_changed()

    def need_starts(self) -> GroupStarts:
        """Return the GroupStarts of the group. Raises JupyterDistError while this agent is only warm."""
        self.need_group()
        assert self._starts is not None
        return self._starts

    def need_parts(self) -> AgentParts:
        """Return the parts of the group. Raises JupyterDistError while this agent is only warm."""
        self.need_group()
        assert self._parts is not None
        return self._parts

    def begun_rank(self, number: int, *, may_be_away: bool = False) -> RankProcess:
        """Return a rank that can answer; `may_be_away`: it answers without its values while they are away."""
        if not may_be_away:
            self.need_group().check_awake()
        rank = self.need_group().ranks[number]
        if rank.state in STARTING_RANK_STATES:
            raise JupyterDistError("group_not_ready", say("Rank %1 is still starting.", rank.rank), say("Try again."))
        return rank

    def interrupt(self, ranks: list[RankProcess]) -> Awaitable[None]:
        """Interrupt the cells of these ranks. The returned task ends when it is known which ranks were reached."""
        assert self._pulse is not None
        assert self._freeing is not None
        ranks = ranks if self._parts is None else self._parts.interrupted(ranks)
        self.proving.acted()
        self._freeing.interrupt(ranks)
        return self._pulse.check_interrupted(ranks)

    async def end_group(self) -> list[str]:
        """End all ranks and the processes they started; return a sentence about each that had to be killed."""
        if self._starts is not None:
            self._starts.cancel()
        self.watch(0)
        if self._parts is not None:
            self._parts.stop()
        if self._pulse is not None:
            self._pulse.stop()
        killed = await self.group.end() if self.group is not None else []
        await self._current_starter.settle()
        killed = list(dict.fromkeys(killed + await sweep(os.getpid(), self._current_starter.children())))
        more = len(killed) - MAX_KILLED_NAMED
        return [*killed[:MAX_KILLED_NAMED], *([f"{more} more processes were killed."] if more > 0 else [])]

    def _server_left(self) -> None:
        """Handle the end of the connection to the server: the next one gets the whole status first."""
        self._status_sender = StatusSender()
        self.watch(0)

    def watch(self, seconds: float) -> None:
        """Send memory samples at this interval; 0 stops."""
        if self._sampler is not None:
            self._sampler.watch(seconds)

    def status(self) -> dict[str, Any]:
        """The `group` status of docs/messaging.md."""
        common = {
            "lease_seconds": self.lease_seconds,
            "ends_with": self.owners.model(),
            "agent_pid": os.getpid(),
            "environment": self._environment,
        }
        if self.group is None:
            return {"state": "warm", "seq": 0, **common}
        parts = {} if self._parts is None else self._parts.status()
        fields = {} if self._parts is None else self._parts.group_fields()
        return {**self.group.status(), **fields, "parts": parts, **common}

    def group_answer(self) -> Answer:
        """Return the answer of a request that changes the group."""
        return answer(group=self.status())

    @property
    def _current_starter(self) -> RankStarter:
        return self._starter if self._starts is None else self._starts.starter

    def _first_start_failed(self, error: JupyterDistError) -> None:
        """End the agent, with a last message that has the reason: the server must not report the group as lost."""
        self._farewell = error
        self.stop()

    async def _process_exited(self, handle: ProcessHandle, ending: Ending) -> None:
        if self.group is not None:
            await self.group.process_exited(handle, ending)

    # -- changes for the server -----------------------------------------------------------------------------

    def _group_changed(self) -> None:
        """Send the group's status soon: its own state, a node or a note has changed, or a rank has died."""
        self._push_within(min(MANY_PUSH_SECONDS, push_seconds(self._num_ranks)))

    def _ranks_changed(self) -> None:
        """Gather the changes of many ranks into one message."""
        if self._parts is not None:
            self._parts.ranks_changed()
        self._push_within(push_seconds(self._num_ranks))

    @property
    def _num_ranks(self) -> int:
        return 0 if self.group is None else self.group.spec.world_size

    def _push_within(self, seconds: float) -> None:
        self._group_push = call_within(self._group_push, seconds, self._push_group)

    def _store_spec(self) -> None:
        """Write group.json again after a change of the spec."""
        if self.group is not None and self.group.spec is not self._stored:
            try:
                self._write_group_json()
            except OSError as err:  # a full disk; the journal's note is about that
                log.warning("Cannot write group.json: %s", err)

    def _push_group(self) -> None:
        self._store_spec()
        if self._group_push is not None:
            self._group_push.cancel()
        self._group_push = None
        if self.group is not None:
            self.group.journal.flush()  # what ranks have sent is there before the state that they had afterwards
        self._link.push("group", "group_changed", lambda: self._status_sender.message(self.status()), at_once=True)
        progress, self._progress = self._progress, {}
        for execution in progress.values():
            self._push_execution(execution)

    def _execution_changed(self, execution: AgentExecution) -> None:
        if self._parts is not None:  # first: they change what is sent here
            self._parts.changed(execution)
        # Queued cells are part of the group's status, and no rank reports them. A client that waits for the end of a
        # cell may read its group next: the idle ranks are reported before the end.
        if execution.is_final:
            self._progress.pop(execution.id, None)  # sent below, once: its bytes are counted until then
            self._push_group()
        else:
            self._ranks_changed()
        if self._is_progress(execution):
            self._progress[execution.id] = execution
        else:
            self._progress.pop(execution.id, None)
            self._push_execution(execution)

    @staticmethod
    def _is_progress(execution: AgentExecution) -> bool:
        """Whether the change is only that one of many ranks has ended its part: it is sent together with others."""
        return execution.state == "running" and 0 < execution.num_running < len(execution.spec.ranks) > MANY_RANKS

    def _part_changed(self, execution: AgentExecution) -> None:
        """Send an execution to which a part has added."""
        self._push_execution(execution)
        if self._freeing is not None:
            self._freeing.judged(execution)

    def _push_execution(self, execution: AgentExecution) -> None:
        make = lambda: {"execution": execution.model()}  # noqa: E731
        # Queued and running can be sent at any time.
        after = self._after_output(execution) if execution.is_final else AT_ANY_TIME
        self._link.push(execution.id, "execution", make, after=after, at_once=execution.is_final)

    def _after_output(self, ended: AgentExecution) -> After:
        """Return when an end is sent: after the cell's output, unless that is behind a flood and can be read later."""
        journal = self.need_group().journal
        num_bytes = 0 if ended.begin_seq is None else journal.take_output_bytes(ended.id)  # nothing, if it never began
        can_be_read = num_bytes is not None and num_bytes <= MAX_OVERTAKEN_BYTES and not journal.is_full
        return After(journal.last_seq, time.monotonic() + OVERTAKE_SECONDS if can_be_read else math.inf)

    def _comms_changed(self) -> None:
        """Send news of widgets after the text that was written before them."""
        assert self.group is not None
        comms = self.group.comms
        self._link.push("comms", "comms", comms.take_news, after=After(self.group.journal.last_seq), at_once=True)

    def _sampled(self, sample: machine.MemorySample) -> None:
        self._link.push("sample", "sample", lambda: {"sample": sample})

    # -- ending ---------------------------------------------------------------------------------------

    def _watch_lease(self, _: BaseException | None = None) -> None:
        # Whatever failed, groups that no server wants must end.
        self._lease = start_task(self._keep_lease(), "lease", self._watch_lease)

    async def _keep_lease(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            self._reap()
            if self.group is not None:
                self.group.out_of_memory.look()
                await self._keep_folder(self.group)
                if self._parts is not None:
                    self._parts.tick()
            if self.owners.have_changed():
                self._group_changed()
            left_seconds = self.owners.left_seconds
            if left_seconds is not None and left_seconds <= 0:
                self._farewell = self.owners.farewell()
                self.stop()
            idle_seconds = time.monotonic() - self._link.last_contact
            if not self._link.is_connected and idle_seconds > self.lease_seconds:
                self.stop()

    async def _keep_folder(self, group: AgentGroup) -> None:
        """Make the folder again if it was removed, as by a cleaner of old files: no server would find the group."""
        try:
            os.stat(self._directory / "agent.sock")
        except FileNotFoundError:
            make_folder(self._directory)
            self._write_group_json()
            group.journal.begin_again()
            await self._link.listen()
            group.add_note("Another program removed the group's folder. It was made again; the log begins here.")

    def _reap(self) -> None:
        known = self._current_starter.children() | (self._parts.children() if self._parts else set())
        reap(known)
        # Orphans go to the shim of their rank; an orphan that arrives here has lost both the shim and the zygote.
        end_orphans(known)

    async def _end(self) -> None:
        """Clean up: leave no process, no socket and no file."""
        await self.end_group()
        if self.group is not None and self._farewell is not None:
            await give_up(self.group.ranks, "the group has ended")  # ranks that never got a process
            self.group.fail(self._farewell)
            self._push_group()
            await self._link.flush(LAST_MESSAGE_SECONDS)
        await self._current_starter.stop()
        if self.group is not None and self.group.nodes is not None:
            await self.group.nodes.stop()
        await sweep(os.getpid(), ())
        if self.group is not None:
            self.group.close()
        await self._link.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _write_group_json(self) -> None:
        self._stored = None if self.group is None else self.group.spec
        spec = self.group.spec if self.group is not None else None
        most_ranks = self.group.most_ranks if self.group is not None else 0
        write_group_json(self._directory, spec, self._environment, self._created_at, most_ranks)
