"""Node agents as processes on the server's machine: several nodes without a cluster, to try code for them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar

from jupyter_dist.protocol.models.sentences import say

from .allocation import RELEASED, Allocated, Allocation, Ended, Wanted, launcher_failed
from .launcher import Availability, Launcher
from .nodefiles import NodeFiles
from .tools import Detached, ToolError, start_detached

FOLDER = "nodes"


class ProcessLauncher(Launcher):
    """Starts the command several times on this machine."""

    name: ClassVar[str] = "processes"
    label: ClassVar[str] = say("Several nodes on this machine")

    async def probe(self) -> Availability:
        """Return an availability that is always usable."""
        return Availability(is_usable=True, text=say("The nodes are processes on the server's machine."))

    async def start(self, wanted: Wanted) -> Allocation:
        """Start the processes."""
        try:
            files = NodeFiles.create(wanted.directory / FOLDER, wanted.files)
            allocation = ProcessAllocation(self, wanted.directory, files, wanted.num_nodes)
            await asyncio.to_thread(allocation.start, wanted)
        except (OSError, ToolError) as err:
            raise launcher_failed(say("The nodes cannot be started: %1", err)) from err
        return allocation

    def restore(self, directory: Path, files: NodeFiles, num_nodes: int, state: Mapping[str, Any]) -> Allocation:
        """Return the processes that an earlier server started."""
        allocation = ProcessAllocation(self, directory, files, num_nodes)
        allocation.processes = [Detached(int(pid), int(started)) for pid, started in state["processes"]]
        return allocation

    async def look(self, allocations: Collection[Allocation]) -> None:
        """Check which processes run."""
        for allocation in allocations:
            assert isinstance(allocation, ProcessAllocation)
            allocation.look()


class ProcessAllocation(Allocation):
    """Processes on this machine."""

    processes: list[Detached]

    def start(self, wanted: Wanted) -> None:
        """Start all processes. The state is saved after each, so that the next server misses none."""
        self.processes = []
        command = self.files.command(wanted.command, wanted.files)
        with open(self.files.open_engine_log(), "ab") as log:
            for node in range(wanted.num_nodes):
                env = {**wanted.env.for_exec(), "JUPYTER_DIST_NODE_RANK": str(node)}
                self.processes.append(start_detached(command, env, wanted.cwd, log.fileno()))
                self.save()

    def look(self) -> None:
        """Publish whether the processes run."""
        if sum(process.runs for process in self.processes):  # reaps each
            self.publish(Allocated(("localhost",) * self.num_nodes, ""))
            return
        self.publish(Ended(RELEASED))

    def state(self) -> dict[str, Any]:
        """Return the identity of each process."""
        return {"processes": [[process.pid, process.started] for process in self.processes]}

    async def cancel(self, grace_seconds: float) -> None:
        """End all processes."""
        await asyncio.gather(*(process.end(grace_seconds) for process in self.processes))
        self.look()
