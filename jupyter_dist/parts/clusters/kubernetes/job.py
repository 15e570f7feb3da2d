"""One Job of Kubernetes. What its pods do is written into files, as nodes of other engines write theirs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from jupyter_dist.protocol.models.sentences import join, say
from jupyter_dist.server.launchers.allocation import (
    CANCELLED,
    RELEASED,
    Allocated,
    Allocation,
    Ended,
    NamedLauncher,
    Queued,
    reported,
)
from jupyter_dist.server.launchers.nodefiles import LOST, NodeFiles
from jupyter_dist.server.launchers.tools import ToolError
from jupyter_dist.system.files.jsonfile import read_json
from jupyter_dist.system.files.private import write_private

from .cluster import JOB_LABEL, Cluster

INDEX = "batch.kubernetes.io/job-completion-index"
PODS = "pods.json"
LOG_LINES = 200
MISSES = 3
_NEVER = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "CreateContainerConfigError"})
_OTHERS = say("it will not start. Shut the group down, and start one with another image.")
_CODE = re.compile(r"(\d{1,3})\n?")


@dataclass(frozen=True)
class JobPlace:
    """The name of a Job, its namespace, and its number of pods."""

    name: str
    namespace: str
    num_nodes: int


class KubernetesCanceller(NamedLauncher, Protocol):
    """A launcher that can end a Job, and has its cluster."""

    cluster: Cluster

    async def cancel(self, job: KubernetesJob, grace_seconds: float) -> None:
        """Have Kubernetes end the Job."""


class KubernetesJob(Allocation):
    """A Job with one pod for each node."""

    launcher: KubernetesCanceller

    def __init__(self, launcher: KubernetesCanceller, directory: Path, files: NodeFiles, place: JobPlace) -> None:
        super().__init__(launcher, directory, files, place.num_nodes)
        self.name = place.name
        self.namespace = place.namespace
        self.is_cancelled = False
        self.is_watched = False  # its pods' ends are taken one by one: a list of pods that are left knows no exit codes
        self._misses = 0
        self._pods: dict[str, list[Any]] = self._read_pods()  # [name, node, run, whether it has ended] by uid

    def state(self) -> dict[str, Any]:
        """Return the name and the namespace of the Job."""
        return {"name": self.name, "namespace": self.namespace}

    async def cancel(self, grace_seconds: float) -> None:
        """Have Kubernetes end the Job."""
        if not self.has_ended:
            await self.launcher.cancel(self, grace_seconds)

    async def logs(self, node: int | None, max_bytes: int) -> str:
        """Return the end of a pod's log: from the cluster while the pod runs."""
        running = [name for name, of, _, has_ended in self._pods.values() if of == node and not has_ended]
        if running:
            with contextlib.suppress(ToolError):
                text = await asyncio.to_thread(self.launcher.cluster.log, self.namespace, running[-1], LOG_LINES)
                return text[-max_bytes:].strip()
        return await super().logs(node, max_bytes)

    def owns(self, pod: Any) -> bool:
        """Return whether a pod is one of this Job."""
        return (pod.metadata.labels or {}).get(JOB_LABEL) == self.name

    def update(self, job: Any, pods: Sequence[Any]) -> None:
        """Publish the changes since the last call. Blocks."""
        own = sorted(filter(self.owns, pods), key=_created)
        for pod in own:
            self.take(pod)
        self._take_lost({pod.metadata.uid for pod in own})
        self._misses = 0 if job is not None else self._misses + 1
        if job is None:
            if not own and (self.is_cancelled or self._misses >= MISSES):  # pods that still end may save
                self.end(say("The Job was deleted."))
        elif (finished := _finished(job)) is not None:
            self.end(finished)
        else:
            placed = [pod.spec.node_name for pod in own if pod.spec.node_name]
            waits = sorted((wait for wait in map(_waits, own) if wait.reason), key=lambda wait: wait.can_start)
            if len(placed) < self.num_nodes or not all(wait.can_start for wait in waits):
                self.publish((waits or [Queued(say("Kubernetes is about to create its pods."))])[0])
            else:
                self.publish(Allocated(tuple(placed[: self.num_nodes]), self.name))

    def take(self, pod: Any) -> None:
        """Write the start and the end of a pod into files, once."""
        known = self._pods.get(pod.metadata.uid)
        status = next(iter(pod.status.container_statuses or ()), None)
        state = status.state if status is not None else None
        if state is None or not (state.running or state.terminated) or (known is not None and known[3]):
            return
        host = pod.spec.node_name or pod.metadata.name
        if known is None:
            node = int((pod.metadata.annotations or {}).get(INDEX, 0))
            run = sum(of == node for _, of, _, _ in self._pods.values())
            known = self._pods[pod.metadata.uid] = [pod.metadata.name, node, run, False]
            self._write(known, "started", host)
        if state.terminated:
            self._take_end(known, host, state.terminated)
        self._save_pods()

    def _take_end(self, known: list[Any], host: str, ended: Any) -> None:
        known[3] = True
        found = _CODE.match(ended.message or "")
        if found is None:  # the script did not come to its end
            self._write(known, "ended", f"{LOST} {host} Kubernetes ended its pod: {ended.reason}.")
            return
        self._write(known, "log", (ended.message or "")[found.end() :])
        self._write(known, "ended", f"{found[1]} {host}")

    def _take_lost(self, present: set[str]) -> None:
        for uid, known in self._pods.items():
            if uid not in present and not known[3]:
                known[3] = True
                self._write(known, "ended", f"{LOST} {known[0]} Its pod was deleted.")
                self._save_pods()

    def end(self, why: str) -> None:
        """Publish the end of the Job; `why` is empty if there was no fault."""
        why = CANCELLED if self.is_cancelled else why
        self.publish(Ended(why or RELEASED))

    def _write(self, known: list[Any], suffix: str, text: str) -> None:
        path = self.files.folder / f"node-{known[1]}-{known[2]}.{suffix}"
        write_private(path, text)

    def _save_pods(self) -> None:
        write_private(self.files.folder / PODS, json.dumps(self._pods))

    def _read_pods(self) -> dict[str, list[Any]]:
        try:
            found = read_json(self.files.folder / PODS)
        except (OSError, ValueError):
            return {}
        return {uid: pod for uid, pod in found.items() if _is_pod(pod)} if isinstance(found, dict) else {}


