"""OpenPBS and PBS Professional: qsub, qstat, qselect, qdel, and pbs_tmrsh on the nodes."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, ClassVar

from jupyter_dist.protocol.models.sentences import join, say
from jupyter_dist.server.launchers.allocation import Wanted, reported
from jupyter_dist.server.launchers.batch.job import BatchJob, ListedJob
from jupyter_dist.server.launchers.options import Option, matches
from jupyter_dist.server.launchers.tools import ToolError

from .launcher import PROBE_SECONDS, QueueLauncher, answer, once, user
from .options import ACCOUNT, CPUS, GPUS, MEMORY, PROJECT, QUEUE, TIME_LIMIT, clock, seconds_of, words_option
from .scripts import Starter

_ABOUT_A_JOB = re.compile(r"Unknown Job Id|has finished|No Permission", re.I)
_STATES = {
    "Q": say("It waits for its turn."),
    "H": say("It is held: run 'qrls' with its number."),
    "W": say("Its start time has not come."),
    "T": say("It is being moved to another server."),
}
_NEVER = "Can Never Run"  # the beginning of a comment
_QUEUED, _RUNNING, _ENDED = frozenset("QHWTM"), frozenset("RSUB"), frozenset("FX")
_KILL_DELAY = 10  # seconds, of a queue without a value
_SIGNALLED = 256  # Exit_status of a job that a signal has ended, from here
_ENDS = {
    -1: say("PBS could not start the job."),
    -2: say("PBS could not start the job."),
    -3: say("PBS could not start the job, and has tried again."),
    -29: say("The job has reached its time limit."),
    -27: say("The job used more CPU time than it had asked for."),
    -28: say("The job used more memory than it had asked for."),
}


class PbsLauncher(QueueLauncher):
    """Groups on the nodes of a cluster with OpenPBS or PBS Professional."""

    name: ClassVar[str] = "pbs"
    label: ClassVar[str] = "PBS"
    tools: ClassVar[tuple[str, ...]] = ("qsub", "qstat", "qselect", "qdel")
    probe_command: ClassVar[tuple[str, ...]] = ("qstat", "-Q", "-f", "-F", "json")
    options = (
        QUEUE, ACCOUNT, PROJECT, TIME_LIMIT, GPUS, CPUS, MEMORY,
        Option("chunk", "Further resources", "What each node must have, as in 'select': gpu_type=a100:mpiprocs=1.",
               check=matches(r"[A-Za-z0-9_]+=[A-Za-z0-9_.@-]+(:[A-Za-z0-9_]+=[A-Za-z0-9_.@-]+)*",
                             "resources look like gpu_type=a100:cpu_type=rome.")),
        words_option(r"-[A-Za-z]|[A-Za-z0-9_.,:=@+/-]+", "-W group_list=physics",
                     "-N", "-o", "-e", "-j", "-q", "-A", "-P", "-r", "-S", "-I", "-V", "-J"),
    )  # fmt: skip
    reserves_by_ranks = True
    starter: ClassVar[Starter] = Starter(
        label=label,
        hosts="awk '!seen[$0]++' \"$PBS_NODEFILE\"",
        starter='env PATH="$PATH:$(. "${PBS_CONF_FILE:-/etc/pbs.conf}" 2> /dev/null; echo "$PBS_EXEC")/bin" pbs_tmrsh',
        advice="Write to your administrator: place=scatter does not give each chunk a host of its own.",
        prefixes=("PBS_", "NCPUS"),
    )

    def submit_command(self, job: BatchJob, wanted: Wanted) -> list[str]:
        """Return the call of qsub."""
        options = wanted.options
        select = "+".join(f"{len(list(alike))}:{chunk}" for chunk, alike in groupby(_chunks(wanted)))
        command = ["qsub", "-N", job.name, "-o", "/dev/null", "-e", "/dev/null", "-r", "n", "-S", "/bin/sh"]
        command += ["-l", f"select={select}", "-l", "place=scatter"]
        if limit := seconds_of(options.get("time_limit")):
            command += ["-l", f"walltime={clock(limit)}"]
        for argument, name in (("-q", "queue"), ("-A", "account"), ("-P", "project")):
            command += [argument, options[name]] if name in options else []
        return command + list(options.get("extra_arguments", ()))

    def read_id(self, out: str) -> str | None:
        """Return the id that qsub prints: 12.server."""
        return next((line.strip() for line in out.splitlines() if re.match(r"\d+", line.strip())), None)

    async def read_grace(self, queue: str | None) -> float:
        """Return the kill_delay of the queue, or the shortest of all queues. Raises ToolError, ValueError."""
        said = await self.tool(*self.probe_command, seconds=PROBE_SECONDS)
        found = json.loads(said.out).get("Queue", {})
        return min(float(one.get("kill_delay", _KILL_DELAY)) for name, one in found.items() if queue in (None, name))

    def read_queues(self, out: str) -> list[str]:
        """Return the queues that take jobs."""
        with contextlib.suppress(ValueError, AttributeError):
            queues = json.loads(out).get("Queue", {})
            return sorted(name for name, queue in queues.items() if str(queue.get("enabled")) == "True")
        return []

    async def listed(self, jobs: Sequence[BatchJob]) -> Mapping[str, ListedJob]:
        """Return these jobs by id. Raises ToolError."""
        ids = [job.job_id for job in jobs if job.job_id]
        for job in jobs:
            if job.job_id is None:
                said = await self.tool("qselect", "-u", user(), "-N", job.name)
                ids += answer(said, _ABOUT_A_JOB).split()
        if not ids:
            return {}
        out = answer(await self.tool("qstat", "-x", "-f", "-F", "json", *ids), _ABOUT_A_JOB)
        try:
            found = json.loads(out or "{}").get("Jobs", {})
            return {job_id: _listed(job_id, fields) for job_id, fields in found.items()}
        except (ValueError, AttributeError, TypeError) as err:
            raise ToolError(say("'%1' printed what cannot be read.", "qstat")) from err

    async def ask_to_end(self, job: BatchJob) -> bool:
        """Call qdel, which sends SIGTERM first."""
        return job.job_id is not None and (await self.tool("qdel", job.job_id)).code == 0

    def cancel_command(self, job: BatchJob) -> str:
        """Return the command with which a user cancels the job."""
        return f"qdel {job.job_id}" if job.job_id else f"qdel $(qselect -N {job.name})"


def _chunks(wanted: Wanted) -> Iterator[str]:
    """Yield the chunk of each node for `select`; its CPUs and GPUs are by its ranks."""
    more = [f"mem={memory.lower()}b"] if (memory := wanted.options.get("memory")) else []
    more += [wanted.options["chunk"]] if "chunk" in wanted.options else []
    for cpus, gpus in zip(wanted.by_ranks("cpus_per_node"), wanted.by_ranks("gpus_per_node"), strict=True):
        yield ":".join([f"ncpus={cpus}", *([f"ngpus={gpus}"] if gpus else []), *more])


def _listed(job_id: str, fields: Mapping[str, Any]) -> ListedJob:
    name, state = str(fields.get("Job_Name", "")), str(fields.get("job_state", ""))
    comment = str(fields.get("comment", ""))
    if state in _QUEUED:
        estimated = fields.get("estimated") or {}
        why = _STATES.get(state, "")
        can_start = not comment.startswith(_NEVER)
        why = why if can_start else say("It will not start. Shut the group down, and start one that asks for less.")
        starts_at = _time(estimated.get("start_time"))
        return ListedJob(
            job_id, name, "queued", join(why, reported("PBS", comment)), starts_at=starts_at, can_start=can_start
        )
    hosts = once([part.partition("/")[0] for part in str(fields.get("exec_host", "")).split("+")])
    if state in _RUNNING:
        limit = _seconds((fields.get("Resource_List") or {}).get("walltime"))
        began = _time(fields.get("stime"))
        ends_at = began + limit if began is not None and limit is not None else None
        return ListedJob(job_id, name, "running", "", hosts, ends_at=ends_at)
    if state in _ENDED:
        return _ended(job_id, name, hosts, fields.get("Exit_status"), comment)
    return ListedJob(job_id, name, "ending", "", hosts)


def _ended(job_id: str, name: str, hosts: tuple[str, ...], status: object, comment: str) -> ListedJob:
    code = status if isinstance(status, int) else None
    if code == 0:
        return ListedJob(job_id, name, "ended", "", hosts)
    if code is None or code in _ENDS:
        text = join(_ENDS.get(code or 0) or say("The job was ended before it ran."), reported("PBS", comment))
        return ListedJob(job_id, name, "ended", text, hosts)
    if code >= _SIGNALLED:
        text = join(say("The job was cancelled: with qdel, or by PBS."), reported("PBS", comment))
        return ListedJob(job_id, name, "ended", text, hosts, is_failed_command=True)
    return ListedJob(job_id, name, "ended", say("The job failed."), hosts, is_failed_command=True)


def _time(text: object) -> float | None:
    if isinstance(text, int):
        return float(text)
    with contextlib.suppress(ValueError, OverflowError):
        return time.mktime(time.strptime(str(text), "%a %b %d %H:%M:%S %Y"))
    return None


def _seconds(text: object) -> int | None:
    found = re.fullmatch(r"(\d+):(\d\d):(\d\d)", str(text))
    return int(found[1]) * 3600 + int(found[2]) * 60 + int(found[3]) if found else None
