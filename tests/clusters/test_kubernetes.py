"""What is Kubernetes' own: images, access, pods that are lost, and an API that does not answer. On a scripted cluster."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from pathlib import Path

import pytest
from clusters.kubernetesapi import BAD_IMAGE, NODES
from waits import PATIENCE, until_async

from jupyter_dist.parts.clusters.kubernetes import job
from jupyter_dist.parts.clusters.kubernetes.launcher import of_image
from jupyter_dist.parts.clusters.kubernetes.options import job_manifest, secret_mode
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.secrets import Secrets
from jupyter_dist.server.launchers.allocation import Allocated, Ended, NotKnown, Queued, Wanted
from jupyter_dist.server.launchers.nodefiles import AgentExited
from jupyter_dist.testing.launchers import Followed


@contextlib.asynccontextmanager
async def launched(place, *actions, num_nodes=2, **options):
    launchers = place.launchers()
    wanted = place.wanted(*actions, num_nodes=num_nodes, **{"image": "torch", **options})
    allocation = await launchers.get("kubernetes").submit(wanted)
    try:
        yield allocation, Followed(allocation)
    finally:
        await allocation.cancel(20)
        await launchers.detach()


def test_a_pod_that_is_killed_is_lost_and_leaves_the_others(kubernetes, place):
    async def run():
        async with launched(place) as (allocation, followed):
            await followed.until_ready()
            (allocated,) = followed.of(Allocated) or await followed.until(Allocated)
            assert allocated.hosts == NODES
            kubernetes.kill_pod(1)
            (exited,) = await followed.until(AgentExited)
            assert (exited.node, exited.host, exited.text) == (1, "k2", "Kubernetes ended its pod: Error.")
            assert not allocation.has_ended
            await allocation.cancel(20)
            (ended,) = await followed.until(Ended)
            assert ended.why == "The job was cancelled with the group."
            assert not kubernetes.pods
            assert not kubernetes.secrets

    asyncio.run(run())


def test_a_look_at_a_job_whose_pods_end_does_not_take_them_for_lost(kubernetes, place, monkeypatch):
    async def run():
        async with launched(place) as (allocation, followed):
            await followed.until_ready()
            cluster, has_looked = allocation.launcher.cluster, threading.Event()
            changes = cluster.changes

            def late(*arguments):
                for number, change in enumerate(changes(*arguments)):
                    if number == len(NODES):  # the first end of a pod
                        has_looked.wait(PATIENCE)
                    yield change

            monkeypatch.setattr(cluster, "changes", late)
            cancelling = asyncio.create_task(allocation.cancel(20))
            await until_async(lambda: not kubernetes.pods)
            await allocation.launcher.look([allocation])
            has_looked.set()
            await cancelling
            await followed.until(Ended)
            assert sorted((event.node, event.code) for event in followed.of(AgentExited)) == [(0, 0), (1, 0)]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("options", "num_nodes", "reason", "can_start"),
    [
        ({"image": BAD_IMAGE}, 1, "Its image cannot be used (ErrImagePull): it will not start. Shut", False),
        ({}, 3, "It waits for nodes with enough free. If no node of the cluster is as large, ask for less.", True),
    ],
)
@pytest.mark.usefixtures("kubernetes")
def test_pods_that_wait_say_why(place, options, num_nodes, reason, can_start):
    async def run():
        async with launched(place, num_nodes=num_nodes, **options) as (_, followed):
            while not (found := [event for event in followed.of(Queued) if event.reason.startswith(reason)]):
                await followed.until(Queued, len(followed.of(Queued)) + 1)
            assert found[0].can_start == can_start
            assert " Kubernetes says: " in found[0].reason

    asyncio.run(run())


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ("0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.", "No node that is up is one"),
        ("0/3 nodes are available: 3 node(s) had untolerated taint {gpu: }.", "No node that is up is one"),
        ('0/3 nodes are available: persistentvolumeclaim "data" not found.', "A volume that it mounts does not exist"),
        ("0/3 nodes are available: 3 node(s) were unschedulable.", "It waits for nodes. Kubernetes says: 0/3"),
    ],
)
def test_obstacles_of_the_scheduler_have_words(message, sentence):
    assert job._unscheduled(message).reason.startswith(sentence)


def test_an_api_that_is_silent_is_not_an_end_and_one_that_forbids_is_named(kubernetes, place):
    async def run():
        async with launched(place) as (allocation, followed):
            await followed.until_ready()
            await followed.until(Allocated)
            kubernetes.is_silent = True
            (unknown,) = await followed.until(NotKnown)
            assert unknown.why.startswith("Kubernetes does not answer; the pods keep running meanwhile. ")
            kubernetes.is_silent = False
            await followed.until(Allocated, 2)
            kubernetes.is_forbidden = True
            found = await place.launchers().get("kubernetes").probe()
            assert not found.is_usable
            assert 'User "u" cannot list' in found.text
            wanted = place.wanted(image="torch")
            with pytest.raises(
                JupyterDistError, match=r"Kubernetes refuses the job: jobs\.batch is forbidden"
            ) as refused:
                await place.launchers().get("kubernetes").submit(wanted)
            assert refused.value.code == "launcher_failed"
            assert [path.name for path in wanted.directory.iterdir()] == ["join.json"]
            kubernetes.is_forbidden = False
            assert not allocation.has_ended

    asyncio.run(run())


def test_without_an_image_or_access_nothing_is_created(place, monkeypatch, tmp_path):
    async def run():
        launcher = place.launchers().get("kubernetes")
        with pytest.raises(JupyterDistError, match="Kubernetes needs the option 'image'"):
            await launcher.submit(place.wanted())
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
        found = await place.launchers().get("kubernetes").probe()
        assert not found.is_usable
        assert found.text == "The server has no access to a cluster: it runs in no pod, and there is no kubeconfig."
        (tmp_path / "none").write_text("{}")
        found = await place.launchers().get("kubernetes").probe()
        assert found.text.startswith("The server has no access to a cluster: Invalid kube-config file.")

    asyncio.run(run())


def test_pods_run_the_package_of_their_image_also_after_an_upgrade_under_the_server():
    """The head names its copy then, which is on the server's machine."""
    copied = [
        "bash",
        "-c",
        "x",
        "python",
        "/run/user/1/jupyter_dist-code/copy-0/jupyter_dist/agent/boot.py",
        "node",
        "join",
    ]
    assert of_image(copied) == ["bash", "-c", "x", "python", "-m", "jupyter_dist.agent.node", "join"]
    assert of_image(("python", "-m", "jupyter_dist.agent.node", "j")) == [
        "python",
        "-m",
        "jupyter_dist.agent.node",
        "j",
    ]


