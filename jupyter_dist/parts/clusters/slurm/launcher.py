"""Submits jobs to Slurm, or starts steps in the job that the server itself runs in, and follows them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from jupyter_dist.protocol.errors import bad_request
from jupyter_dist.protocol.models.sentences import join, say
from jupyter_dist.server.launchers.allocation import Allocation, Wanted, launcher_failed
from jupyter_dist.server.launchers.batch.job import BatchJob, ListedJob
from jupyter_dist.server.launchers.batch.launcher import BatchLauncher
from jupyter_dist.server.launchers.launcher import Availability
from jupyter_dist.server.launchers.nodefiles import NodeFiles
from jupyter_dist.server.launchers.tools import Detached, ToolError, start_detached
from jupyter_dist.system.inherited import without_credentials

from .job import SlurmJob, as_listed
from .options import OPTIONS, gpus_of_gres, job_arguments, refused_in_a_step, srun_arguments, step_arguments
from .queue import INFO_FORMAT, QUEUE_FORMAT, TIME_ENV, Job, describe, parse_info, parse_queue

TOOLS = ("sbatch", "srun", "squeue", "scancel", "scontrol", "sinfo")
PROBE_SECONDS = 5.0
MIN_GRACE_SECONDS = 5.0  # slurmd kills a job no earlier after it has asked it to end

# One task on each node. Versions differ in the options that srun inherits from sbatch, so they are given here.
JOB_SCRIPT = """\
#!/bin/sh
exec srun --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 \\
  ${{SLURM_CPUS_PER_TASK:+--cpus-per-task="$SLURM_CPUS_PER_TASK"}} \\
  --no-kill --kill-on-bad-exit=0 --wait=0 --export=ALL {arguments}
