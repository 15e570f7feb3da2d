"""Submits jobs to Slurm, or starts steps in the job that the server itself runs in, and follows them.

A job is submitted with sbatch, because it must survive a restart of the server. If no server comes back, the node
agents end when their lease is over, and the job ends with them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar

from traitlets import Unicode

from jupyter_dist.protocol.errors import JupyterDistError, bad_request
from jupyter_dist.server.launchers.allocation import Allocation, NotKnown, Wanted, launcher_failed
from jupyter_dist.server.launchers.launcher import Availability, Launcher
from jupyter_dist.server.launchers.nodefiles import NodeFiles
from jupyter_dist.server.launchers.tools import Detached, ToolError, ToolResult, run, start_detached
from jupyter_dist.server.traits import Seconds
from jupyter_dist.system.files.private import open_above

from .job import SlurmJob
from .options import OPTIONS, gpus_of_gres, job_arguments, refused_in_a_step, step_arguments
from .queue import INFO_FORMAT, QUEUE_FORMAT, TIME_ENV, Job, describe, parse_info, parse_queue

TOOLS = ("sbatch", "srun", "squeue", "scancel", "scontrol", "sinfo")
PROBE_SECONDS = 5.0
CONFIRM_SECONDS = 60.0  # KillWait is 30 s by default: between SIGTERM and SIGKILL
CONFIRM_POLL_SECONDS = 0.2
SCRIPT_NAME = "job.sh"
OWN_FOLDER = ".jupyter_dist"

# One task on each node. Versions differ in the options that srun inherits from sbatch, so they are given here.
JOB_SCRIPT = """\
#!/bin/sh
exec srun --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 \\
  ${SLURM_CPUS_PER_TASK:+--cpus-per-task="$SLURM_CPUS_PER_TASK"} \\
  --no-kill --kill-on-bad-exit=0 --wait=0 --export=ALL "$@"
