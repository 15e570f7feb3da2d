"""A group as its agent tells of it: state, executions, their views, samples; kept up over lost connections."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Callable
from typing import Any

from jupyter_dist.folding.viewstore import ViewStore
from jupyter_dist.journal.sound import is_sound
from jupyter_dist.launcher.directories import GroupDirectory
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.frames import Header

from .executions import Executions, is_final
from .history import History
from .link import AgentLink
from .logs import concerned_ranks
from .memory import WATCH_SECONDS, MemorySamples
from .status import GroupStatus
from .waiting import Changes

RECONNECT_AFTER_SECONDS = (0.1, 0.4, 1.0)

Topic = tuple[Any, ...]

log = logging.getLogger(__name__)


class FollowedGroup:
    """What is known of a group, from the agent that waits to become it until nothing of it is left."""

    def __init__(self, directory: GroupDirectory, server_id: str, notify: Callable[[Topic], None]) -> None:
        self.directory = directory
        self.id = directory.group_id
        self.executions = Executions(self.id)
        self.memory = MemorySamples()
        self.status = GroupStatus()
        self._notify = notify
        self._link = AgentLink(directory.socket_path, server_id, self._on_message, self._on_lost)
        self._history = History(directory, self._link, self.executions, self._is_sound)
        self._damaged = 0  # records that were left out
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

    # -- the connection ---------------------------------------------------------------------------------

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

    async def detach(self) -> None:
        """Leave the group to the next server."""
        self._ending = True
        if self._reconnecting is not None:
            self._reconnecting.cancel()
            await asyncio.gather(self._reconnecting, return_exceptions=True)
        await self._link.close()
        self.directory.release()

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

    async def _follow(self, since: int) -> None:
        await self._link.request("follow", since=since)

    # -- waiting ----------------------------------------------------------------------------------------

    async def wait_until(self, is_so: Callable[[], bool], seconds: float) -> bool:
        """Wait until the condition holds, at most so long; whether it does."""
        return await self._changes.wait_until(is_so, seconds)

    async def wait_ended(self, execution_id: str, seconds: float) -> bool:
        """Wait until an execution has ended; whether it has."""
        return await self.wait_until(lambda: is_final(self.executions.get(execution_id)), seconds)

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
        if not self._is_sound(header):
            return
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

    def _is_sound(self, header: Header) -> bool:
        """Whether a record can be believed; the first one that cannot is named in the server's log."""
        if is_sound(header, self.world_size):
            return True
        if not self._damaged:
            log.warning("jupyter_dist: the journal of group '%s' is damaged: %.200r is left out.", self.name, header)
        self._damaged += 1
        return False

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

    async def _ask(self, t: str, payload: bytes = b"", **fields: Any) -> tuple[Header, bytes]:
        if self.state in ("lost", "dead") and not self._link.is_open:
            self.status.check_takes_cells()
        return await self._link.request(t, payload, **fields)

    def _changed(self) -> None:
        self._notify(("groups",))
        self._changes.wake()
