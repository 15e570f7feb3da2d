"""One job or step of Slurm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jupyter_dist.server.launchers.batch.job import BatchJob, JobCanceller, ListedJob, Phase
from jupyter_dist.server.launchers.nodefiles import NodeFiles
from jupyter_dist.server.launchers.tools import Detached

from . import words
from .queue import Job


class SlurmJob(BatchJob):
    """A job, or a step (`srun` is then the process that runs it) in the job of the server."""

    def __init__(self, launcher: JobCanceller, directory: Path, files: NodeFiles, num_nodes: int, name: str) -> None:
        super().__init__(launcher, directory, files, num_nodes, name)
        self.srun: Detached | None = None

    def state(self) -> dict[str, Any]:
        """Return the name and the id of the job, and the identity of srun."""
        srun = [self.srun.pid, self.srun.started] if self.srun else None
        return {**super().state(), "srun": srun}

    def update(self, job: ListedJob | None, now: float, warn_seconds: float) -> None:
        """Publish the job's changes since the last call; a step is over when its srun is."""
        if self.srun is None or self.srun.runs:
            super().update(job, now, warn_seconds)
        elif job is not None and job.phase == "ended":
            self.end(job.text, is_failed_command=job.is_failed_command)
        else:
            self.end("")


def as_listed(job: Job, hosts: tuple[str, ...]) -> ListedJob:
    """Return a job of squeue in the words that are the same for all engines."""
    if job.state in words.QUEUED:
        wait = words.waits(job.reason)
        return ListedJob(
            job.job_id, job.name, "queued", wait.text, hosts, job.starts_at, job.ends_at, can_start=wait.can_start
        )
    phase, text = _phase(job)
    is_failed = job.state == "FAILED"
    return ListedJob(job.job_id, job.name, phase, text, hosts, job.starts_at, job.ends_at, is_failed)


def _phase(job: Job) -> tuple[Phase, str]:
    if job.state == "COMPLETING":  # the state before it is published already, and the state after it will be
        return "ending", ""
    if job.state in words.RUNNING:
        return "running", ""
    return "ended", "" if job.state == "COMPLETED" else words.ended(job.state)