"""
STEP = ("--overlap", "--no-kill", "--kill-on-bad-exit=0", "--wait=0", "--export=ALL", "--ntasks-per-node=1")


class SlurmLauncher(Launcher):
    """Groups on the nodes of a Slurm cluster."""

    name: ClassVar[str] = "slurm"
    label: ClassVar[str] = "Slurm"
    options = OPTIONS

    poll_seconds = Seconds(2.0, min=0.05, help="How often squeue is asked, once for all jobs.").tag(config=True)
    shared_dir = Unicode(
        help="A folder that the nodes see, too, for the files of jobs. Empty: the folder of the group if it is in your"
        " home, else ~/.jupyter_dist."
    ).tag(config=True)
    warn_seconds = Seconds(300.0, min=0.0, help="How long before the end of a job a warning is shown.").tag(config=True)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._hosts: dict[str, tuple[str, ...]] = {}

    # -- partitions and options -------------------------------------------------------------------------------

    async def probe(self) -> Availability:
        """Ask sinfo for the partitions."""
        lacks = [tool for tool in TOOLS if shutil.which(tool) is None]
        if lacks:
            text = (
                f"Slurm is not installed on the server's machine: there is no {lacks[0]}. Run Jupyter on a login node."
            )
            return Availability(is_usable=False, text=text)
        try:
            said = await self._tool("sinfo", "-h", "-o", INFO_FORMAT, seconds=PROBE_SECONDS)
        except ToolError as err:
            return Availability(is_usable=False, text=f"Slurm does not answer: {err}")
        if said.code != 0:
            return Availability(is_usable=False, text=f"Slurm does not answer: {said.problem}")
        partitions = parse_info(said.out)
        own = (
            f"This server runs in job {_own_job()} with {_own_nodes()} nodes: groups start there. "
            if _own_job()
            else ""
        )
        names = tuple(partition.name for partition in partitions if partition.is_up)
        return Availability(is_usable=True, text=own + describe(partitions), choices={"partition": names})

    def check(self, options: Mapping[str, Any], num_nodes: int) -> dict[str, Any]:
        """Return the options. Raises JupyterDistError `bad_request`, with a sentence for each mistake."""
        found = super().check(options, num_nodes)
        if not _is_step(found):
            return found
        if num_nodes > _own_nodes():
            message = f"{num_nodes} nodes were requested; the job that this server runs in has {_own_nodes()}."
            raise bad_request(message, "Request fewer, or set 'new_job' to submit a job of its own.")
        if refused := refused_in_a_step(found):
            message = f"'{refused[0]}' cannot be set for a group in the job that this server runs in."
            raise bad_request(message, "Leave it out, or set 'new_job' to submit a job of its own.")
        return found

    def fitted(self, options: Mapping[str, Any], ranks_per_node: int) -> Mapping[str, Any]:
        """Return the options with a CPU for each rank; in the job of the server, at most its CPUs of each node."""
        if _is_step(options) and (own := _own_cpus()):
            ranks_per_node = min(ranks_per_node, own)
        return {"cpus_per_node": ranks_per_node, **options}

    def gpus_per_node(self, options: Mapping[str, Any]) -> int:
        """Return how many GPUs the options reserve on each node, also as generic resources."""
        return super().gpus_per_node(options) or gpus_of_gres({**self.defaults, **options})

    # -- jobs -------------------------------------------------------------------------------------------------

    async def start(self, wanted: Wanted) -> Allocation:
        """Submit the job, or start the step."""
        options = wanted.options
        folder = self._folder(wanted)
        await asyncio.to_thread(_check_place, folder)
        try:
            files = await asyncio.to_thread(NodeFiles.create, folder, wanted.files)
            (files.folder / SCRIPT_NAME).write_text(JOB_SCRIPT)
        except OSError as err:
            message = f"The files of the job cannot be written: {err.strerror}: {err.filename}."
            raise launcher_failed(message, "Set SlurmLauncher.shared_dir to a folder that the nodes see, too.") from err
        job = SlurmJob(self, wanted.directory, files, wanted.num_nodes, name=_job_name(wanted))
        try:
            job.save()  # before it is submitted, so that no server ever loses it
            await (self._start_step(job, wanted, options) if _is_step(options) else self._sbatch(job, wanted, options))
        except BaseException:
            job.undo()
            raise
        return job

    def restore(self, directory: Path, files: NodeFiles, num_nodes: int, state: Mapping[str, Any]) -> Allocation:
        """Return the job that an earlier server submitted, or was about to."""
        job = SlurmJob(self, directory, files, num_nodes, name=str(state["name"]))
        job.job_id = None if state["job_id"] is None else str(state["job_id"])
        job.srun = Detached(*map(int, state["srun"])) if state["srun"] else None
        return job

    async def look(self, allocations: Collection[Allocation]) -> None:
        """Ask squeue once for all jobs."""
        try:
            jobs = await self.queue()
        except ToolError as err:
            for allocation in allocations:
                allocation.publish(NotKnown(f"Slurm does not answer; the nodes keep running meanwhile. {err}"))
            return
        for allocation in allocations:
            assert isinstance(allocation, SlurmJob)
            found = allocation.find(jobs)
            hosts = await self._hostnames(found.hosts) if found else ()
            allocation.update(found, hosts, time.time(), self.warn_seconds)

    async def queue(self) -> dict[str, Job]:
        """Return this user's jobs by id, also recently ended ones. Raises ToolError."""
        said = await self._tool("squeue", "-h", "-t", "all", "-u", str(os.getuid()), "-o", QUEUE_FORMAT)
        if said.code != 0:
            raise ToolError(said.problem)
        return parse_queue(said.out)

    async def cancel(self, job: SlurmJob, grace_seconds: float) -> None:
        """Cancel a job or a step, and wait until Slurm confirms it. Raises JupyterDistError `timed_out`."""
        job.is_cancelled = True
        limit = grace_seconds + CONFIRM_SECONDS
        deadline = time.monotonic() + limit
        if job.srun is not None:
            await self._ask_step_to_end(job, job.srun, grace_seconds)
        was_told = False
        while not job.has_ended and time.monotonic() < deadline:
            with contextlib.suppress(ToolError):
                was_told = was_told or await self._scancel(job)
            await self.look([job])
            await asyncio.sleep(CONFIRM_POLL_SECONDS)
        if not job.has_ended:
            message = f"Slurm has not confirmed within {limit:g} s that job {job.job_id or job.name} has ended."
            raise JupyterDistError("timed_out", message, f"Run 'scancel {job.job_id or '--name=' + job.name}'.")

    # -- inside -----------------------------------------------------------------------------------------------

    async def _sbatch(self, job: SlurmJob, wanted: Wanted, options: Mapping[str, Any]) -> None:
        log = str(job.files.folder / "engine.log").replace("%", "%%")
        command = [
            "--parsable", "--export=ALL", "--no-kill", "--ntasks-per-node=1", f"--nodes={wanted.num_nodes}",
            f"--job-name={job.name}", f"--chdir={wanted.cwd}", f"--output={log}", "--open-mode=append",
            *job_arguments(options), str(job.files.folder / SCRIPT_NAME),
            *job.files.command(wanted.command, wanted.files),
        ]  # fmt: skip
        try:
            said = await self._tool("sbatch", *command, env=wanted.env)
        except ToolError as err:
            job.job_id = await self._id_by_name(job.name)
            if job.job_id is None:
                raise launcher_failed(f"The job was not submitted. {err}", "Try again when Slurm answers.") from err
            return
        if said.code != 0:
            raise launcher_failed(f"Slurm refuses the job: {said.problem}", await self._what_there_is())
        job.job_id = said.out.strip().partition(";")[0]

    async def _start_step(self, job: SlurmJob, wanted: Wanted, options: Mapping[str, Any]) -> None:
        job.job_id = _own_job()
        command = [
            shutil.which("srun") or "srun", f"--jobid={job.job_id}", f"--job-name={job.name}", *STEP,
            f"--nodes={wanted.num_nodes}", f"--ntasks={wanted.num_nodes}", f"--chdir={wanted.cwd}",
            *step_arguments(options), *job.files.command(wanted.command, wanted.files),
        ]  # fmt: skip
        try:
            job.srun = await asyncio.to_thread(_start, command, _environment(wanted.env), job.files)
        except (OSError, ToolError) as err:
            raise launcher_failed(f"The nodes cannot be started: {err}") from err

    async def _scancel(self, job: SlurmJob) -> bool:
        """Call scancel for a job or a step; return whether it succeeded."""
        which = [job.job_id] if job.job_id else [f"--name={job.name}", f"--user={os.getuid()}"]
        if job.srun is not None:
            which = await self._steps(job)
            if not which:  # the step has not begun, or has ended: srun shows which
                job.srun.signal(signal.SIGTERM)
                return not job.srun.runs
        return (await self._tool("scancel", *which)).code == 0

    async def _ask_step_to_end(self, job: SlurmJob, srun: Detached, grace_seconds: float) -> None:
        """Send SIGTERM to the step and wait: a scancel without a signal kills a step at once, unlike a job."""
        with contextlib.suppress(ToolError):
            if steps := await self._steps(job):
                await self._tool("scancel", "--signal=TERM", *steps)
                await srun.wait(grace_seconds)

    async def _steps(self, job: SlurmJob) -> list[str]:
        """Return the step of a group in the job of the server: srun names it after the group."""
        said = await self._tool("squeue", "-h", "--steps", f"--jobs={job.job_id}", "-o", "%i|%j")
        steps = (line.partition("|") for line in said.out.splitlines())
        return [step for step, _, name in steps if name == job.name]

    async def _id_by_name(self, name: str) -> str | None:
        """Return the id of a job that may have been submitted although sbatch did not answer; else prevent it."""
        with contextlib.suppress(ToolError):
            jobs = await self.queue()
            if found := [job.job_id for job in jobs.values() if job.name == name]:
                return found[0]
            await self._tool("scancel", f"--name={name}", f"--user={os.getuid()}")
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
                said = await self._tool("scontrol", "show", "hostnames", hosts)
            except ToolError:
                return (hosts,)
            self._hosts[hosts] = tuple(said.out.split()) if said.code == 0 else (hosts,)
        return self._hosts[hosts]

    async def _tool(
        self, tool: str, *arguments: str, env: Mapping[str, str] | None = None, seconds: float | None = None
    ) -> ToolResult:
        path = shutil.which(tool) or tool
        environ = {**_environment(os.environ if env is None else env), **TIME_ENV}
        return await run([path, *arguments], environ, seconds or self.command_seconds)

    def _folder(self, wanted: Wanted) -> Path:
        if self.shared_dir:
            return Path(self.shared_dir).expanduser() / wanted.group_id
        home = Path.home()
        is_in_home = wanted.directory.is_relative_to(home)
        return wanted.directory / "nodes" if is_in_home else home / OWN_FOLDER / wanted.group_id


