"""A group as the manager has it: its start, its nodes and its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.models.sentences import join, say
from jupyter_dist.protocol.secrets import Secrets
from jupyter_dist.protocol.wire.specs import GroupSpec
from jupyter_dist.server.launchers.allocation import Allocation, Wanted
from jupyter_dist.server.mirror.mirror import ANSWER_SECONDS, GroupMirror
from jupyter_dist.server.mirror.status import GroupStatus
from jupyter_dist.server.spawner.directories import bad_directory
from jupyter_dist.server.spawner.process import AgentProcess
from jupyter_dist.system.code.sources import ARCHIVE
from jupyter_dist.transport.tasks import start_task

from .ending import end_agent, end_keeper
from .nodes import GroupNodes

if TYPE_CHECKING:
    from jupyter_dist.server.launchers.launcher import Launcher

END_RETRY_SECONDS = 2.0
LATE_POLL_SECONDS = 1.0

log = logging.getLogger(__name__)


class ManagedGroup:
    """Starts and ends a group, whose state is in its mirror; operations.py asks for everything between."""

    def __init__(self, mirror: GroupMirror) -> None:
        self.mirror = mirror
        self._nodes: GroupNodes | None = None
        self._following_nodes: asyncio.Task[None] | None = None
        self._noting_late: asyncio.Task[None] | None = None
        self._sending_end: asyncio.Task[None] | None = None
        self._sending_hosts: asyncio.Task[None] | None = None

    @property
    def id(self) -> str:
        """Return the id of the group."""
        return self.mirror.id

    @property
    def name(self) -> str:
        """Return the name that its user gave it."""
        return self.mirror.name

    @property
    def status(self) -> GroupStatus:
        """Return the status of the group."""
        return self.mirror.status

    def model(self) -> models.GroupModel:
        """Return the Group of docs/api.md."""
        return self.mirror.model()

    # -- life -----------------------------------------------------------------------------------------

    async def start(self, spec: GroupSpec, environment: models.GroupEnvironment) -> None:
        """Turn the waiting agent into this group, and start its ranks."""
        await self.mirror.link.request("start", take=self.mirror.on_group, spec=spec.to_dict(), environment=environment)
        await self.mirror.follow(0)

    async def changed_by(self, request: str, **fields: Any) -> models.GroupModel:
        """Ask the agent to change the group, and return the group as the agent reports it afterwards."""
        await self.mirror.ask(request, take=self.mirror.on_group, **fields)
        return self.mirror.model()

    async def responds(self) -> bool:
        """Whether the agent answers within a moment; an agent that does not is killed without being asked to end."""
        self.mirror.link.is_silent = not await self.mirror.link.responds(ANSWER_SECONDS)
        return not self.mirror.link.is_silent

    async def shutdown(self) -> list[str]:
        """End the group and remove its files; return the processes that had to be killed.

        Raises:
            JupyterDistError: `timed_out`, if its agent cannot be ended; the group is kept then.
        """
        await self.mirror.stop_tasks()
        process = self.mirror.agent_process()
        keeper = AgentProcess.find(self.mirror.directory.path, process and process.parent, "keeper")
        try:
            killed = await self._end_agent(process)
            await end_keeper(keeper)
        finally:
            for held in (process, keeper):
                if held is not None:
                    held.close()
        await self.mirror.link.close()
        killed += await self._release_nodes()
        self.mirror.directory.remove()
        self.mirror.status.mark_dead()
        self.mirror.changed()
        return killed

    async def _end_agent(self, process: AgentProcess | None) -> list[str]:
        try:
            return await end_agent(self.mirror.link, process, self.name)
        except JupyterDistError:
            self.mirror.is_ending = False
            self.mirror.connect()
            raise

    # -- nodes ----------------------------------------------------------------------------------------

    async def launch_nodes(
        self,
        launcher: Launcher | None,
        options: Mapping[str, Any],
        env: Secrets,
        archive: Callable[[], bytes],
    ) -> None:
        """Have a launcher start the node agents of the group, which has just been started.

        Args:
            launcher: where; None: users start them.
            options: for the launcher.
            env: the variables of the node agents.
            archive: returns the code of this group: a job that waits while the package is upgraded starts with that.

        Raises:
            JupyterDistError: `bad_request`, `launcher_failed` or `timed_out`.
        """
        if launcher is None:
            await self._bring_code(archive)
            return
        spec, command = self.mirror.status.fields["spec"], shlex.split(self.mirror.status.fields["join"])
        files, code = [Path(command[-1])], self.mirror.directory.path / ARCHIVE
        if launcher.nodes_get_files and await self._bring_code(archive):
            files, command = [*files, code], [command[0], str(code), "node", command[-1]]
        wanted = Wanted(
            group_id=self.id,
            name=self.name,
            directory=self.mirror.directory.path,
            num_nodes=len(spec["ranks_per_node"]),
            ranks_per_node=tuple(spec["ranks_per_node"]),
            command=tuple(command),
            env=env,
            cwd=spec["cwd"],
            options=options,
            files=tuple(files),
        )
        try:
            self.take_allocation(await launcher.submit(wanted))
        finally:
            code.unlink(missing_ok=True)  # the job has its own

    async def _bring_code(self, archive: Callable[[], bytes]) -> bool:
        """Write the code of this group beside its join file; return False if there is none.

        Raises:
            JupyterDistError: `bad_directory`.
        """
        path, content = self.mirror.directory.path / ARCHIVE, await asyncio.to_thread(archive)
        try:
            if content:
                await asyncio.to_thread(_write, path, content)
        except OSError as err:
            raise bad_directory(path, err) from err
        return bool(content)

    def take_allocation(self, allocation: Allocation) -> None:
        """Follow the allocation of the group's nodes: of a new job, or of an adopted one."""
        self._nodes = GroupNodes(allocation)
        self._show_nodes()
        following = self._nodes.follow(self._show_nodes, self._nodes_failed)
        self._following_nodes = start_task(following, f"nodes of {self.id}")
        self._noting_late = start_task(self._note_late_nodes(self._nodes), f"late nodes of {self.id}")

    def _show_nodes(self) -> None:
        assert self._nodes is not None
        before, self.mirror.status.allocation = self.mirror.status.allocation, self._nodes.model()
        if (warning := self.mirror.status.allocation["warning"]) and warning != (before and before["warning"]):
            log.warning("jupyter_dist: group '%s': %s", self.name, warning)
        self._pass_on_end(before, self.mirror.status.allocation)
        self._pass_on_hosts(before, self.mirror.status.allocation)
        self.mirror.changed()

    async def _note_late_nodes(self, nodes: GroupNodes) -> None:
        """Show which nodes have not joined long after the engine gave them, until the group has started."""
        while not self.mirror.status.is_gone and self.mirror.status.reported_state == "starting":
            missing = [node["node"] for node in self.model()["nodes"] if node["state"] == "waiting"]
            spec = self.mirror.status.fields.get("spec")
            if spec is not None and await nodes.note_late(missing, spec["start_timeout_seconds"]):
                self._show_nodes()
            await asyncio.sleep(LATE_POLL_SECONDS)
        if await nodes.note_late((), 0.0):
            self._show_nodes()

    def _pass_on_end(self, before: models.AllocationModel | None, now: models.AllocationModel) -> None:
        """Send the agent the end of the allocation, if that is new: it saves the group before."""
        was_known = before is not None and before["state"] == "allocated"
        if now["state"] != "allocated" or (was_known and before and before["ends_at"] == now["ends_at"]):
            return
        if self._sending_end is not None:
            self._sending_end.cancel()
        self._sending_end = start_task(self._send_end(now["ends_at"]), f"end of {self.id}")

    def _pass_on_hosts(self, before: models.AllocationModel | None, now: models.AllocationModel) -> None:
        """Send the agent the hosts of the allocation, if they are new: it may have to open tunnels to them."""
        was_known = before is not None and before["state"] == "allocated"
        if now["state"] != "allocated" or (was_known and before and before["hosts"] == now["hosts"]):
            return
        if self._sending_hosts is not None:
            self._sending_hosts.cancel()
        assert self._nodes is not None
        given = {"hosts": now["hosts"], "job": now["job_id"] or "", "code": self._nodes.code}
        sending = self._send("tunnel", "tunnels", **given)
        self._sending_hosts = start_task(sending, f"hosts of {self.id}")

    async def _send_end(self, at: float | None) -> None:
        await self._send("", "ends", at=at)

    async def _send(self, field: str, request: str, **fields: Any) -> None:
        """Send a request to the agent of a group, if this field of its spec is set, until it has been answered."""
        while not self.mirror.status.is_gone:
            spec = self.mirror.status.fields.get("spec")
            if field and spec is not None and not spec.get(field):
                return
            try:
                if spec is not None and self.mirror.link.is_open:
                    await self.mirror.link.request(request, **fields)
                    return
            except JupyterDistError as err:
                if err.code == "incompatible":  # an earlier version has started it
                    return
            await asyncio.sleep(END_RETRY_SECONDS)

    async def _nodes_failed(self, why: str) -> None:
        """End a group whose nodes will never be complete; later losses are reported by the agents."""
        assert self._nodes is not None
        if self.mirror.status.reported_state != "starting" or self.mirror.is_ending:
            return
        await self.mirror.stop_tasks()
        await self._nodes.release()
        with self.mirror.agent_process() or contextlib.nullcontext() as process:
            await self._end_agent(process)
        await self.mirror.link.close()
        error = JupyterDistError("start_failed", join(say("The nodes of group '%1' did not start.", self.name), why))
        self.mirror.status.mark_dead(error)
        self._show_nodes()

    async def _release_nodes(self) -> list[str]:
        every = (self._following_nodes, self._noting_late, self._sending_end, self._sending_hosts)
        tasks = [task for task in every if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return await self._nodes.release() if self._nodes is not None else []


def _write(path: Path, content: bytes) -> None:
    path.touch(0o600)
    path.write_bytes(content)