def test_pods_have_what_was_asked_for():
    options = {
        "image": "torch", "gpus_per_node": 4, "cpus_per_node": 8, "memory": "64Gi", "service_account": "training",
        "node_selector": {"gpu": "a100"},
        "pod": {"tolerations": [{"key": "gpu"}], "volumes": [{"name": "data", "emptyDir": {}}]},
    }  # fmt: skip
    wanted = Wanted("g", "train", Path("/"), 2, ("python", "-m", "x"), Secrets(), "/work", options)
    manifest = job_manifest("jupyter-dist-g", wanted, "nvidia.com/gpu")
    pod = manifest["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["resources"]["limits"] == {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "4"}
    assert container["command"][-4:] == ["/work", "python", "-m", "x"]
    assert [volume["name"] for volume in pod["volumes"]] == ["job", "data"]
    assert pod["volumes"][0]["secret"]["defaultMode"] == 0o444  # root owns the files, and the user is not known
    assert secret_mode({"securityContext": {"runAsUser": 0}}) == 0o400
    assert secret_mode({"securityContext": {"runAsUser": 1000, "fsGroup": 2000}}) == 0o440
    assert (pod["nodeSelector"], pod["serviceAccountName"]) == ({"gpu": "a100"}, "training")
    assert pod["tolerations"] == [{"key": "gpu"}]
