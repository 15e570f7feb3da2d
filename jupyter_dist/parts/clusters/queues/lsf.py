"""IBM Spectrum LSF: bsub, bjobs, bkill, bqueues, and blaunch on the nodes."""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from jupyter_dist.protocol.models.sentences import join, say
from jupyter_dist.server.launchers.allocation import Wanted, reported
from jupyter_dist.server.launchers.batch.job import BatchJob, ListedJob
from jupyter_dist.server.launchers.options import Option, matches
from jupyter_dist.server.launchers.tools import ToolError

from .launcher import PROBE_SECONDS, QueueLauncher, answer, once
from .options import CPUS, GPUS, MEMORY, PROJECT, QUEUE, TIME_LIMIT, seconds_of, words_option
from .scripts import Starter

_FORMAT = "jobid stat exec_host time_left exit_code job_name pend_reason delimiter='|'"
_NUM_FIELDS = 7
_STEADY_SECONDS = 90.0
_NO_JOBS = re.compile(r"No .*job.* found|is not found", re.I)
_STATES = {
    "PEND": say("It waits for its turn."),
    "PSUSP": say("It is held: run 'bresume' with its number."),
    "WAIT": say("Its start time has not come."),
    "PROV": say("LSF prepares the nodes."),
}
_RUNNING = frozenset({"RUN", "USUSP", "SSUSP", "UNKWN"})
_ENDS = {
    "140": say("The job has reached its time limit."),
    "130": say("The job was cancelled: with bkill, or by an administrator."),
    "143": say("The job was cancelled: with bkill, or by an administrator."),
    "137": say("The job was killed: with bkill, or because it used more memory than its limit."),
}

_INTERVAL = re.compile(r"^\s*JOB_TERMINATE_INTERVAL\s*=\s*(\d+)", re.M)
_DEFAULT_INTERVAL = 10.0


class LsfLauncher(QueueLauncher):
    """Groups on the nodes of a cluster with LSF."""

    name: ClassVar[str] = "lsf"
    label: ClassVar[str] = "LSF"
    tools: ClassVar[tuple[str, ...]] = ("bsub", "bjobs", "bkill", "bqueues")
    probe_command: ClassVar[tuple[str, ...]] = ("bqueues", "-o", "queue_name status delimiter='|'", "-noheader")
    options = (
        QUEUE, PROJECT, TIME_LIMIT, GPUS, CPUS, MEMORY,
        Option("resources", "Resource requirement", "What each node must have, as in -R: select[type==X86_64].",
               check=matches(r"[A-Za-z0-9_\[\]=<>!&|().,:* -]+", "a requirement looks like select[ngpus>3].")),
        words_option(r"-[A-Za-z]+|[A-Za-z0-9_.,:=@+/-]+", "-G physics",
                     "-J", "-o", "-oo", "-e", "-eo", "-q", "-P", "-n", "-W", "-cwd", "-gpu", "-I", "-K", "-r"),
    )  # fmt: skip
    starter: ClassVar[Starter] = Starter(
        label=label,
        hosts="awk '!seen[$0]++' \"$LSB_DJOB_HOSTFILE\"",
        starter='env PATH="$PATH:$LSF_BINDIR" blaunch',
        advice="Write to your administrator: span[ptile] does not give the nodes that were requested.",
        prefixes=("LSB_", "LS_"),
    )

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._ends: dict[str, float] = {}

    def submit_command(self, job: BatchJob, wanted: Wanted) -> list[str]:
        """Return the call of bsub."""
        options = wanted.options
        cpus = options.get("cpus_per_node", 1)
        command = ["bsub", "-J", job.name, "-o", "/dev/null", "-e", "/dev/null", "-rn"]
        command += ["-n", str(cpus * wanted.num_nodes), "-R", f"span[ptile={cpus}]"]
        if gpus := options.get("gpus_per_node"):
            command += ["-gpu", f"num={gpus}/host"]
        if memory := options.get("memory"):
            command += ["-R", f"rusage[mem={memory.upper()}B/host]"]
        if limit := seconds_of(options.get("time_limit")):
            command += ["-W", str(max(1, limit // 60))]
        for argument, name in (("-q", "queue"), ("-P", "project"), ("-R", "resources")):
            command += [argument, options[name]] if name in options else []
        return command + list(options.get("extra_arguments", ()))

    def read_id(self, out: str) -> str | None:
        """Return the id in `Job <12> is submitted to queue <normal>.`."""
        found = re.search(r"Job <(\d+)>", out)
        return found[1] if found else None

    async def read_grace(self, queue: str | None) -> float:
        """Return the time between two of SIGINT, SIGTERM and SIGKILL. Raises ToolError."""
        said = await self.tool("bparams", "-a", seconds=PROBE_SECONDS)
        if said.code != 0:
            raise ToolError(said.problem)
        found = _INTERVAL.search(said.out)
        return float(found[1]) if found else _DEFAULT_INTERVAL

    def read_queues(self, out: str) -> list[str]:
        """Return the queues that take jobs."""
        rows = (line.split("|") for line in out.splitlines())
        return sorted(row[0].strip() for row in rows if len(row) > 1 and row[1].strip().startswith("Open"))

    async def listed(self, jobs: Sequence[BatchJob]) -> Mapping[str, ListedJob]:
        """Return this user's jobs by id, also recently ended ones. Raises ToolError."""
        out = answer(await self.tool("bjobs", "-a", "-noheader", "-o", _FORMAT), _NO_JOBS)
        rows = (line.split("|", _NUM_FIELDS - 1) for line in out.splitlines())
        found = (_listed([field.strip() for field in row]) for row in rows if len(row) == _NUM_FIELDS)
        return {job.job_id: self._with_steady_end(job) for job in found}

    def _with_steady_end(self, job: ListedJob) -> ListedJob:
        """Return the job with the end that it had before, unless it has moved: LSF counts in minutes."""
        if job.ends_at is None:
            return job
        before = self._ends.get(job.job_id)
        if before is None or abs(before - job.ends_at) > _STEADY_SECONDS:
            self._ends[job.job_id] = before = job.ends_at
        return dataclasses.replace(job, ends_at=before)

    async def ask_to_end(self, job: BatchJob) -> bool:
        """Call bkill, which sends SIGINT and SIGTERM before SIGKILL."""
        return job.job_id is not None and (await self.tool("bkill", job.job_id)).code == 0

    def cancel_command(self, job: BatchJob) -> str:
        """Return the command with which a user cancels the job."""
        return f"bkill {job.job_id}" if job.job_id else f"bkill -J {job.name}"


def _listed(row: Sequence[str]) -> ListedJob:
    job_id, state, exec_host, time_left, exit_code, name, reason = row
    if state in _STATES:
        return ListedJob(job_id, name, "queued", join(_STATES[state], reported("LSF", reason.strip("-"))))
    hosts = once([part.rpartition("*")[2] for part in exec_host.split(":") if part != "-"])
    if state in _RUNNING:
        return ListedJob(job_id, name, "running", "", hosts, ends_at=_end(time_left))
    if state == "DONE":
        return ListedJob(job_id, name, "ended", "", hosts)
    text = _ENDS.get(exit_code) or say("The job failed.")
    return ListedJob(job_id, name, "ended", text, hosts, is_failed_command=True)


def _end(time_left: str) -> float | None:
    """Return the end of a job that has `1:30 L` left, hours and minutes."""
    found = re.match(r"(\d+):(\d\d)", time_left)
    return time.time() + int(found[1]) * 3600 + int(found[2]) * 60 if found else None
