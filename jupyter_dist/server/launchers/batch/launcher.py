"""The base of launchers that submit a job to a batch queue with command line tools, and follow it.

A job must survive a restart of the server, so it is submitted and never run by the server. If no server comes back,
the node agents end when their lease is over, and the job ends with them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import time
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from traitlets import Unicode

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import join, say
from jupyter_dist.server.launchers.allocation import Allocation, NotKnown, Wanted, launcher_failed, unwritten
from jupyter_dist.server.launchers.common.limits import MAX_WAIT
from jupyter_dist.server.launchers.launcher import Launcher
from jupyter_dist.server.launchers.nodefiles import NodeFiles
from jupyter_dist.server.launchers.options import Option, matches
from jupyter_dist.server.launchers.tools import ToolError, ToolResult, run
from jupyter_dist.server.traits import Seconds
from jupyter_dist.system.inherited import without_credentials

from .job import BatchJob, ListedJob
from .place import check_place, job_folder

CONFIRM_SECONDS = 60.0  # engines wait between SIGTERM and SIGKILL: Slurm 30 s, PBS and LSF 10 s
CONFIRM_POLL_SECONDS = 0.2


JOB_NAME = Option(
    "job_name",
    "Name of the job",
    "What the job is called, before the id of the group. Empty: jupyter-dist and the group's name.",
    is_advanced=True,
    check=matches(r"[A-Za-z][A-Za-z0-9_.-]{0,59}", "a name looks like train-llm."),
)


class BatchLauncher(Launcher):
    """Groups in the jobs of a batch queue.

    A subclass writes the script of a job, submits it, lists jobs, and has the engine end one.
    """

    tools: ClassVar[tuple[str, ...]]  # the engine's programs
    nodes_get_files: ClassVar[bool] = True
    common_options: ClassVar[tuple[Option, ...]] = (*Launcher.common_options, JOB_NAME, MAX_WAIT)

    poll_seconds = Seconds(2.0, min=0.05, help="How often the queue is asked, once for all jobs.").tag(config=True)
    shared_dir = Unicode(
        help="A folder that the nodes see, too, for the files of jobs. Empty: the folder of the group if it is in your"
        " home, else ~/.jupyter_dist."
    ).tag(config=True)
    warn_seconds = Seconds(300.0, min=0.0, help="How long before the end of a job a warning is shown.").tag(config=True)

    # -- a subclass has these ---------------------------------------------------------------------------------

    @abstractmethod
    def new_job(self, directory: Path, files: NodeFiles, num_nodes: int, name: str) -> BatchJob:
        """Return the allocation of a job with that name."""

    @abstractmethod
    def write_scripts(self, files: NodeFiles, wanted: Wanted) -> None:
        """Write the files of the job, besides the copies that it has. Raises OSError."""

    @abstractmethod
    async def submit_job(self, job: BatchJob, wanted: Wanted) -> None:
        """Submit the job and set its id. Raises JupyterDistError `launcher_failed`.

        The engine is given the text of the script and keeps it: a path could lead to another text when the job starts.
        """

    @abstractmethod
    async def listed(self, jobs: Sequence[BatchJob]) -> Mapping[str, ListedJob]:
        """Return the queue's entries of these jobs by id; other jobs may be among them. Raises ToolError."""

    @abstractmethod
    async def ask_to_end(self, job: BatchJob) -> bool:
        """Have the engine end a job; return whether it has accepted that. Raises ToolError."""

    @abstractmethod
    def cancel_command(self, job: BatchJob) -> str:
        """Return the command with which a user cancels the job."""

    async def end_gently(self, job: BatchJob, grace_seconds: float) -> None:
        """Ask the commands of a job to end, where the engine would kill them at once."""

    # -- the same for all -------------------------------------------------------------------------------------

    @property
    def lacks(self) -> str:
        """Return a sentence about the first tool that this machine does not have; empty if it has all."""
        missing = next((tool for tool in self.tools if shutil.which(tool) is None), None)
        if missing is None:
            return ""
        where = say("%1 is not installed on the server's machine: there is no %2.", self.label, missing)
        return join(where, say("Run Jupyter on a login node."))

    async def start(self, wanted: Wanted) -> Allocation:
        """Submit the job."""
        setting = f"{type(self).__name__}.shared_dir"
        folder = job_folder(wanted, self.shared_dir)
        await asyncio.to_thread(check_place, folder, setting)
        try:
            files = await asyncio.to_thread(NodeFiles.create, folder, wanted.files)
            await asyncio.to_thread(check_place, folder, setting)  # also the folders that were missing before
            self.write_scripts(files, wanted)
        except OSError as err:
            raise launcher_failed(unwritten(err), say("Set %1 to a folder that the nodes see, too.", setting)) from err
        name = f"{wanted.options.get('job_name', f'jupyter-dist-{wanted.name}')}-{wanted.group_id}"
        job = self.new_job(wanted.directory, files, wanted.num_nodes, name)
        try:
            job.save()  # before it is submitted, so that no server ever loses it
            await self.submit_job(job, wanted)
        except BaseException:
            job.undo()
            raise
        return job

    def restore(self, directory: Path, files: NodeFiles, num_nodes: int, state: Mapping[str, Any]) -> Allocation:
        """Return the job that an earlier server submitted, or was about to."""
        job = self.new_job(directory, files, num_nodes, str(state["name"]))
        job.job_id = None if state["job_id"] is None else str(state["job_id"])
        return job

    async def look(self, allocations: Collection[Allocation]) -> None:
        """Ask the queue once for all jobs."""
        jobs = [allocation for allocation in allocations if isinstance(allocation, BatchJob)]
        try:
            found = await self.listed(jobs)
        except ToolError as err:
            for job in jobs:
                job.publish(
                    NotKnown(say("%1 does not answer; the nodes keep running meanwhile. %2", self.label, str(err)))
                )
            return
        for job in jobs:
            job.update(job.find(found), time.time(), self.warn_seconds)

    async def cancel(self, job: BatchJob, grace_seconds: float) -> None:
        """Cancel a job, and wait until the engine confirms it. Raises JupyterDistError `timed_out`."""
        job.is_cancelled = True
        limit = grace_seconds + CONFIRM_SECONDS
        deadline = time.monotonic() + limit
        await self.end_gently(job, grace_seconds)
        is_accepted = False
        while not job.has_ended and time.monotonic() < deadline:
            with contextlib.suppress(ToolError):
                is_accepted = is_accepted or await self.ask_to_end(job)
            await self.look([job])
            await asyncio.sleep(CONFIRM_POLL_SECONDS)
        if not job.has_ended:
            which = job.job_id or job.name
            message = say("%1 has not confirmed within %2 s that job %3 has ended.", self.label, f"{limit:g}", which)
            raise JupyterDistError("timed_out", message, say("Run '%1'.", self.cancel_command(job)))

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of a tool: without credentials, which an administrator's wrapper of it might log."""
        return without_credentials(env)

    async def tool(
        self,
        tool: str,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        seconds: float | None = None,
        given: str | None = None,
    ) -> ToolResult:
        """Run a tool of the engine; `given` is its standard input. Raises ToolError."""
        path = shutil.which(tool) or tool
        environ = self.environment(os.environ if env is None else env)
        return await run([path, *arguments], environ, seconds or self.command_seconds, given=given)
