"""What every launcher does, whatever its engine: one suite over all of them, with real processes on real engines."""

import asyncio
import contextlib
import dataclasses

import pytest
from launchers.conftest import Followed, running
from waits import until

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.server.launchers.allocation import AgentExited, AgentStarted, Allocated, Ended
from jupyter_dist.system.processes import command_line

# The name of a launcher, and whether the server runs inside an allocation of its engine.
ENGINES = ("processes", "slurm", "slurm-step", pytest.param("ray", marks=pytest.mark.ray))


@pytest.fixture(params=ENGINES)
def engine(request, monkeypatch):
    if request.param.startswith("slurm"):
        cluster = request.getfixturevalue("slurm")
    if request.param == "ray":
        request.getfixturevalue("ray")
    if request.param == "slurm-step":  # what Slurm sets for a server that was started by a job
        job = cluster.ask("sbatch", "--parsable", "--nodes=2", "--output=/dev/null", "--wrap=sleep 600").stdout.strip()
        until(lambda: cluster.jobs().get(job) == "RUNNING", cluster.jobs)
        monkeypatch.setenv("SLURM_JOB_ID", job)
        monkeypatch.setenv("SLURM_JOB_NUM_NODES", "2")
    return request.param.partition("-")[0]


@contextlib.asynccontextmanager
async def server(place):
    launchers = place.launchers()
    try:
        yield launchers
    finally:
        await launchers.detach()


def test_nodes_start_are_adopted_by_the_next_server_and_end(engine, place):
    async def run():
        wanted = place.wanted()
        async with server(place) as launchers:
            assert (await launchers.probe())[engine].is_usable
            allocation = await launchers.get(engine).submit(wanted)
            first = Followed(allocation)
            await first.until(AgentStarted, 2)
            (allocated,) = first.of(Allocated)
            assert len(allocated.hosts) == 2
            assert {event.node for event in first.of(AgentStarted)} == {0, 1}
        state = wanted.directory / "launcher.json"
        assert state.stat().st_mode & 0o777 == 0o600
        assert "the secret" not in state.read_text()
        assert all(b"secret" not in b" ".join(command_line(pid)) for pid in running(wanted.group_id))
        assert len(running(wanted.group_id)) >= 2  # no server: they keep running
        async with server(place) as launchers:
            again = launchers.adopt(wanted.directory)
            second = Followed(again)
            await second.until_ready()
            await second.until(Allocated)
            await again.cancel(20)
            await again.cancel(20)  # idempotent
            await second.until(Ended)
            assert [(event.node, event.code) for event in sorted(second.of(AgentExited), key=str)] == [(0, 0), (1, 0)]
            for node in (0, 1):
                assert f"node {node}: the secret 600 yes\nended by SIGTERM" in await again.logs(node, 1000)
            assert running(wanted.group_id) == []
            again.forget()
            assert list((place.folder / "shared").iterdir()) == []

    asyncio.run(run())


def test_the_end_of_one_node_is_reported_and_leaves_the_others(engine, place):
    async def run():
        async with server(place) as launchers:
            wanted = place.wanted("0=exit:3", "1=wait")
            allocation = await launchers.get(engine).submit(wanted)
            followed = Followed(allocation)
            (exited,) = await followed.until(AgentExited)
            assert (exited.node, exited.code, exited.signal) == (0, 3, None)
            assert exited.text.endswith("no such torch")
            await asyncio.sleep(5 * launchers.get(engine).poll_seconds)
            assert not allocation.has_ended
            await allocation.cancel(20)
            await followed.until(Ended)

    asyncio.run(run())


def test_when_all_nodes_have_ended_the_job_has_and_signals_are_named(engine, place):
    async def run():
        async with server(place) as launchers:
            allocation = await launchers.get(engine).submit(place.wanted("0=kill", "1=exit:0"))
            followed = Followed(allocation)
            await followed.until(Ended)
            exits = sorted((event.node, event.code, event.signal) for event in followed.of(AgentExited))
            assert exits == [(0, None, 9), (1, 0, None)]
            assert followed.seen[-1] == Ended("The node agents have ended, and their nodes are released.")

    asyncio.run(run())


def test_a_missing_interpreter_is_named_with_its_node(engine, place):
    async def run():
        async with server(place) as launchers:
            wanted = dataclasses.replace(place.wanted(), command=("/no/such/python", "-c", "pass"))
            followed = Followed(await launchers.get(engine).submit(wanted))
            await followed.until(AgentExited, 2)
            assert {(event.code, "/no/such/python" in event.text) for event in followed.of(AgentExited)} == {
                (127, True)
            }
            await followed.until(Ended)

    asyncio.run(run())


def test_wrong_options_are_refused_with_a_sentence_each_and_leave_nothing(engine, place):
    async def run():
        async with server(place) as launchers:
            wanted = place.wanted(colour="red", shape="round")
            with pytest.raises(JupyterDistError) as refused:
                await launchers.get(engine).submit(wanted)
            assert refused.value.code == "bad_request"
            assert "no option 'colour'. " in refused.value.message
            assert "no option 'shape'." in refused.value.message
            assert [path.name for path in wanted.directory.iterdir()] == ["join.json"]
            assert list((place.folder / "shared").iterdir()) == []

    asyncio.run(run())
