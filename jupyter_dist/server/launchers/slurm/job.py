"""One job or step of Slurm, and the meaning of its lines of squeue for its group."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from jupyter_dist.server.launchers.allocation import Allocated, Allocation, Ended, EndsSoon, NamedLauncher, Queued
from jupyter_dist.server.launchers.nodefiles import NodeFiles
from jupyter_dist.server.launchers.tools import Detached

from . import words
from .queue import Job

MISSES = 3  # how often squeue must leave a job out before the job counts as over
ETA_CHANGE_SECONDS = 60.0  # the estimate moves with each look
SHORTENED_SECONDS = 30.0
MAX_LOG_BYTES = 1000


class JobCanceller(NamedLauncher, Protocol):
    """A launcher that can cancel a job."""

    async def cancel(self, job: SlurmJob, grace_seconds: float) -> None:
        """Have Slurm end the job."""


class SlurmJob(Allocation):
    """A job, or a step (`srun` is then the process that runs it) in the job of the server."""

    launcher: JobCanceller

    def __init__(self, launcher: JobCanceller, directory: Path, files: NodeFiles, num_nodes: int, name: str) -> None:
        super().__init__(launcher, directory, files, num_nodes)
        self.name = name
        self.job_id: str | None = None
        self.srun: Detached | None = None
        self.is_cancelled = False
        self._misses = 0
        self._has_run = False
        self._allocated: Allocated | None = None
        self._warned_of: float | None = None

    def state(self) -> dict[str, Any]:
        """Return the name and the id of the job; the id is None while it is being submitted."""
        srun = [self.srun.pid, self.srun.started] if self.srun else None
        return {"name": self.name, "job_id": self.job_id, "srun": srun}

    async def cancel(self, grace_seconds: float) -> None:
        """Have Slurm end the job or step."""
        if not self.has_ended:
            await self.launcher.cancel(self, grace_seconds)

    def find(self, jobs: Mapping[str, Job]) -> Job | None:
        """Return the job's line; found by name if the server was killed before sbatch had answered."""
        if self.job_id is None:
            self.job_id = next((job.job_id for job in jobs.values() if job.name == self.name), None)
        return jobs.get(self.job_id or "")

    def update(self, job: Job | None, hosts: tuple[str, ...], now: float, warn_seconds: float) -> None:
        """Publish the job's changes since the last call."""
        self._misses = 0 if job else self._misses + 1
        if self.srun is not None and not self.srun.runs:
            is_job_over = job is not None and job.state not in words.RUNNING | words.QUEUED
            self._end(job.state if job and is_job_over else "COMPLETED")
        elif job is None:
            if self._misses >= MISSES:
                self._end("")
        elif job.state in words.QUEUED:
            self._queued(job)
        elif job.state == "COMPLETING":
            pass  # the state before it is published already, and the state after it will be
        elif job.state in words.RUNNING:
            self._runs(job, hosts, now, warn_seconds)
        else:
            self._end(job.state)

    def _queued(self, job: Job) -> None:
        again = ""
        if self._has_run:
            again = "Slurm has queued the job again; the variables of its ranks are lost. "
            self.files.begin_again()
        event = Queued(again + words.waits(job.reason), job.starts_at)
        last = self.status
        if isinstance(last, Queued) and last.reason == event.reason and _is_near(last.eta, event.eta):
            return
        self.publish(event)

    def _runs(self, job: Job, hosts: tuple[str, ...], now: float, warn_seconds: float) -> None:
        before, self._allocated = self._allocated, Allocated(hosts, job.job_id, job.ends_at)
        self._has_run = True
        self.publish(self._allocated)
        for host in set(before.hosts if before else ()) - set(hosts):
            self.files.lose([host], f"Node {host} failed: Slurm has taken it out of the job.")
        ends_at = job.ends_at
        if ends_at is None or ends_at == self._warned_of or ends_at - now > warn_seconds:
            return
        was = before.ends_at if before else None
        is_shortened = was is not None and was - ends_at > SHORTENED_SECONDS
        why = "Slurm ends the job early: it is preempted, or its time limit was lowered." if is_shortened else ""
        self._warned_of = ends_at
        self.publish(EndsSoon(ends_at, why or words.ended("TIMEOUT").replace("has reached", "is about to reach")))

    def _end(self, state: str) -> None:
        self.files.read()
        self.publish_node_events()
        if state == "FAILED" and self.files.num_ended == self.num_nodes:  # an agent's exit code failed the job
            state = "COMPLETED"
        why = words.ended(state)
        if self.is_cancelled:
            why = "The job was cancelled with the group."
        elif state != "COMPLETED" or not self.files.has_started:
            log = self.files.log(None, MAX_LOG_BYTES)
            why += f" Its log ends with: {log}" if log else ""
        self.publish(Ended(why))


def _is_near(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and abs(one - other) < ETA_CHANGE_SECONDS
