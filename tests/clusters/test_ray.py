"""What is Ray's own: what it lacks, and the deaths of its driver, raylet and head. On a real cluster with two raylets."""

import asyncio
import contextlib
import os
import signal
import sys

import pytest
from waits import PATIENCE, until

from jupyter_dist.parts.clusters.ray.options import bundles
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.server.launchers.allocation import AgentExited, AgentStarted, Ended, NotKnown, Queued
from jupyter_dist.testing.launchers import Followed, running


@contextlib.asynccontextmanager
async def launched(place, *actions, **wanted):
    """A job that was submitted, and its launcher."""
    launchers = place.launchers()
    try:
        launcher = launchers.get("ray")
        allocation = await launcher.submit(place.wanted(*actions, **wanted))
        try:
            yield launcher, allocation, Followed(allocation)
        finally:
            await allocation.cancel(20)
    finally:
        await launchers.detach()


def refusal(place, **options):
    """The error of a job that cannot be submitted, and that nothing is left of it."""

    async def run():
        launchers = place.launchers()
        wanted = place.wanted(**options)
        with pytest.raises(JupyterDistError) as refused:
            await launchers.get("ray").submit(wanted)
        assert [path.name for path in wanted.directory.iterdir()] == ["join.json"]
        assert running(wanted.group_id) == []
        return refused.value

    return asyncio.run(run())


# -- what can be asked -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"address": "ray://10.0.0.1:10001"}, "'address' is an address of Ray Client; write the one that 'ray start'"),
        ({"address": "http://10.0.0.1:8265"}, "'address' is the address of Ray's dashboard; write the one"),
        ({"address": "local"}, "'address' is 'local'; an address looks like 10.0.0.1:6379, or auto."),
        ({"gpus_per_node": -1}, "'gpus_per_node' is -1; it must be at least 0."),
        ({"gpus_per_node": "many"}, "'gpus_per_node' must be a whole number."),
        ({"cpus_per_node": 0}, "'cpus_per_node' is 0; it must be at least 1."),
        ({"resources": "a100"}, "'resources' must be an object"),
        ({"resources": {"CPU": 3}}, "'resources' has 'CPU'; use 'cpus_per_node' for it."),
        ({"resources": {"a b": 1}}, "'resources' has 'a b'; a resource looks like special_hardware or accelerator_typ"),
        ({"resources": {"tape": "two"}}, "'resources' has 'tape' with 'two'; how much of it must be a number above 0."),
        ({"runtime_env": '{"env_vars": '}, "'runtime_env' must be an object"),
        ({"runtime_env": {"env_vars": {"A": 1}}}, "'runtime_env' has 'env_vars', which must be an object of texts."),
        ({"runtime_env": {"pip": ["x" * 30000]}}, "'runtime_env' must be at most 20000 characters as JSON."),
        ({"gpu": 1}, "The launcher ray has no option 'gpu'."),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_submitted(place, given, sentence):
    with pytest.raises(JupyterDistError) as refused:
        place.launchers().get("ray").check(given, 2)
    assert refused.value.message.startswith(sentence)


def test_options_that_were_typed_become_a_bundle_for_each_node(place):
    typed = {"cpus_per_node": "9", "gpus_per_node": "4", "resources": '{"accelerator_type:A100": 0.001}'}
    found = place.launchers().get("ray").check(typed, 2)
    large = {"CPU": 9, "GPU": 4, "accelerator_type:A100": 0.001}
    assert bundles(place.wanted(**found)) == [large, large]
    assert bundles(place.wanted(ranks_per_node=(2, 4), **found)) == [{**large, "CPU": 5, "GPU": 2}, large]
    assert bundles(place.wanted(num_nodes=1, cpus_per_node=1)) == [{"CPU": 1}]


def test_a_python_without_ray_and_an_address_without_a_cluster_are_named(place):
    lacks = place.folder / "python"
    lacks.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')  # without site-packages
    lacks.chmod(0o700)
    place.config.RayLauncher.python = str(lacks)
    refused = refusal(place)
    assert refused.code == "launcher_failed"
    assert "has no Ray that can be imported: No module named 'ray'" in refused.message
    found = asyncio.run(place.launchers().get("ray").probe())
    assert (found.is_usable, "has no Ray that can be imported" in found.text) == (False, True)
    place.config.RayLauncher.python = "/no/such/python"
    assert "'python' cannot be started: No such file or directory" in refusal(place).message
    pytest.importorskip("ray")
    place.config.RayLauncher.python = sys.executable
    message = "There is no Ray cluster at 127.0.0.1:9: nothing answers there."
    assert refusal(place, address="127.0.0.1:9").message == message


