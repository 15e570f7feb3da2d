"""The base of launchers for queues whose jobs are one script, which starts the command on the other nodes."""

from __future__ import annotations

import contextlib
import os
import pwd
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.server.launchers.allocation import Allocation, Wanted, launcher_failed
from jupyter_dist.server.launchers.batch.job import BatchJob, JobCanceller
from jupyter_dist.server.launchers.batch.launcher import BatchLauncher
from jupyter_dist.server.launchers.launcher import Availability
from jupyter_dist.server.launchers.nodefiles import NodeFiles
from jupyter_dist.server.launchers.tools import ToolError, ToolResult

from .options import seconds_of
from .scripts import Starter, job_script, write_scripts

PROBE_SECONDS = 5.0
MIN_GRACE_SECONDS = 5.0  # where the engine does not answer how long it waits before SIGKILL


class QueueJob(BatchJob):
    """A job of a queue that forgets jobs when they end."""

    lists_ended = False

    def __init__(self, launcher: JobCanceller, directory: Path, files: NodeFiles, num_nodes: int, name: str) -> None:
        super().__init__(launcher, directory, files, num_nodes, name)
        self.limit_seconds: int | None = None  # for engines that do not list when a job ends

    def state(self) -> dict[str, Any]:
        """Return the name and the id of the job, and its time limit."""
        return {**super().state(), "limit_seconds": self.limit_seconds}


class QueueLauncher(BatchLauncher):
    """Groups in the jobs of a queue that runs a script on the first node of a job.

    A subclass defines how its engine starts programs on nodes, submits, lists and cancels jobs.
    """

    starter: ClassVar[Starter]
    probe_command: ClassVar[tuple[str, ...]]  # prints the queues

    @abstractmethod
    def submit_command(self, job: BatchJob, wanted: Wanted) -> list[str]:
        """Return the command that submits the script of the job, which is its standard input."""

    @abstractmethod
    def read_id(self, out: str) -> str | None:
        """Return the id of the job in the output of that command."""

    @abstractmethod
    async def read_grace(self, queue: str | None) -> float:
        """Return how long the engine waits between its first signal and SIGKILL. Raises ToolError, ValueError."""

    @abstractmethod
    def read_queues(self, out: str) -> list[str]:
        """Return the names of the queues in the output of `probe_command`."""

    # -- the same for all -------------------------------------------------------------------------------------

    async def grace_seconds(self, options: Mapping[str, Any]) -> float:
        """Return how long the engine waits before it kills a job, as it is set up."""
        try:
            return max(MIN_GRACE_SECONDS, await self.read_grace(options.get("queue")))
        except (ToolError, ValueError, TypeError, AttributeError):  # the engine printed something else
            return MIN_GRACE_SECONDS

    async def probe(self) -> Availability:
        """Ask the engine for its queues."""
        if self.lacks:
            return Availability(is_usable=False, text=self.lacks)
        try:
            said = await self.tool(*self.probe_command, seconds=PROBE_SECONDS)
        except ToolError as err:
            return Availability(is_usable=False, text=say("%1 does not answer: %2", self.label, err))
        if said.code != 0:
            return Availability(is_usable=False, text=say("%1 does not answer: %2", self.label, said.problem))
        queues = self.read_queues(said.out)
        text = say("Queues: %1.", ", ".join(queues) or say("none"))
        return Availability(is_usable=True, text=text, choices={"queue": tuple(queues)})

    def fitted(self, options: Mapping[str, Any], ranks_per_node: int) -> Mapping[str, Any]:
        """Return the options with a CPU for each rank."""
        return {"cpus_per_node": ranks_per_node, **options}

    def new_job(self, directory: Path, files: NodeFiles, num_nodes: int, name: str) -> QueueJob:
        """Return the allocation of a job; names of jobs have fewer characters than names of groups."""
        return QueueJob(self, directory, files, num_nodes, re.sub(r"[^A-Za-z0-9_.-]", "_", name))

    def restore(self, directory: Path, files: NodeFiles, num_nodes: int, state: Mapping[str, Any]) -> Allocation:
        """Return the job that an earlier server submitted, or was about to."""
        job = super().restore(directory, files, num_nodes, state)
        assert isinstance(job, QueueJob)
        job.limit_seconds = state["limit_seconds"]
        return job

    def write_scripts(self, files: NodeFiles, wanted: Wanted) -> None:
        """Write the scripts of the job's nodes."""
        write_scripts(files, wanted, self.starter)

    async def submit_job(self, job: BatchJob, wanted: Wanted) -> None:
        """Submit the script of the job."""
        assert isinstance(job, QueueJob)
        job.limit_seconds = seconds_of(wanted.options.get("time_limit"))
        script = job_script(job.files, wanted, self.starter)
        try:
            said = await self.tool(*self.submit_command(job, wanted), given=script)
        except ToolError as err:
            await self._found_or_refused(job, err)
            return
        job.job_id = self.read_id(said.out) if said.code == 0 else None
        if job.job_id is None:
            raise launcher_failed(say("%1 refuses the job: %2", self.label, said.problem), (await self.probe()).text)

    async def _found_or_refused(self, job: BatchJob, err: ToolError) -> None:
        """Find the job that may have been submitted although the engine did not answer."""
        message = say("The job was not submitted. %1", err)
        with contextlib.suppress(ToolError):
            job.find(await self.listed([job]))
        if job.job_id is None:
            hint = say("Try again when %1 answers, and end a job named %2 if there is one.", self.label, job.name)
            raise launcher_failed(message, hint) from err

    def end_of(self, job: BatchJob, started_at: float | None) -> float | None:
        """Return when a job ends that has started then, by the time limit that it asked for."""
        assert isinstance(job, QueueJob)
        return None if started_at is None or job.limit_seconds is None else started_at + job.limit_seconds


def answer(said: ToolResult, is_about_a_job: re.Pattern[str]) -> str:
    """Return the output of a tool that lists jobs, which fails also where a job is unknown. Raises ToolError."""
    problems = [line for line in said.err.splitlines() if line.strip() and not is_about_a_job.search(line)]
    if said.code != 0 and (problems or not said.err.strip()):
        raise ToolError(said.problem)
    return said.out


def user() -> str:
    """Return the name of the user whose jobs are listed."""
    return pwd.getpwuid(os.getuid()).pw_name


def once(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names without repetitions, in order."""
    return tuple(dict.fromkeys(name for name in names if name))
