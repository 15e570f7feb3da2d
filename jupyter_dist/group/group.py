"""One group as the server sees it: its agent's word, its executions, their views and its ranks' logs."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import secrets
from collections.abc import Callable, Iterator
from typing import Any

from jupyter_dist.folding.views import View
from jupyter_dist.folding.viewstore import ViewStore
from jupyter_dist.journal.reader import JournalCursor
from jupyter_dist.launcher.directories import GroupDirectory
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.frames import Header
from jupyter_dist.protocol.ranks import format_ranks, parse_ranks
from jupyter_dist.protocol.specs import ExecutionSpec, GroupSpec

from .executions import ExecutionModel, Executions, is_final
from .history import History
from .link import AgentLink
from .logs import LogReader, LogRecord, concerned_ranks
from .memory import WATCH_SECONDS, MemorySamples
from .status import GroupStatus
from .waiting import Changes

MAX_CODE_BYTES = 16 << 20
SHUTDOWN_SECONDS = 20.0
GONE_SECONDS = 10.0
RECONNECT_AFTER_SECONDS = (0.1, 0.4, 1.0)

Topic = tuple[Any, ...]


class Group:
    """A group, from the agent that waits to become it until nothing of it is left."""

    def __init__(self, directory: GroupDirectory, server_id: str, notify: Callable[[Topic], None]) -> None:
        self.directory = directory
        self.id = directory.group_id
        self.executions = Executions(self.id)
        self.memory = MemorySamples()
        self.status = GroupStatus()
        self._notify = notify
        self._link = AgentLink(directory.socket_path, server_id, self._on_message, self._on_lost)
        self._history = History(directory, self._link, self.executions)
        self._views = ViewStore(self._history.execution_records)
        self._seq = 0
        self._watchers = 0
        self._ending = False
        self._reconnecting: asyncio.Task[None] | None = None
        self._changes = Changes()
        self._handlers = {
            "record": self._on_record,
            "group": self._on_group,
            "execution": self._on_execution,
            "sample": self._on_sample,
        }

    @property
    def is_attached(self) -> bool:
        """Whether its agent can be asked."""
        return self._link.is_open

    @property
    def state(self) -> str:
        """A GroupState, or `warm` while the agent has no group yet."""
        return self.status.state

    @property
    def name(self) -> str:
        """The name its user gave it."""
        return self.status.name

    @property
    def world_size(self) -> int:
        """How many ranks it has."""
        return self.status.world_size

    def model(self) -> dict[str, Any]:
        """The Group of docs/api.md."""
        return self.status.model(self.id)

    # -- life -----------------------------------------------------------------------------------------

    async def attach(self) -> None:
        """Connect to the agent, and follow what it has if it is a group already.

        Raises:
            JupyterDistError: `agent_unreachable`, `timed_out`, or `bad_request` from another version.
        """
        hello = await self._link.open()
        self.status.fields = hello["group"]
        for execution in hello["executions"]:
            self.executions.update(execution)
        if self.state != "warm":
            await self._follow(self._seq or int(hello["seq"]))

    async def start(self, spec: GroupSpec, environment: dict[str, Any]) -> None:
        """Make the waiting agent this group; its ranks come up from now on."""
        answer, _ = await self._link.request("start", spec=spec.to_dict(), environment=environment)
        self.status.fields = answer["group"]
        await self._follow(0)
        self._changed()

    async def restart(self) -> None:
        """End all ranks and start new ones."""
        await self._renew("restart")

    async def replace(self) -> None:
        """Give every dead rank a new process; the others keep theirs, and their variables.

        Raises:
            JupyterDistError: `group_not_ready`, when no rank is dead.
        """
        await self._renew("replace")

    async def reform(self) -> None:
        """Form the process group anew in the same processes; every variable is kept.

        Raises:
            JupyterDistError: `group_not_ready`, when ranks are dead, or run cells.
        """
        answer, _ = await self._ask("reform")
        self.status.fields = answer["group"]
        self._changed()

    async def kill(self, rank: int) -> None:
        """End one rank's process, whatever it does; the others are left alone."""
        self.check_rank(rank)
        answer, _ = await self._ask("kill", rank=rank)
        self.status.fields = answer["group"]
        self._changed()

    async def shutdown(self) -> list[str]:
        """End everything; returns what had to be killed, when no process and no file is left."""
        self._ending = True
        if self._reconnecting is not None:
            self._reconnecting.cancel()
        killed: list[str] = []
        if self._link.is_open:
            with contextlib.suppress(JupyterDistError):
                answer, _ = await self._link.request("shutdown", timeout_seconds=SHUTDOWN_SECONDS)
                killed = answer["killed"]
        if not await self._link.wait_exit(GONE_SECONDS):
            self._link.kill_agent()
            await self._link.wait_exit(GONE_SECONDS)
            killed.append("The group's agent did not end by itself and was killed.")
        await self._link.close()
        self.directory.remove()
        self.status.update(state="dead")
        self._changed()
        return killed

    async def detach(self) -> None:
        """Leave the group to the next server."""
        self._ending = True
        if self._reconnecting is not None:
            self._reconnecting.cancel()
            await asyncio.gather(self._reconnecting, return_exceptions=True)
        await self._link.close()
        self.directory.release()

    # -- cells ----------------------------------------------------------------------------------------

    async def execute(self, code: str, ranks: str, **fields: Any) -> ExecutionModel:
        """Run a cell on the ranks that the expression names; returns once it is queued.

        Raises:
            JupyterDistError: `bad_ranks`, `group_not_ready`, `rank_dead`, `too_large`, ...
        """
        payload = code.encode("utf-8", "surrogatepass")
        if len(payload) > MAX_CODE_BYTES:
            message = f"The cell has {len(payload)} bytes; the limit is {MAX_CODE_BYTES}."
            raise JupyterDistError("too_large", message, "Put data into a file.")
        self.status.check_takes_cells()
        chosen = list(parse_ranks(ranks, self.world_size))
        spec = ExecutionSpec(execution_id=f"e-{secrets.token_hex(6)}", ranks=chosen, **fields)
        answer, _ = await self._link.request("execute", payload, execution=spec.to_dict())
        self.executions.set_code(spec.execution_id, code)
        known = [model for model in self.executions.all() if model["id"] == spec.execution_id]
        if not known:  # else the agent has told of a newer state already
            self.executions.update(answer["execution"])
        return self.executions.get(spec.execution_id)

    async def cancel(self, execution_id: str) -> None:
        """Cancel a queued execution, interrupt a running one."""
        self.executions.get(execution_id)
        await self._ask("cancel", execution_id=execution_id)

    async def interrupt(self, ranks: str) -> dict[str, str]:
        """Interrupt what runs on these ranks."""
        answer, _ = await self._ask("interrupt", ranks=list(parse_ranks(ranks, self.world_size)))
        found = {key: format_ranks(answer[key]) for key in ("interrupted", "idle")}
        if answer.get("unresponsive"):
            found["unresponsive"] = format_ranks(answer["unresponsive"])
        return found

    async def empty_cache(self, ranks: str) -> dict[str, int]:
        """Collect garbage and empty the device caches of these ranks; freed bytes by rank."""
        chosen = list(parse_ranks(ranks, self.world_size))
        answer, _ = await self._ask("empty_cache", ranks=chosen)
        return dict(answer["freed_bytes"])

    async def complete(self, rank: int, code: str, cursor_pos: int | None) -> dict[str, Any]:
        """What the names of a rank make of the code before the cursor: `matches`, `cursor_start`, `cursor_end`.

        Raises:
            JupyterDistError: `unknown_rank`, `rank_dead`, `timed_out` when the rank cannot answer at once, ...
        """
        self.check_rank(rank)
        position = len(code) if cursor_pos is None else min(cursor_pos, len(code))
        payload = code.encode("utf-8", "replace")
        answer, _ = await self._ask("complete", payload, rank=rank, cursor_pos=position)
        return {name: answer[name] for name in ("matches", "cursor_start", "cursor_end")}

    async def view(self, execution_id: str) -> View:
        """The view of an execution."""
        model = self.executions.get(execution_id)
        return await self._views.get(execution_id, model["ranks"])

    def peek_view(self, execution_id: str) -> View | None:
        """The view, if it is in memory."""
        return self._views.peek(execution_id)

    async def wait_until(self, is_so: Callable[[], bool], seconds: float) -> bool:
        """Wait until the condition holds, at most so long; whether it does."""
        return await self._changes.wait_until(is_so, seconds)

    async def wait_ended(self, execution_id: str, seconds: float) -> bool:
        """Wait until an execution has ended; whether it has."""
        return await self.wait_until(lambda: is_final(self.executions.get(execution_id)), seconds)

    # -- logs and memory --------------------------------------------------------------------------------

    async def log_page(self, rank: int, before: int | None, max_bytes: int) -> dict[str, Any]:
        """A page of a rank's log: the newest records, or those before one."""
        self.check_rank(rank)
        return await self._history.log_page(rank, before, max_bytes)

    async def log_after(self, rank: int, seq: int) -> tuple[list[LogRecord], int]:
        """The newest log records after `seq`, and how many more there are than that."""
        self.check_rank(rank)
        return (await self._history.ring(rank)).after(seq)

    def log_chunks(self, rank: int) -> Iterator[list[LogRecord]]:
        """The whole log of a rank, about a megabyte of the journal at a time. Reads files: for a thread."""
        cursor = JournalCursor(self.directory.journal_path)
        reader = LogReader(rank, self.executions.counts)
        try:
            while records := cursor.read():
                mine = (r for r in records if rank in concerned_ranks(r.header, self.world_size))
                converted = (reader.convert(record.header, record.payload) for record in mine)
                yield [record for record in converted if record is not None]
        finally:
            cursor.close()

    def check_rank(self, rank: int) -> None:
        """Raise JupyterDistError `unknown_rank` unless the rank exists."""
        if not 0 <= rank < self.world_size:
            message = f"Group '{self.name}' has no rank {rank}."
            raise JupyterDistError("unknown_rank", message, f"Its ranks are 0 to {self.world_size - 1}.")

    async def watch_memory(self, change: int) -> None:
        """One watcher more (1) or less (-1): samples are taken while there is one."""
        before, self._watchers = self._watchers, self._watchers + change
        if bool(before) != bool(self._watchers) and self._link.is_open:
            await self._link.request("watch", seconds=WATCH_SECONDS if self._watchers else 0)

    # -- what the agent tells ---------------------------------------------------------------------------

    def _on_message(self, header: Header, payload: bytes) -> None:
        handler = self._handlers.get(header.get("t", ""))
        if handler is not None:
            handler(header, payload)

    def _on_record(self, header: Header, payload: bytes) -> None:
        self._seq = int(header["seq"])
        if header["kind"] == "begin":
            self.executions.set_code(header["execution_id"], payload.decode("utf-8", "replace"))
            self.executions.counts[header["execution_id"]] = header.get("execution_count")
        execution_id = self._views.feed(header, payload)
        if execution_id is not None:
            self._notify(("view", self.id, execution_id))
        for rank in concerned_ranks(header, self.world_size):
            if self._history.feed(rank, header, payload):
                self._notify(("log", self.id, rank))

    def _on_group(self, header: Header, payload: bytes) -> None:
        self.status.fields = header["group"]
        self._changed()

    def _on_execution(self, header: Header, payload: bytes) -> None:
        model = self.executions.update(header["execution"])
        self._notify(("execution", self.id, model["id"]))
        self._changes.wake()

    def _on_sample(self, header: Header, payload: bytes) -> None:
        self.memory.add(header["sample"])
        self._notify(("memory", self.id))

    def _on_lost(self) -> None:
        # An agent whose group could not start has said so, and ends.
        if not self._ending and self.state not in ("dead", "warm"):
            self._reconnecting = asyncio.create_task(self._reconnect(), name=f"reconnect {self.id}")

    # -- inside -----------------------------------------------------------------------------------------

    async def _reconnect(self) -> None:
        delays = itertools.chain(RECONNECT_AFTER_SECONDS, itertools.repeat(RECONNECT_AFTER_SECONDS[-1]))
        for delay in delays:
            await asyncio.sleep(delay)
            if not self.directory.agent_lives():
                break  # one that lives is only slow, or stopped: its ranks are not lost
            with contextlib.suppress(JupyterDistError):
                await self.attach()
                if self._watchers:
                    await self._link.request("watch", seconds=WATCH_SECONDS)
                self._changed()
                return
        self.mark_lost(self.directory.log_tail(600))

    def mark_lost(self, last_words: str) -> None:
        """The agent is gone, and its ranks with it."""
        error = JupyterDistError(
            "agent_unreachable",
            f"The agent of group '{self.name}' has ended, and its ranks with it.",
            last_words or "Shut the group down and start it again.",
        )
        self.status.mark_lost(error)
        for execution_id in self.executions.mark_lost(error):
            self._notify(("execution", self.id, execution_id))
        self._changed()

    def adopt_remains(self, group_json: dict[str, Any]) -> None:
        """Be a group whose agent ended while no server was there: only its logs are left."""
        self.status.take_remains(group_json)
        self.mark_lost("")

    async def _follow(self, since: int) -> None:
        await self._link.request("follow", since=since)

    async def _renew(self, request: str) -> None:
        answer, _ = await self._ask(request)
        # The agent answers before it begins; whoever waits for the end must not see the state before.
        self.status.fields = {**answer["group"], "state": "restarting"}
        self._changed()

    async def _ask(self, t: str, payload: bytes = b"", **fields: Any) -> tuple[Header, bytes]:
        if self.state in ("lost", "dead") and not self._link.is_open:
            self.status.check_takes_cells()
        return await self._link.request(t, payload, **fields)

    def _changed(self) -> None:
        self._notify(("groups",))
        self._changes.wake()