@pytest.mark.ray
def test_what_a_waiting_job_lacks_is_named_and_what_others_have_is_waited_for(ray, place):
    async def run():
        async with launched(place, ranks_per_node=(1, 64)) as (launcher, allocation, followed):
            lacks = (
                "It needs 1 node with 64 CPU, 1 node with 1 CPU. Of the 3 nodes of the cluster, 0 can give 64 CPU."
                " It starts when more nodes join."
            )
            while Queued(lacks) not in followed.seen:
                followed.seen.append(await asyncio.wait_for(anext(followed._events), PATIENCE))
            assert (await launcher.probe()).text.endswith(", nodes: 3, free: 8/8 CPU, 4/4 GPU.")
            await allocation.cancel(20)
            await followed.until(Ended)
        async with launched(place, ranks_per_node=(1, 3), address=ray.address) as (_, first, followed):
            await followed.until(AgentStarted, 2)
            async with launched(place, cpus_per_node=2, gpus_per_node=1) as (_, _, waiting):
                busy = "It needs 2 nodes with 2 CPU, 1 GPU each. It waits until others release them; free are 4/8 CPU"
                while not any(event.reason.startswith(busy) for event in waiting.of(Queued)):
                    waiting.seen.append(await asyncio.wait_for(anext(waiting._events), PATIENCE))
                # The node with one rank has one CPU of its machine, so three are free there.
                async with launched(place, num_nodes=1, cpus_per_node=3) as (_, _, beside):
                    await beside.until(AgentStarted)
                await first.cancel(20)
                await waiting.until_ready()

    asyncio.run(run())


@pytest.mark.ray
def test_nodes_have_the_devices_and_the_variables_that_ray_gives_them(ray, place):
    async def run():
        environment = {"env_vars": {"GIVEN": "by ray"}}
        async with launched(place, "0=env:GIVEN", "1=env:CUDA_VISIBLE_DEVICES", gpus_per_node=2, runtime_env=environment) as (
            _, allocation, followed,
        ):  # fmt: skip
            await followed.until(Ended)
            assert "GIVEN is 'by ray'" in await allocation.logs(0, 1000)
            assert "CUDA_VISIBLE_DEVICES is '0,1'" in await allocation.logs(1, 1000)

    asyncio.run(run())


# -- what fails --------------------------------------------------------------------------------------------------


@pytest.mark.ray
def test_a_killed_driver_is_named_and_its_nodes_end_and_are_released(ray, place):
    async def run():
        async with launched(place, cpus_per_node=4) as (_, allocation, followed):
            await followed.until_ready()
            group_id = allocation.directory.name
            os.kill(allocation.driver.pid, signal.SIGKILL)
            (ended,) = await followed.until(Ended)
            assert ended.why.startswith("The process that asks Ray for nodes has ended.")
            await asyncio.to_thread(until, lambda: not running(group_id), lambda: running(group_id))
        async with launched(place, cpus_per_node=4) as (_, _, followed):  # all of each node is free again
            await followed.until_ready()

    asyncio.run(run())


@pytest.mark.ray
def test_a_killed_raylet_is_named_with_its_node_and_leaves_the_other(ray, place):
    async def run():
        async with launched(place) as (_, allocation, followed):
            await followed.until_ready()
            before = running(allocation.directory.name)
            ray.ask("kill", "n2")
            try:
                (lost,) = await followed.until(AgentExited)
                assert (lost.code, lost.signal) == (None, None)
                assert lost.text, lost
                assert not allocation.has_ended
                # What ran below a killed raylet sees that by itself, and ends.
                await asyncio.to_thread(until, lambda: len(running(allocation.directory.name)) < len(before))
                assert running(allocation.directory.name)
                await allocation.cancel(20)
                assert running(allocation.directory.name) == []
            finally:
                ray.ask("replace", "n2")

    asyncio.run(run())


@pytest.mark.ray
def test_a_killed_head_is_named_and_the_nodes_end_by_themselves(ray, place, monkeypatch):
    """Drivers are killed by Ray itself, a minute later by default."""
    place.config.RayLauncher.lease_seconds = 3.0
    monkeypatch.setenv("RAY_gcs_rpc_server_reconnect_timeout_s", "5")

    async def run():
        async with launched(place) as (_, allocation, followed):
            await followed.until_ready()
            ray.ask("kill", "gcs")
            (unknown,) = await followed.until(NotKnown)
            assert f"Ray cannot reach the head of the cluster at {ray.address}." in unknown.why
            assert not followed.of(AgentExited)
            await followed.until(Ended)
            group_id = allocation.directory.name
            await asyncio.to_thread(until, lambda: not running(group_id), lambda: running(group_id))

    asyncio.run(run())
