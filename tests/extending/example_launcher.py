"""A launcher of another package: docs/extending.md shows it, and it passes the contract of launchers."""

import asyncio

from jupyter_dist.server.launchers.allocation import Allocated, Allocation, Ended, launcher_failed
from jupyter_dist.server.launchers.launcher import Availability, Launcher
from jupyter_dist.server.launchers.nodefiles import NodeFiles
from jupyter_dist.server.launchers.options import Option
from jupyter_dist.server.launchers.tools import Detached, ToolError, start_detached


class PrefixLauncher(Launcher):
    """An engine that is one program, which runs a command: `nice -n 5`, `systemd-run --user --scope`."""

    name = "prefix"
    label = "A program that runs commands"
    options = (Option("program", "Program", "What is written before the command.", kind="words", is_common=True),)

    async def probe(self):
        return Availability(is_usable=True, text="Nodes are processes of this machine.")

    async def start(self, wanted):
        files = NodeFiles.create(wanted.directory / "nodes", wanted.files)
        job = PrefixJob(self, wanted.directory, files, wanted.num_nodes)
        try:
            job.run(wanted)
        except ToolError as err:
            await job.cancel(0.0)
            job.undo()
            raise launcher_failed(str(err)) from err
        return job

    def restore(self, directory, files, num_nodes, state):
        job = PrefixJob(self, directory, files, num_nodes)
        job.processes = [Detached(pid, started) for pid, started in state["processes"]]
        return job

    async def look(self, allocations):
        for job in allocations:
            job.look()


class PrefixJob(Allocation):
    """The processes of one group."""

    def __init__(self, *args):
        super().__init__(*args)
        self.processes = []

    def run(self, wanted):
        program = wanted.options.get("program", ["nice", "-n", "5"])
        command = [*program, *self.files.command(wanted.command, wanted.files)]
        with open(self.files.open_engine_log(), "ab") as log:
            for node in range(wanted.num_nodes):
                env = {**wanted.env.for_exec(), "JUPYTER_DIST_NODE_RANK": str(node)}
                self.processes.append(start_detached(command, env, wanted.cwd, log.fileno()))

    def state(self):
        return {"processes": [[process.pid, process.started] for process in self.processes]}

    def look(self):
        if sum(process.runs for process in self.processes):
            self.publish(Allocated(("localhost",) * self.num_nodes, ""))
        else:
            self.publish(Ended("The node agents have ended, and their nodes are released."))

    async def cancel(self, grace_seconds):
        await asyncio.gather(*(process.end(grace_seconds) for process in self.processes))
        self.look()
