"""Grid Engine (Sun, Son of, Open, Univa, Altair): qsub, qstat, qdel, qconf, and `qrsh -inherit` on the nodes."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from xml.etree import ElementTree

from traitlets import Unicode

from jupyter_dist.protocol.errors import bad_request
from jupyter_dist.protocol.models.sentences import join, say
from jupyter_dist.server.launchers.allocation import Wanted, reported
from jupyter_dist.server.launchers.batch.job import BatchJob, ListedJob
from jupyter_dist.server.launchers.launcher import Availability
from jupyter_dist.server.launchers.options import Option, matches
from jupyter_dist.server.launchers.tools import ToolError

from .launcher import PROBE_SECONDS, QueueLauncher, answer, once, user
from .options import CPUS, GPUS, PROJECT, QUEUE, TIME_LIMIT, clock, seconds_of, words_option
from .scripts import Starter

_NO_JOBS = re.compile(r"do not exist|denied: job", re.I)
_NOTIFY = re.compile(r"^notify\s+(.*)$", re.M)
_CLOCK = re.compile(r"(\d+):(\d\d):(\d\d)")
_ERROR = "E"  # in a state such as Eqw
VERIFY_SECONDS = 30.0
_PREFIX = re.compile(r"Job \d+ ")  # of a line of `qalter -w v`
_IN_VAIN = say("It will not start. Shut the group down, and start one with other options.")
_PROBLEM = re.compile(r"^error reason\s+\d*:?\s*(.*)$", re.M)

# Grid Engine kills the program on the node when `qrsh` ends, so no signal for other processes of the job may reach it:
# SIGUSR2 of qdel, and SIGTERM with which the node agent of the first host is asked to end.
_QRSH = (
    '/bin/sh -c \'trap "" USR1 USR2; PATH=$PATH:$SGE_BINARY_PATH:$SGE_ROOT/bin/$ARC:$SGE_O_PATH'
    ' exec setsid qrsh -inherit -nostdin "$@"\' sh'
)


class GridEngineLauncher(QueueLauncher):
    """Groups on the nodes of a cluster with Grid Engine."""

    name: ClassVar[str] = "sge"
    label: ClassVar[str] = "Grid Engine"
    tools: ClassVar[tuple[str, ...]] = ("qsub", "qstat", "qdel", "qconf", "qrsh")
    probe_command: ClassVar[tuple[str, ...]] = ("qconf", "-sql")
    options = (
        QUEUE,
        Option("parallel_environment", "Parallel environment", "Where a job gets several slots. It must place as many"
               " slots on each host as a node has CPUs.", is_common=True,
               check=matches(r"[A-Za-z0-9_][A-Za-z0-9_.*-]*", "a parallel environment looks like mpi.")),
        PROJECT, TIME_LIMIT, GPUS, CPUS,
        Option("resources", "Resources", "What each slot must have, as in -l: h_vmem=8G,arch=lx-amd64.",
               check=matches(r"[A-Za-z0-9_]+=[^, ]+(,[A-Za-z0-9_]+=[^, ]+)*", "resources look like h_vmem=8G.")),
        words_option(r"-[a-z]+|[A-Za-z0-9_.,:=@+/-]+", "-R y",
                     "-N", "-o", "-e", "-j", "-q", "-P", "-pe", "-r", "-S", "-V", "-t", "-terse", "-notify", "-sync"),
    )  # fmt: skip
    starter: ClassVar[Starter] = Starter(
        label=label,
        hosts="awk '{print $1}' \"${PE_HOSTFILE:-/dev/null}\" | grep . || uname -n",
        starter=_QRSH,
        advice="Choose a parallel environment that places as many slots on each host as a node has CPUs.",
        prefixes=("SGE_", "JOB_", "PE", "NSLOTS", "NHOSTS", "NQUEUES", "QUEUE", "REQUEST", "RESTARTED"),
        notifies=True,  # qdel sends SIGKILL, and with -notify SIGUSR2 before
    )

    gpu_resource = Unicode("gpu", help="The resource that counts the GPUs of a host.").tag(config=True)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._obstacles: dict[str, tuple[float, str]] = {}  # when it was asked for, by the id of the job

    async def probe(self) -> Availability:
        """Ask for the queues and the parallel environments."""
        found = await super().probe()
        if not found.is_usable:
            return found
        said = await self.tool("qconf", "-spl", seconds=PROBE_SECONDS)
        environments = tuple(said.out.split()) if said.code == 0 else ()
        text = join(found.text, say("Parallel environments: %1.", ", ".join(environments) or say("none")))
        choices = {**found.choices, "parallel_environment": environments}
        return Availability(is_usable=True, text=text, choices=choices)

    def check(self, options: Mapping[str, Any], num_nodes: int) -> dict[str, Any]:
        """Return the options. Raises JupyterDistError `bad_request`, with a sentence for each mistake."""
        found = super().check(options, num_nodes)
        if num_nodes > 1 and "parallel_environment" not in found:
            message = say("%1 nodes need the option 'parallel_environment'.", num_nodes)
            raise bad_request(message, say("'jupyter dist launchers sge' lists the parallel environments."))
        return found

    def submit_command(self, job: BatchJob, wanted: Wanted) -> list[str]:
        """Return the call of qsub."""
        options = wanted.options
        command = [
            "qsub",
            "-terse",
            "-N",
            job.name,
            "-j",
            "y",
            "-o",
            "/dev/null",
            "-r",
            "n",
            "-S",
            "/bin/sh",
            "-notify",
        ]
        if environment := options.get("parallel_environment"):
            command += ["-pe", environment, str(options.get("cpus_per_node", 1) * wanted.num_nodes)]
        if limit := seconds_of(options.get("time_limit")):
            command += ["-l", f"h_rt={clock(limit)}"]
        if gpus := options.get("gpus_per_node"):
            command += ["-l", f"{self.gpu_resource}={gpus}"]
        for argument, name in (("-q", "queue"), ("-P", "project"), ("-l", "resources")):
            command += [argument, options[name]] if name in options else []
        return command + list(options.get("extra_arguments", ()))

    def read_id(self, out: str) -> str | None:
        """Return the id that `qsub -terse` prints."""
        return next((line.strip() for line in out.splitlines() if line.strip().isdigit()), None)

    async def read_grace(self, queue: str | None) -> float:
        """Return the `notify` of the queue, or the shortest of all queues. Raises ToolError, ValueError."""
        queues = queue or ",".join((await self.tool(*self.probe_command, seconds=PROBE_SECONDS)).out.split())
        said = await self.tool("qconf", "-sq", queues, seconds=PROBE_SECONDS)
        clocks = (found for line in _NOTIFY.findall(said.out) for found in _CLOCK.findall(line))  # hosts may differ
        return min(3600.0 * int(hours) + 60 * int(minutes) + int(seconds) for hours, minutes, seconds in clocks)

    def read_queues(self, out: str) -> list[str]:
        """Return the queues."""
        return out.split()

    async def listed(self, jobs: Sequence[BatchJob]) -> Mapping[str, ListedJob]:
        """Return this user's jobs by id. Raises ToolError."""
        out = answer(await self.tool("qstat", "-xml", "-r", "-g", "t", "-u", user()), _NO_JOBS)
        try:
            found = _parse(out)
        except (ElementTree.ParseError, AttributeError) as err:
            raise ToolError(say("'%1' printed what cannot be read.", "qstat")) from err
        known = {job.job_id: job for job in jobs} | {job.name: job for job in jobs}
        return {
            job_id: await self._listed(job_id, rows, known.get(job_id) or known.get(rows[0]["name"]))
            for job_id, rows in found.items()
        }

    async def _listed(self, job_id: str, rows: list[dict[str, str]], job: BatchJob | None) -> ListedJob:
        name, state = rows[0]["name"], rows[0]["state"]
        if _ERROR in state:
            why = await self._error(job_id) if job is not None else ""
            text = say("Grid Engine could not start it, and will not try again.")
            again = join(text, why, say("Shut the group down, and start it again."))
            return ListedJob(job_id, name, "queued", again, can_start=False)
        if "q" in state or "w" in state:
            if "h" in state:
                return ListedJob(job_id, name, "queued", say("It is held: run 'qrls' with its number."))
            obstacle = await self._obstacle(job_id) if job is not None else ""
            waits = join(_IN_VAIN, reported(self.label, obstacle)) if obstacle else say("It waits for its turn.")
            return ListedJob(job_id, name, "queued", waits, can_start=not obstacle)
        if "d" in state:
            return ListedJob(job_id, name, "ending")
        hosts = once([row["queue"].rpartition("@")[2] for row in rows])
        ends_at = self.end_of(job, _time(rows[0]["start"])) if job is not None else None
        return ListedJob(job_id, name, "running", "", hosts, ends_at=ends_at)

    async def _obstacle(self, job_id: str) -> str:
        """Return why a job could not start even in an empty cluster; empty if it could."""
        asked_at, found = self._obstacles.get(job_id, (-VERIFY_SECONDS, ""))
        if time.monotonic() - asked_at < VERIFY_SECONDS:
            return found
        found = ""
        with contextlib.suppress(ToolError):
            said = await self.tool("qalter", "-w", "v", job_id)
            lines = f"{said.out}\n{said.err}".splitlines()
            if any("no suitable queues" in line for line in lines):
                reasons = (_PREFIX.sub("", line).strip() for line in lines if _PREFIX.match(line))
                found = next(reasons, "no suitable queues")
        self._obstacles[job_id] = time.monotonic(), found
        return found

    async def _error(self, job_id: str) -> str:
        with contextlib.suppress(ToolError):
            found = _PROBLEM.search((await self.tool("qstat", "-j", job_id)).out)
            return reported(self.label, found[1].strip()) if found else ""
        return ""

    async def ask_to_end(self, job: BatchJob) -> bool:
        """Call qdel."""
        return job.job_id is not None and (await self.tool("qdel", job.job_id)).code == 0

    def cancel_command(self, job: BatchJob) -> str:
        """Return the command with which a user cancels the job."""
        return f"qdel {job.job_id or job.name}"


def _parse(out: str) -> dict[str, list[dict[str, str]]]:
    """Return the rows of qstat by the id of the job; a job that runs has one for each task."""
    found: dict[str, list[dict[str, str]]] = {}
    for entry in ElementTree.fromstring(out).iter("job_list"):  # noqa: S314 - from a program of the machine
        row = {
            "name": entry.findtext("full_job_name") or entry.findtext("JB_name") or "",
            "state": entry.findtext("state") or "",
            "queue": entry.findtext("queue_name") or "",
            "start": entry.findtext("JAT_start_time") or "",
            "master": entry.findtext("master") or "",
        }
        rows = found.setdefault((entry.findtext("JB_job_number") or "").strip(), [])
        rows.insert(0, row) if row["master"] == "MASTER" else rows.append(row)
    return found


def _time(text: str) -> float | None:
    with contextlib.suppress(ValueError, OverflowError):
        return time.mktime(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S"))
    return None