"""  # which begin with more of srun's
STEP = ("--overlap", "--no-kill", "--kill-on-bad-exit=0", "--wait=0", "--export=ALL", "--ntasks-per-node=1")


class SlurmLauncher(BatchLauncher):
    """Groups on the nodes of a Slurm cluster."""

    name: ClassVar[str] = "slurm"
    label: ClassVar[str] = "Slurm"
    options = OPTIONS
    tools: ClassVar[tuple[str, ...]] = TOOLS

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._hosts: dict[str, tuple[str, ...]] = {}

    # -- partitions and options -------------------------------------------------------------------------------

    async def probe(self) -> Availability:
        """Ask sinfo for the partitions."""
        if self.lacks:
            return Availability(is_usable=False, text=self.lacks)
        try:
            said = await self.tool("sinfo", "-h", "-o", INFO_FORMAT, seconds=PROBE_SECONDS)
        except ToolError as err:
            return Availability(is_usable=False, text=say("%1 does not answer: %2", self.label, err))
        if said.code != 0:
            return Availability(is_usable=False, text=say("%1 does not answer: %2", self.label, said.problem))
        partitions = parse_info(said.out)
        in_job = say("This server runs in job %1 with %2 nodes: groups start there.", _own_job(), _own_nodes())
        names = tuple(partition.name for partition in partitions if partition.is_up)
        return Availability(
            is_usable=True, text=join(in_job if _own_job() else "", describe(partitions)), choices={"partition": names}
        )

    def check(self, options: Mapping[str, Any], num_nodes: int) -> dict[str, Any]:
        """Return the options. Raises JupyterDistError `bad_request`, with a sentence for each mistake."""
        found = super().check(options, num_nodes)
        if not _is_step(found):
            return found
        if num_nodes > _own_nodes():
            message = say("%1 nodes were requested; the job that this server runs in has %2.", num_nodes, _own_nodes())
            raise bad_request(message, say("Request fewer, or set 'new_job' to submit a job of its own."))
        if refused := refused_in_a_step(found):
            message = say("'%1' cannot be set for a group in the job that this server runs in.", refused[0])
            raise bad_request(message, say("Leave it out, or set 'new_job' to submit a job of its own."))
        return found

    def fitted(self, options: Mapping[str, Any], ranks_per_node: int) -> Mapping[str, Any]:
        """Return the options with a CPU for each rank; in the job of the server, at most its CPUs of each node."""
        if _is_step(options) and (own := _own_cpus()):
            ranks_per_node = min(ranks_per_node, own)
        return {"cpus_per_node": ranks_per_node, **options}

    def gpus_per_node(self, options: Mapping[str, Any]) -> int:
        """Return how many GPUs the options reserve on each node, also as generic resources."""
        return super().gpus_per_node(options) or gpus_of_gres({**self.defaults, **options})

    async def grace_seconds(self, options: Mapping[str, Any]) -> float:
        """Return the KillWait of the cluster; 0 for a step in the job of the server, which ends with the server."""
        if _is_step(options):
            return 0.0
        with contextlib.suppress(ToolError):
            said = await self.tool("scontrol", "show", "config")
            if found := re.search(r"^KillWait\s*=\s*(\d+)", said.out, re.MULTILINE):
                return max(MIN_GRACE_SECONDS, float(found[1]))
        return MIN_GRACE_SECONDS

    # -- jobs -------------------------------------------------------------------------------------------------

    def new_job(self, directory: Path, files: NodeFiles, num_nodes: int, name: str) -> SlurmJob:
        """Return the allocation of a job with that name."""
        return SlurmJob(self, directory, files, num_nodes, name)

    def write_scripts(self, files: NodeFiles, wanted: Wanted) -> None:
        """Write nothing: all that Slurm runs is in the script that it is given."""

    async def submit_job(self, job: BatchJob, wanted: Wanted) -> None:
        """Submit the job, or start the step."""
        assert isinstance(job, SlurmJob)
        options = wanted.options
        await (self._start_step(job, wanted, options) if _is_step(options) else self._sbatch(job, wanted, options))

    def restore(self, directory: Path, files: NodeFiles, num_nodes: int, state: Mapping[str, Any]) -> Allocation:
        """Return the job that an earlier server submitted, or was about to."""
        job = super().restore(directory, files, num_nodes, state)
        assert isinstance(job, SlurmJob)
        job.srun = Detached(*map(int, state["srun"])) if state["srun"] else None
        return job

    async def listed(self, jobs: Sequence[BatchJob]) -> Mapping[str, ListedJob]:
        """Return this user's jobs by id; the hosts are known of `jobs` alone. Raises ToolError."""
        found = await self.queue()
        ids, names = {job.job_id for job in jobs}, {job.name for job in jobs}
        return {
            key: as_listed(job, await self._hostnames(job.hosts) if key in ids or job.name in names else ())
            for key, job in found.items()
        }

    async def queue(self) -> dict[str, Job]:
        """Return this user's jobs by id, also recently ended ones. Raises ToolError."""
        said = await self.tool("squeue", "-h", "-t", "all", "-u", str(os.getuid()), "-o", QUEUE_FORMAT)
        if said.code != 0:
            raise ToolError(said.problem)
        return parse_queue(said.out)

    async def end_gently(self, job: BatchJob, grace_seconds: float) -> None:
        """Send SIGTERM to a step and wait: a scancel without a signal kills a step at once, unlike a job."""
        assert isinstance(job, SlurmJob)
        if job.srun is None:
            return
        with contextlib.suppress(ToolError):
            if steps := await self._steps(job):
                await self.tool("scancel", "--signal=TERM", *steps)
                await job.srun.wait(grace_seconds)

    async def ask_to_end(self, job: BatchJob) -> bool:
        """Call scancel for a job or a step; return whether it succeeded."""
        assert isinstance(job, SlurmJob)
        which = [job.job_id] if job.job_id else [f"--name={job.name}", f"--user={os.getuid()}"]
        if job.srun is not None:
            which = await self._steps(job)
            if not which:  # the step has not begun, or has ended: srun shows which
                job.srun.signal(signal.SIGTERM)
                return not job.srun.runs
        return (await self.tool("scancel", *which)).code == 0

    def cancel_command(self, job: BatchJob) -> str:
        """Return the command with which a user cancels the job."""
        return f"scancel {job.job_id or '--name=' + job.name}"

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of a tool, with the times of squeue in seconds since 1970."""
        return {**_environment(env), **TIME_ENV}

    # -- inside -----------------------------------------------------------------------------------------------

    async def _sbatch(self, job: SlurmJob, wanted: Wanted, options: Mapping[str, Any]) -> None:
        log = str(job.files.folder / "engine.log").replace("%", "%%")
        command = [
            "--parsable", "--export=ALL", "--no-kill", "--ntasks-per-node=1", f"--nodes={wanted.num_nodes}",
            f"--job-name={job.name}", f"--chdir={wanted.cwd}", f"--output={log}", "--open-mode=append",
            *job_arguments(options),
        ]  # fmt: skip
        arguments = (
            *srun_arguments(options, wanted.cwd, str(job.files.folder)),
            *job.files.command(wanted.command, wanted.files),
        )
        script = JOB_SCRIPT.format(arguments=shlex.join(arguments))
        try:
            said = await self.tool("sbatch", *command, env=wanted.env.for_exec(), given=script)
        except ToolError as err:
            job.job_id = await self._id_by_name(job.name)
            if job.job_id is None:
                raise launcher_failed(
                    say("The job was not submitted. %1", err), say("Try again when %1 answers.", self.label)
                ) from err
            return
        if said.code != 0:
            raise launcher_failed(say("%1 refuses the job: %2", self.label, said.problem), await self._what_there_is())
        job.job_id = said.out.strip().partition(";")[0]

    async def _start_step(self, job: SlurmJob, wanted: Wanted, options: Mapping[str, Any]) -> None:
        job.job_id = _own_job()
        command = [
            shutil.which("srun") or "srun", f"--jobid={job.job_id}", f"--job-name={job.name}", *STEP,
            f"--nodes={wanted.num_nodes}", f"--ntasks={wanted.num_nodes}", f"--chdir={wanted.cwd}",
            *step_arguments(options), *srun_arguments(options, wanted.cwd, str(job.files.folder)),
            *job.files.command(wanted.command, wanted.files),
        ]  # fmt: skip
        try:
            job.srun = await asyncio.to_thread(_start, command, _environment(wanted.env.for_exec()), job.files)
        except (OSError, ToolError) as err:
            raise launcher_failed(say("The nodes cannot be started: %1", err)) from err

    async def _steps(self, job: SlurmJob) -> list[str]:
        """Return the step of a group in the job of the server: srun names it after the group."""
        said = await self.tool("squeue", "-h", "--steps", f"--jobs={job.job_id}", "-o", "%i|%j")
        steps = (line.partition("|") for line in said.out.splitlines())
        return [step for step, _, name in steps if name == job.name]

    async def _id_by_name(self, name: str) -> str | None:
        """Return the id of a job that may have been submitted although sbatch did not answer; else prevent it."""
        with contextlib.suppress(ToolError):
            jobs = await self.queue()
            if found := [job.job_id for job in jobs.values() if job.name == name]:
                return found[0]
            await self.tool("scancel", f"--name={name}", f"--user={os.getuid()}")
        return None

    async def _what_there_is(self) -> str:
        found = await self.probe()
        return f"Slurm has: {found.text}" if found.is_usable else found.text

    async def _hostnames(self, hosts: str) -> tuple[str, ...]:
        """Return the names in `n[1-2]`."""
        if not hosts:
            return ()
        if hosts not in self._hosts:
            try:
                said = await self.tool("scontrol", "show", "hostnames", hosts)
            except ToolError:
                return (hosts,)
            self._hosts[hosts] = tuple(said.out.split()) if said.code == 0 else (hosts,)
        return self._hosts[hosts]


def _environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without credentials, and what Slurm sets for the job that the server itself runs in."""
    found = {name: value for name, value in without_credentials(env).items() if not name.startswith("SLURM_")}
    if config := os.environ.get("SLURM_CONF"):
        found["SLURM_CONF"] = config
    return found


def _start(command: list[str], env: dict[str, str], files: NodeFiles) -> Detached:
    with open(files.open_engine_log(), "ab") as log:
        return start_detached(command, env, "/", log.fileno())


def _own_job() -> str | None:
    return os.environ.get("SLURM_JOB_ID")


def _own_nodes() -> int:
    found = os.environ.get("SLURM_JOB_NUM_NODES") or os.environ.get("SLURM_NNODES") or "1"
    return int(found) if found.isdigit() else 1


def _own_cpus() -> int:
    """Return how many CPUs the job that the server runs in has on each node, at least; 0 if that is not known."""
    counts = re.sub(r"\(x\d+\)", "", os.environ.get("SLURM_JOB_CPUS_PER_NODE", "")).split(",")
    return min((int(count) for count in counts if count.isdigit()), default=0)


def _is_step(options: Mapping[str, Any]) -> bool:
    return _own_job() is not None and not options.get("new_job")
