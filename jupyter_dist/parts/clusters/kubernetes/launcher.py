"""Submits Indexed Jobs to a Kubernetes cluster, and follows their pods."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import re
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from traitlets import Unicode

from jupyter_dist.protocol.errors import JupyterDistError, bad_request
from jupyter_dist.protocol.models.sentences import say, text_of
from jupyter_dist.server.launchers.allocation import Allocation, NotKnown, Wanted, launcher_failed, unwritten
from jupyter_dist.server.launchers.common.limits import MAX_WAIT
from jupyter_dist.server.launchers.environmentfile import environment_script
from jupyter_dist.server.launchers.launcher import Availability, Launcher
from jupyter_dist.server.launchers.nodefiles import NodeFiles
from jupyter_dist.server.launchers.options import Option
from jupyter_dist.server.launchers.tools import ToolError

from .cluster import Cluster
from .job import JobPlace, KubernetesJob
from .options import END_SECONDS, FOLDER, OPTIONS, job_manifest, secret_manifest

NODES = "nodes"
_BOOT = "/jupyter_dist/agent/boot.py"
CONFIRM_POLL_SECONDS = 0.2
CONFIRM_SECONDS = 60.0
# Variables of the server's container, which are wrong in another image or pod.
_OF_THE_POD = re.compile(
    r"PATH|HOME|SHELL|USER|LOGNAME|HOSTNAME|LD_LIBRARY_PATH|TMPDIR|TMP|TEMP|XDG_\w+|\w*VISIBLE_DEVICES"
)
_OF_SERVICES = ("KUBERNETES_", "NVIDIA_")


class KubernetesLauncher(Launcher):
    """Groups in the pods of a Kubernetes cluster."""

    name: ClassVar[str] = "kubernetes"
    label: ClassVar[str] = "Kubernetes"
    options = OPTIONS
    common_options: ClassVar[tuple[Option, ...]] = (
        *(option for option in Launcher.common_options if not option.name.startswith("container")),  # pods are such
        MAX_WAIT,
    )

    kubeconfig = Unicode(help="The file with the access to the cluster. Empty: that of the server's pod, else"
                              " KUBECONFIG or ~/.kube/config.").tag(config=True)  # fmt: skip
    gpu_resource = Unicode("nvidia.com/gpu", help="The resource that counts the GPUs of a node.").tag(config=True)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cluster = Cluster(self.kubeconfig, self.command_seconds)

    async def probe(self) -> Availability:
        """Ask whether Jobs can be listed."""
        try:
            await asyncio.to_thread(self.cluster.check)
            namespace = await asyncio.to_thread(self.cluster.namespace, None)
        except ToolError as err:
            return Availability(is_usable=False, text=text_of(err))
        return Availability(is_usable=True, text=say("Pods are created in the namespace %1.", namespace))

    def check(self, options: Mapping[str, Any], num_nodes: int) -> dict[str, Any]:
        """Return the options. Raises JupyterDistError `bad_request`, with a sentence for each mistake."""
        found = super().check(options, num_nodes)
        if "image" not in found:
            message = say("Kubernetes needs the option 'image': a container image with torch and jupyter_dist.")
            raise bad_request(message, say("An administrator can set one for all: KubernetesLauncher.defaults."))
        return found

    def fitted(self, options: Mapping[str, Any], ranks_per_node: int) -> Mapping[str, Any]:
        """Return the options with a CPU for each rank."""
        return {"cpus_per_node": ranks_per_node, **options}

    async def grace_seconds(self, options: Mapping[str, Any]) -> float:
        """Return the time that Kubernetes leaves a pod between SIGTERM and SIGKILL."""
        return float(options.get("pod", {}).get("terminationGracePeriodSeconds", END_SECONDS))

    async def start(self, wanted: Wanted) -> Allocation:
        """Create the Job and its Secret."""
        try:
            files = await asyncio.to_thread(NodeFiles.create, wanted.directory / NODES, ())
        except OSError as err:
            raise launcher_failed(unwritten(err)) from err
        name = re.sub(r"[^a-z0-9-]", "-", f"jupyter-dist-{wanted.group_id}".lower())
        job: KubernetesJob | None = None
        try:
            namespace = await asyncio.to_thread(self.cluster.namespace, wanted.options.get("namespace"))
            job = KubernetesJob(self, wanted.directory, files, JobPlace(name, namespace, wanted.num_nodes))
            job.save()  # before Kubernetes is asked, so that no server ever loses it
            await asyncio.to_thread(self._create, job, wanted)
        except BaseException as err:
            files.remove()
            if job is not None:
                job.undo()
            if isinstance(err, ToolError):
                raise launcher_failed(
                    say("%1 refuses the job: %2", self.label, err), (await self.probe()).text
                ) from err
            raise
        return job

    def _create(self, job: KubernetesJob, wanted: Wanted) -> None:
        """Create the Job, then the Secret that its pods wait for; on a failure delete both. Raises ToolError."""
        inside = {str(file): f"{FOLDER}/{file.name}" for file in wanted.files}
        inside[wanted.python] = wanted.options.get("python") or wanted.python
        command = [inside.get(word, word) for word in of_image(wanted.command)]
        manifest = job_manifest(job.name, dataclasses.replace(wanted, command=tuple(command)), self.gpu_resource)
        created = self.cluster.create_job(job.namespace, manifest)
        try:
            environment = environment_script(wanted.env.for_private_file(), _OF_SERVICES, _OF_THE_POD)
            self.cluster.create_secret(job.namespace, secret_manifest(created, wanted.files, environment))
        except BaseException:
            with contextlib.suppress(ToolError):
                self.cluster.delete_job(job.namespace, job.name)
            raise

    def restore(self, directory: Path, files: NodeFiles, num_nodes: int, state: Mapping[str, Any]) -> Allocation:
        """Return the job that an earlier server created, or was about to."""
        return KubernetesJob(self, directory, files, JobPlace(str(state["name"]), str(state["namespace"]), num_nodes))

    async def look(self, allocations: Collection[Allocation]) -> None:
        """List the Jobs and the pods of each namespace once."""
        jobs = [allocation for allocation in allocations if isinstance(allocation, KubernetesJob)]
        for namespace in {job.namespace for job in jobs}:
            own = [job for job in jobs if job.namespace == namespace]
            try:
                found = await asyncio.to_thread(self.cluster.jobs, namespace)
                pods = await asyncio.to_thread(self.cluster.pods, namespace)
            except ToolError as err:
                for job in own:
                    job.publish(NotKnown(say("Kubernetes does not answer; the pods keep running meanwhile. %1", err)))
                continue
            for job in own:
                if not job.is_watched:
                    job.update(found.get(job.name), pods)

    async def cancel(self, job: KubernetesJob, grace_seconds: float) -> None:
        """Delete the Job, and wait until its pods have ended. Raises JupyterDistError `timed_out`."""
        job.is_cancelled = True
        limit = grace_seconds + CONFIRM_SECONDS
        deadline = time.monotonic() + limit
        job.is_watched = True
        try:
            with contextlib.suppress(ToolError):
                await asyncio.to_thread(self._end_pods, job, END_SECONDS + grace_seconds)
        finally:
            job.is_watched = False
        while not job.has_ended and time.monotonic() < deadline:
            with contextlib.suppress(ToolError):
                await asyncio.to_thread(self.cluster.delete_job, job.namespace, job.name)
            await self.look([job])
            await asyncio.sleep(CONFIRM_POLL_SECONDS)
        if not job.has_ended:
            message = say("Kubernetes has not confirmed within %1 s that the Job %2 has ended.", f"{limit:g}", job.name)
            raise JupyterDistError(
                "timed_out", message, say("Run 'kubectl delete job %1 -n %2'.", job.name, job.namespace)
            )

    def _end_pods(self, job: KubernetesJob, seconds: float) -> None:
        """Delete the Job, and take what its pods leave before they are gone. Blocks. Raises ToolError."""
        expected = sum(job.owns(pod) for pod in self.cluster.pods(job.namespace))
        if not expected:
            self.cluster.delete_job(job.namespace, job.name)
            return
        present: set[str] = set()
        is_deleted = False
        for kind, pod in self.cluster.changes(job.namespace, job.name, seconds):  # begins with all pods
            present = present - {pod.metadata.uid} if kind == "DELETED" else present | {pod.metadata.uid}
            job.take(pod)
            if not is_deleted and len(present) >= expected:
                is_deleted = True
                self.cluster.delete_job(job.namespace, job.name)
            if is_deleted and not present:
                return


def of_image(command: Sequence[str]) -> list[str]:
    """Return the command with the package of the image.

    A head that is not installed, as after an upgrade under its server, names the copy that it runs: images have none.
    """
    words = list(command)
    for place, word in enumerate(words):
        if word.endswith(_BOOT) and words[place + 1 : place + 2] == ["node"]:
            words[place : place + 2] = ["-m", "jupyter_dist.agent.node"]
    return words