def _is_pod(known: Any) -> bool:
    """Whether a value of the file of pods is the name of one, its node and run, and whether it has ended."""
    return isinstance(known, list) and [type(part) for part in known] == [str, int, int, bool]


def _created(pod: Any) -> tuple[str, str]:
    return str(pod.metadata.creation_timestamp), pod.metadata.name


def _finished(job: Any) -> str | None:
    """Return why a Job has ended, empty if it has completed; None if it has not ended."""
    for condition in job.status.conditions or ():
        if condition.status == "True" and condition.type == "Complete":
            return ""
        if condition.status == "True" and condition.type == "Failed":
            if condition.reason == "DeadlineExceeded":
                return say("The job has reached its time limit.")
            return reported("Kubernetes", condition.message or condition.reason or "failed")
    return None


def _waits(pod: Any) -> Queued:
    """Return why a pod does not run yet; with an empty reason if that is not known."""
    for status in pod.status.container_statuses or ():
        waiting = status.state.waiting if status.state else None
        if waiting is not None and waiting.reason in _NEVER:
            never = say("Its image cannot be used (%1): %2", waiting.reason, _OTHERS)
            return Queued(join(never, reported("Kubernetes", waiting.message or "")), can_start=False)
        if waiting is not None and waiting.reason:
            return Queued(say("Kubernetes prepares its pods (%1).", waiting.reason))
    for condition in pod.status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "False":
            return _unscheduled((condition.message or "").rstrip("."))
    return Queued("")


def _unscheduled(message: str) -> Queued:
    """Return why no node takes a pod, from the scheduler's count of nodes for each obstacle."""
    if "persistentvolumeclaim" in message and "not found" in message:
        why = say("A volume that it mounts does not exist: it starts when it is created.")
    elif "Insufficient" in message or "Too many pods" in message:
        why = say("It waits for nodes with enough free. If no node of the cluster is as large, ask for less.")
    elif "affinity" in message or "selector" in message or "taint" in message:
        why = say(
            "No node that is up is one of those that it may use: it waits for such a node. Check the options"
            " 'node_selector' and 'pod' (tolerations)."
        )
    else:
        why = say("It waits for nodes.")
    return Queued(join(why, reported("Kubernetes", message)))
