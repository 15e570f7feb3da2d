"""Follows a group's agent: state, executions, views and samples, across lost connections."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import math
import re
import time
from collections.abc import Callable
from typing import Any

from jupyter_dist.journal.records.sound import is_sound
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.wire.changes import StatusReceiver
from jupyter_dist.protocol.wire.specs import LOCAL, PROTOCOL_VERSION, closed, is_compatible
from jupyter_dist.server.devices.samples import MemorySamples
from jupyter_dist.server.folding.views import View
from jupyter_dist.server.folding.viewstore import ViewStore
from jupyter_dist.server.spawner.directories import GroupDirectory
from jupyter_dist.server.spawner.process import AgentProcess
from jupyter_dist.system.limits import within
from jupyter_dist.transport.frames import Header
from jupyter_dist.transport.tasks import start_task

from .comms import CommFeed
from .executions import Executions, is_final
from .history import History
from .link import AgentLink
from .status import WATCH_SECONDS, Changes, GroupStatus

RECONNECT_AFTER_SECONDS = (0.0, 0.1, 0.4, 1.0)
# A quiet agent is pinged; if it does not answer, it is shown as unresponsive, within 5 s in total.
ASK_EVERY_SECONDS = 1.5
ANSWER_SECONDS = 2.5
HELLO_SECONDS = 60.0  # long, so that an agent that is stopped and continues can still answer the same request

_DIGITS = re.compile(r"[\d.]+")

Topic = tuple[Any, ...]

log = logging.getLogger(__name__)


class GroupMirror:
    """The state of a group, kept up to date from its agent: from the waiting agent until the group has been removed."""

    def __init__(self, directory: GroupDirectory, server_id: str, notify: Callable[[Topic], None]) -> None:
        self.directory = directory
        self.id = directory.group_id
        self.executions = Executions(self.id)
        self.memory = MemorySamples()
        self.comms = CommFeed()
        self.status = GroupStatus()
        self._notify = notify
        self.link = AgentLink(directory.socket_path, server_id, self._on_message, self._on_lost)
        self.history = History(directory.journal_path, self.executions, self._is_sound)
        self._damaged = 0  # records that were skipped
        self._views = ViewStore(self.history.execution_records)
        self._seq = 0  # of the last record that has arrived
        self._since: int | None = None  # the record after which this server follows
        self._notices: list[str] | None = None  # as they were last sent to followers of executions
        self._watchers = 0
        self.is_ending = False
        self._connecting: asyncio.Task[None] | None = None
        self._found = asyncio.Event()  # set when the state of the agent is known
        self._asking: asyncio.Task[None] | None = None
        self._changes = Changes()
        self._receiver = StatusReceiver()
        self._handlers = {
            "record": self._on_record,
            "group": self.on_group,  # of agents that jupyter_dist 0.2 has started
            "group_changed": self._on_group_changed,
            "execution": self.on_execution,
            "sample": self._on_sample,
            "comms": self._on_comms,
            "dropped": self._on_dropped,
        }

    @property
    def is_attached(self) -> bool:
        """Whether the agent of the group can be reached."""
        return self.link.answers

    @property
    def state(self) -> str:
        """The GroupState, or `warm` while the agent has no group yet."""
        return self.status.state

    @property
    def name(self) -> str:
        """Return the name that the user gave the group."""
        return self.status.name

    @property
    def world_size(self) -> int:
        """Return the number of ranks."""
        return self.status.world_size

    def model(self) -> models.GroupModel:
        """Return the Group of docs/api.md."""
        # The agent reports an execution before its group: what is running must agree with the executions.
        running, queued = self.executions.in_state("running"), self.executions.in_state("queued")
        return self.status.model(self.id, running, queued)

    async def view(self, execution_id: str) -> View:
        """Return the view of an execution: complete, if it has ended."""
        model = self.executions.get(execution_id)
        return await self._views.get(execution_id, model["ranks"], is_final=is_final(model))

    async def execution(self, execution_id: str) -> models.ExecutionModel:
        """Return the execution with its code. Raises JupyterDistError `unknown_execution`, ..."""
        self.executions.get(execution_id)
        with contextlib.suppress(JupyterDistError):  # the state is shown even if the disk fails
            await self.history.fetch_code(execution_id)
        return self.executions.get(execution_id)

    async def log_after(self, rank: int, seq: int) -> tuple[list[models.LogRecord], int]:
        """Return the newest log records after `seq`, and how many were skipped."""
        self.check_had_rank(rank)
        return (await self.history.ring(rank)).after(seq)

    def check_had_rank(self, rank: int) -> None:
        """Raise JupyterDistError `unknown_rank` unless the rank exists, or has left the group in a resize."""
        if not 0 <= rank < self.status.most_ranks:
            self.check_rank(rank)

    def check_rank(self, rank: int) -> None:
        """Raise JupyterDistError `unknown_rank` unless the rank exists."""
        if not 0 <= rank < self.world_size:
            message = say("Group '%1' has no rank %2.", self.name, rank)
            raise JupyterDistError("unknown_rank", message, say("Its ranks are 0 to %1.", self.world_size - 1))

    # -- the connection ---------------------------------------------------------------------------------

    async def attach(self, hello_seconds: float = HELLO_SECONDS) -> None:
        """Connect to the agent, and follow its group if it has one.

        Raises:
            JupyterDistError: `agent_unreachable`, `timed_out`, or `incompatible`.
        """
        written = self.directory.read_group_json()
        protocol = written.get("protocol", PROTOCOL_VERSION)
        if not is_compatible(protocol):
            raise JupyterDistError("incompatible", say("The group's agent uses protocol %1.", f"{protocol!r:.20}"))
        await self.link.open(self._on_hello, hello_seconds, str(written.get("version", ""))[:20])
        if self.status.reported_state == "warm":
            return
        try:
            await self._take_up()
        except BaseException:  # half attached, the group would be shown as ready, without its output
            await self.link.close()
            self.comms.reset()
            raise

    async def _take_up(self) -> None:
        """Follow the group from where this server left it."""
        await self._fetch_executions()
        # After a lost connection from the same record, even if none had arrived: expected views then miss no record.
        since = int(self.status.fields["seq"]) if self._since is None else max(self._seq, self._since)
        await self.follow(since)
        await self._complete_views()
        # Also if no page watches: the server before may have left pages that did.
        await self.link.request("watch", seconds=WATCH_SECONDS if self._watchers else 0)
        self._notify(("comms", self.id))

    def connect(self) -> None:
        """Attach in the background; retry while the agent is alive."""
        if self._connecting is None or self._connecting.done():
            self._found.clear()
            self._connecting = start_task(self._connect(), f"connect {self.id}", self._connect_later)

    def _connect_later(self, _: BaseException) -> None:
        """Try again after an error that is not the agent's, such as no free descriptors in this process."""
        if not self.is_ending:
            asyncio.get_running_loop().call_later(RECONNECT_AFTER_SECONDS[-1], self.connect)

    async def adopt(self, group_json: dict[str, Any], seconds: float) -> None:
        """Adopt a group that an earlier server left; if its agent does not answer in time, show it as unresponsive."""
        self.status.take_remains(group_json)
        self.connect()
        try:
            await within(seconds, self._found.wait())
        except asyncio.TimeoutError:
            self.mark_silent()

    async def detach(self) -> None:
        """Leave the group to the next server."""
        await self.stop_tasks()
        await self.link.close()
        self.directory.release()

    def agent_process(self) -> AgentProcess | None:
        """Return the agent's process, if it is alive."""
        pid = self.status.fields.get("agent_pid") or self.directory.read_group_json().get("agent_pid")
        return AgentProcess.find(self.directory.path, pid)

    def agent_lives(self) -> bool:
        """Whether the agent's process is alive, even if it does not respond."""
        with self.agent_process() or contextlib.nullcontext() as process:
            return process is not None

    def mark_lost(self, last_words: str) -> None:
        """Mark the group as lost: its agent has ended, and its ranks with it, or after the lease of their nodes."""
        spec = self.status.fields.get("spec", {})
        message = say("The agent of group '%1' has ended, and its ranks with it.", self.name)
        if spec.get("launcher", LOCAL) != LOCAL:
            seconds = f"{spec['node_lease_seconds']:g}"
            message = say(
                "The agent of group '%1' has ended, and its nodes end their ranks within %2 s.", self.name, seconds
            )
        hint = last_words or say("Shut the group down and start it again.")
        error = JupyterDistError("agent_unreachable", message, hint)
        self.status.mark_lost(error)
        for execution_id in self.executions.mark_lost(error):
            self._notify(("execution", self.id, execution_id))
        self.changed()

    def mark_silent(self) -> None:
        """Mark the group as unresponsive: the last reported state is no longer shown as current."""
        if self.status.silence is not None:
            return
        process = self.agent_process()
        if process is None:
            return  # reported when its connection ends
        with process:
            agent = self.name, process.pid
            message = (
                say("The agent of group '%1' (process %2) is stopped.", *agent)
                if process.is_stopped
                else say("The agent of group '%1' (process %2) does not respond.", *agent)
            )
        hint = say(
            "Its ranks keep their variables, and it is usable again as soon as it responds. Shutting it down ends it."
        )
        self.status.silence = JupyterDistError("agent_unreachable", message, hint)
        self.link.is_silent = True
        log.warning("jupyter_dist: %s", self.status.silence.message)
        self.changed()

    def _mark_received(self) -> None:
        self.link.is_silent = False
        if self.status.silence is not None:
            self.status.silence = None
            self.changed()

    async def _connect(self) -> None:
        delays = itertools.chain(RECONNECT_AFTER_SECONDS, itertools.repeat(RECONNECT_AFTER_SECONDS[-1]))
        for delay in delays:
            await asyncio.sleep(delay)
            process = self.agent_process()
            if process is None:  # if alive, the agent is only slow or stopped, and its ranks are not lost
                if self.status.reported_state not in ("dead", "warm"):
                    self.mark_lost(self.directory.log_tail(600))
                break
            with process:
                await self._try_to_attach(process)
            if self.link.is_open:
                break
        self._found.set()
        self.changed()

    async def _try_to_attach(self, process: AgentProcess) -> None:
        try:
            await self.attach()
        except JupyterDistError as err:
            log.info("jupyter_dist: cannot connect to %s: %s", self.directory.path, err)
            if err.code == "incompatible":
                self.status.mark_incompatible(self.directory.read_group_json())
                self.changed()
                self._found.set()
                await process.wait(None)

    async def _fetch_executions(self) -> None:
        """Fetch all executions page by page, in order with the updates that the agent sends meanwhile."""
        after, more = None, True
        while more:
            answer, _ = await self.link.request("executions", take=self._on_executions, after=after)
            more = bool(answer["more"])
            after = answer["executions"][-1]["id"] if answer["executions"] else None

    async def _ask_for_life(self) -> None:
        """Detect within seconds that the agent stopped responding, or responds again."""
        while self._is_silent_since(math.inf):
            quiet_seconds = time.monotonic() - self.link.received_at
            # As soon as the agent has been quiet for that long, not up to twice as late.
            await asyncio.sleep(ASK_EVERY_SECONDS - (quiet_seconds if quiet_seconds < ASK_EVERY_SECONDS else 0.0))
            asked_at = time.monotonic()
            if asked_at - self.link.received_at >= ASK_EVERY_SECONDS:
                await self.link.responds(ANSWER_SECONDS)
                if self._is_silent_since(asked_at):
                    await asyncio.sleep(0.05)  # first handle messages that arrived while this process was blocked
                if self._is_silent_since(asked_at):
                    self.mark_silent()
                    continue
            if self._is_silent_since(math.inf):
                self._mark_received()

    def _is_silent_since(self, at: float) -> bool:
        return self.link.is_open and self.link.received_at < at

    async def stop_tasks(self) -> None:
        """Stop connecting and pinging, because the group ends, or is left to the next server."""
        self.is_ending = True
        tasks = [task for task in (self._connecting, self._asking) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _complete_views(self) -> None:
        """Read the missing records of executions that ended while this server could not follow them."""
        for execution_id in self._views.open():
            with contextlib.suppress(JupyterDistError):  # dropped meanwhile, or the connection is lost again
                if is_final(self.executions.get(execution_id)):
                    await self.view(execution_id)
                    self._notify(("view", self.id, execution_id))

    async def follow(self, since: int) -> None:
        """Receive the records of the group's journal after this one."""
        self._since = since
        await self.link.request("follow", since=since)

    # -- waiting ----------------------------------------------------------------------------------------

    async def wait_until(self, is_so: Callable[[], bool], seconds: float) -> bool:
        """Wait until the condition holds, at most this long; return whether it does."""
        return await self._changes.wait_until(is_so, seconds)

    async def wait_ended(self, execution_id: str, seconds: float) -> bool:
        """Wait until an execution has ended; return whether it has."""
        return await self.wait_until(lambda: is_final(self.executions.get(execution_id)), seconds)

    async def watch_memory(self, change: int) -> None:
        """Add (1) or remove (-1) a watcher; samples are taken while there is one."""
        before, self._watchers = self._watchers, self._watchers + change
        if bool(before) != bool(self._watchers) and self.link.answers:
            await self.link.request("watch", seconds=WATCH_SECONDS if self._watchers else 0)

    async def fetch_comms(self) -> Header:
        """Return all open comms, with their state. Raises JupyterDistError `agent_unreachable`, ..."""
        answer, _ = await self.ask("comms")
        return answer

    # -- messages of the agent ---------------------------------------------------------------------------

    def _on_hello(self, header: Header, payload: bytes) -> None:
        self.status.protocol = header["protocol"]
        self._receiver = StatusReceiver()
        self.on_group(header, payload)
        self._mark_received()
        if not self.is_ending and (self._asking is None or self._asking.done()):
            self._watch_life()

    def _watch_life(self, _: BaseException | None = None) -> None:
        self._asking = start_task(self._ask_for_life(), f"ask {self.id}", self._watch_life)

    def _on_executions(self, header: Header, payload: bytes) -> None:
        for execution in header["executions"]:
            self.executions.update(execution)

    def _on_message(self, header: Header, payload: bytes) -> None:
        self._mark_received()
        handler = self._handlers.get(header.get("t", ""))
        if handler is not None:
            handler(header, payload)

    def _on_record(self, header: Header, payload: bytes) -> None:
        if not self._is_sound(header):
            return
        self._seq = int(header["seq"])
        if header["kind"] == "begin":
            self.executions.set_code(header["execution_id"], payload.decode("utf-8", "replace"))
            self.executions.counts[header["execution_id"]] = header.get("execution_count")
        execution_id = self._views.feed(header, payload)
        if execution_id is not None:
            self._notify(("view", self.id, execution_id))
        for rank in self.history.feed(header, payload, self.status.most_ranks):
            self._notify(("log", self.id, rank))

    def _is_sound(self, header: Header) -> bool:
        """Whether a record is valid; the first invalid one is written to the server's log."""
        if is_sound(header, self.status.most_ranks):
            return True
        if not self._damaged:
            log.warning("jupyter_dist: the journal of group '%s' is damaged: skipping %.200r.", self.name, header)
        self._damaged += 1
        return False

    def on_group(self, header: Header, payload: bytes) -> None:
        """Handle the group's state, which the agent sends by itself and as an answer."""
        before, self.status.fields = self.status.fields.get("disk"), header["group"]
        if "spec" in header["group"]:  # a waiting agent has none
            self.status.update(spec=closed(header["group"]["spec"]))
        if self.directory.gets_values:  # the file was written again, if the group was resized
            self.directory.read_group_json()
        self.directory.keep()
        disk = self.status.fields.get("disk")
        if disk and _DIGITS.sub("", disk) != _DIGITS.sub("", before or ""):  # its numbers change all the time
            log.warning("jupyter_dist: group '%s': %s", self.name, disk)
        self.changed()

    def _on_group_changed(self, header: Header, payload: bytes) -> None:
        status = self._receiver.status(header)
        if status is None:  # one could not be sent: on the next connection, the agent sends all again
            log.warning("jupyter_dist: group '%s': a message of its agent is missing.", self.name)
            self.link.drop()
        else:
            self.on_group({"group": status}, payload)

    def on_execution(self, header: Header, payload: bytes) -> None:
        """Handle the state of an execution."""
        model = self.executions.update(header["execution"])
        self._notify(("execution", self.id, model["id"]))
        self._changes.wake()

    def on_submitted(self, header: Header, payload: bytes) -> None:
        """Handle the answer to a cell that was submitted."""
        self.on_execution(header, payload)
        told = header["execution"]
        if told["begin_seq"] is None or told["begin_seq"] > self._seq:
            self._views.expect(told["id"], told["ranks"])  # not for a retry, whose records were read already

    def _on_dropped(self, header: Header, payload: bytes) -> None:
        log.error("jupyter_dist: group '%s': %s", self.name, header["error"]["message"])

    def _on_comms(self, header: Header, payload: bytes) -> None:
        self.comms.feed(header)
        self._notify(("comms", self.id))

    def _on_sample(self, header: Header, payload: bytes) -> None:
        self.memory.add(header["sample"])
        self._notify(("memory", self.id))

    def _on_lost(self) -> None:
        self.comms.reset()
        if not self.is_ending and self.status.reported_state != "warm":
            self.connect()

    async def ask(self, t: str, payload: bytes = b"", **fields: Any) -> tuple[Header, bytes]:
        """Send a request to the agent, unless it is known not to respond: it might carry the request out much later."""
        self.status.check_reachable()
        if self.status.is_gone and not self.link.is_open:
            self.status.check_takes_cells()
        return await self.link.request(t, payload, **fields)

    def changed(self) -> None:
        """Notify the followers of the group."""
        self._notify(("groups",))
        if (notices := self.status.notices) != self._notices:
            self._notices = notices
            self._notify(("nodes", self.id))
        self._changes.wake()