def _check_place(folder: Path) -> None:
    """Raise JupyterDistError `launcher_failed` if other users could replace the script of the job.

    The job waits, possibly for hours, and then runs the script as this user.
    """
    own = Path.home() / OWN_FOLDER
    if folder.parent == own and own.is_dir() and not own.is_symlink():
        with contextlib.suppress(OSError):  # of another user: reported below
            own.chmod(0o700)  # it may have been created as open as the umask allows
    if (found := open_above(folder)) is not None:
        place, others = found
        message = (
            f"{others[0].upper()}{others[1:]} can replace what is in {place}, and so run programs as you on the nodes."
        )
        hint = f"Run 'chmod go-w {place}' or 'chmod +t {place}', or set SlurmLauncher.shared_dir to another folder."
        raise launcher_failed(message, hint)


def _environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the variables that Slurm sets for the job that the server itself runs in."""
    found = {name: value for name, value in env.items() if not name.startswith("SLURM_")}
    if config := os.environ.get("SLURM_CONF"):
        found["SLURM_CONF"] = config
    return found


def _start(command: list[str], env: dict[str, str], files: NodeFiles) -> Detached:
    with open(files.open_engine_log(), "ab") as log:
        return start_detached(command, env, "/", log.fileno())


def _job_name(wanted: Wanted) -> str:
    return f"jupyter-dist-{wanted.name}-{wanted.group_id}"


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
