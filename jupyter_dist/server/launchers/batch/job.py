"""One job of a batch queue, and the events that follow from how the queue lists it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

from jupyter_dist.protocol.models.sentences import join, say
from jupyter_dist.server.launchers.allocation import (
    CANCELLED,
    RELEASED,
    Allocated,
    Allocation,
    Ended,
    EndsSoon,
    NamedLauncher,
    Queued,
)
from jupyter_dist.server.launchers.nodefiles import NodeFiles
from jupyter_dist.system.code.sources import ARCHIVE

MISSES = 3  # how often the queue must leave a job out before the job counts as over
ETA_CHANGE_SECONDS = 60.0  # the estimate moves with each look
SHORTENED_SECONDS = 30.0
MAX_LOG_BYTES = 1000

Phase = Literal["queued", "running", "ending", "ended"]


@dataclass(frozen=True)
class ListedJob:
    """A job as the queue lists it, in words that are the same for all engines."""

    job_id: str
    name: str
    phase: Phase
    text: str = ""  # why it waits, or why it has ended; empty if it has ended without a fault
    hosts: tuple[str, ...] = ()
    starts_at: float | None = None
    ends_at: float | None = None
    is_failed_command: bool = False  # ended because a command of the job has returned an exit code
    can_start: bool = True  # False for a job that waits in vain: it cannot start as it was submitted


class JobCanceller(NamedLauncher, Protocol):
    """A launcher that can cancel a job."""

    label: ClassVar[str]

    async def cancel(self, job: BatchJob, grace_seconds: float) -> None:
        """Have the engine end the job."""


class BatchJob(Allocation):
    """A job that was submitted to a queue, or is about to be."""

    launcher: JobCanceller
    lists_ended: ClassVar[bool] = True  # whether the queue lists a job for some minutes after its end

    def __init__(self, launcher: JobCanceller, directory: Path, files: NodeFiles, num_nodes: int, name: str) -> None:
        super().__init__(launcher, directory, files, num_nodes)
        self.name = name
        self.job_id: str | None = None
        self.is_cancelled = False
        self._misses = 0
        self._has_run = False
        self._allocated: Allocated | None = None
        self._warned_of: float | None = None

    @property
    def code(self) -> str:
        """Return the path of the code in the folder of the job."""
        path = self.files.folder / ARCHIVE
        return str(path) if path.exists() else ""

    def state(self) -> dict[str, Any]:
        """Return the name and the id of the job; the id is None while it is being submitted."""
        return {"name": self.name, "job_id": self.job_id}

    async def cancel(self, grace_seconds: float) -> None:
        """Have the engine end the job."""
        if not self.has_ended:
            await self.launcher.cancel(self, grace_seconds)

    def find(self, jobs: Mapping[str, ListedJob]) -> ListedJob | None:
        """Return the job's entry; found by name if the server was killed before the engine had answered."""
        if self.job_id is None:
            self.job_id = next((job.job_id for job in jobs.values() if job.name == self.name), None)
        return jobs.get(self.job_id or "")

    def update(self, job: ListedJob | None, now: float, warn_seconds: float) -> None:
        """Publish the job's changes since the last call."""
        self._misses = 0 if job else self._misses + 1
        if job is None:
            self._missed()
        elif job.phase == "queued":
            self._queued(job)
        elif job.phase == "running":
            self._runs(job, now, warn_seconds)
        elif job.phase == "ended":
            self.end(job.text, is_failed_command=job.is_failed_command)

    def end(self, why: str, *, is_failed_command: bool = False) -> None:
        """Publish the end of the job; `why` is empty if there was no fault."""
        self.files.read()
        self.publish_node_events()
        if is_failed_command and self.files.num_ended == self.num_nodes:  # an agent's exit code failed the job
            why = ""
        if self.is_cancelled:
            why = CANCELLED
        elif why or not self.files.has_started:
            log = self.files.log(None, MAX_LOG_BYTES)
            why = join(why or RELEASED, say("Its log ends with: %1", log) if log else "")
        self.publish(Ended(why or RELEASED))

    def _missed(self) -> None:
        has_all_ended = not self.lists_ended and self.files.num_ended == self.num_nodes
        if self._misses >= MISSES or has_all_ended:
            label = self.launcher.label
            why = say("%1 does not list the job any more: it ended some minutes ago, or was never submitted.", label)
            self.end("" if has_all_ended else why)

    def _queued(self, job: ListedJob) -> None:
        again = ""
        if self._has_run:
            label = self.launcher.label
            again = say("%1 has queued the job again; the variables of its ranks are lost.", label)
            self.files.begin_again()
        event = Queued(join(again, job.text), job.starts_at, job.can_start)
        last = self.status
        if isinstance(last, Queued) and last.reason == event.reason and _is_near(last.eta, event.eta):
            return
        self.publish(event)

    def _runs(self, job: ListedJob, now: float, warn_seconds: float) -> None:
        label = self.launcher.label
        before, self._allocated = self._allocated, Allocated(job.hosts, job.job_id, job.ends_at)
        self._has_run = True
        self.publish(self._allocated)
        for host in set(before.hosts if before else ()) - set(job.hosts):
            self.files.lose([host], say("Node %1 failed: %2 has taken it out of the job.", host, label))
        ends_at = job.ends_at
        if ends_at is None or ends_at == self._warned_of or ends_at - now > warn_seconds:
            return
        was = before.ends_at if before else None
        is_shortened = was is not None and was - ends_at > SHORTENED_SECONDS
        early = say("%1 ends the job early: it is preempted, or its time limit was lowered.", label)
        self._warned_of = ends_at
        self.publish(EndsSoon(ends_at, early if is_shortened else say("The job is about to reach its time limit.")))


def _is_near(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and abs(one - other) < ETA_CHANGE_SECONDS
