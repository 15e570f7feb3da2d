"""PBS, LSF and Grid Engine: reasons, refusals, silence, and nodes that cannot be reached. On scripted engines.

What the commands of the real engines print is recorded here from their documentation.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import subprocess

import pytest
from clusters import scripted
from waits import until_async

from jupyter_dist.parts.clusters.queues import gridengine, lsf, pbs
from jupyter_dist.parts.clusters.queues.options import clock, seconds_of
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.server.launchers.allocation import Allocated, Ended, NotKnown, Queued
from jupyter_dist.server.launchers.batch.job import ListedJob
from jupyter_dist.server.launchers.environmentfile import environment_script
from jupyter_dist.server.launchers.nodefiles import AgentExited, AgentStarted
from jupyter_dist.testing.launchers import Followed

OPTIONS = {"pbs": {}, "lsf": {}, "sge": {"parallel_environment": "per1"}}
engines = pytest.mark.parametrize("queue", list(OPTIONS), indirect=True)


@contextlib.asynccontextmanager
async def launched(queue, place, *actions, num_nodes=2, **options):
    """A job on the scripted engine, with what happens to it."""
    launchers = place.launchers()
    wanted = place.wanted(*actions, num_nodes=num_nodes, **{**OPTIONS[queue.engine], **options})
    allocation = await launchers.get(queue.engine).submit(wanted)
    try:
        yield allocation, Followed(allocation)
    finally:
        await allocation.cancel(20)
        await launchers.detach()


@engines
def test_a_job_that_waits_says_why_and_is_cancelled_before_it_ran(queue, place):
    async def run():
        async with launched(queue, place, num_nodes=3) as (allocation, followed):
            (waits,) = await followed.until(Queued)
            assert waits.can_start == (queue.engine == "lsf")  # which does not report that a job asks for too much
            assert waits.reason.startswith("It waits for its turn." if waits.can_start else "It will not start. Shut")
            assert "says:" in waits.reason
            await allocation.cancel(5)
            (ended,) = await followed.until(Ended)
            assert ended.why == "The job was cancelled with the group."
            assert not followed.of(AgentStarted)

    asyncio.run(run())


@engines
def test_a_start_that_is_cancelled_while_the_engine_accepts_the_job_leaves_no_job(queue, place):
    async def run():
        slow = queue.folder / "is-slow"
        slow.touch()
        launchers = place.launchers()
        wanted = place.wanted(num_nodes=3, **OPTIONS[queue.engine])  # it would wait in the queue for ever
        starting = asyncio.create_task(launchers.get(queue.engine).submit(wanted))
        await until_async(scripted_jobs(queue))
        starting.cancel()
        await asyncio.sleep(0)
        slow.unlink()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert [job["state"] for job in scripted_jobs(queue)()] == ["F"]
        assert [path.name for path in wanted.directory.iterdir()] == ["join.json"]
        assert list((place.folder / "shared").iterdir()) == []
        await launchers.detach()

    asyncio.run(run())


def scripted_jobs(queue):
    def read():
        return [json.loads(path.read_text()) for path in queue.folder.glob("jobs/*/job.json")]

    return read


@engines
def test_a_job_that_waits_longer_than_it_may_is_cancelled_and_the_start_fails(queue, place):
    async def run():
        async with launched(queue, place, num_nodes=3, max_wait="0:00:00") as (allocation, followed):
            (ended,) = await followed.until(Ended)
            assert ended.why.startswith("The job waited as long as 'max_wait' allows, and was cancelled. It w")
            assert [job["state"] for job in scripted_jobs(queue)()] == ["F"]
        async with launched(queue, place, max_wait="1:00:00") as (allocation, followed):
            await followed.until(Allocated)
            assert allocation.max_wait_seconds is None  # not even if it is requeued
            assert json.loads((allocation.directory / "launcher.json").read_text())["max_wait_seconds"] is None
            with pytest.raises(JupyterDistError, match="'max_wait' is 'soon'; a wait looks like 90"):
                place.launchers().get(queue.engine).check({**OPTIONS[queue.engine], "max_wait": "soon"}, 2)

    asyncio.run(run())


@engines
def test_what_an_engine_refuses_is_said_in_its_words_with_its_queues(queue, place):
    async def run():
        wanted = place.wanted(**OPTIONS[queue.engine], queue="nosuch")
        launcher = place.launchers().get(queue.engine)
        with pytest.raises(JupyterDistError) as refused:
            await launcher.submit(wanted)
        assert refused.value.code == "launcher_failed"
        assert " refuses the job: " in refused.value.message
        assert "queue" in refused.value.message
        assert refused.value.hint.startswith("Queues: ")
        assert [path.name for path in wanted.directory.iterdir()] == ["join.json"]
        assert not (await launcher.probe()).text.count("old")

    asyncio.run(run())


@engines
def test_an_engine_that_is_silent_is_not_an_end(queue, place):
    async def run():
        async with launched(queue, place, time_limit="2:00:00") as (allocation, followed):
            await followed.until_ready()
            (allocated,) = followed.of(Allocated) or await followed.until(Allocated)
            assert allocated.hosts == scripted.HOSTS
            assert allocated.ends_at is not None
            (queue.folder / "is-silent").touch()
            (unknown,) = await followed.until(NotKnown)
            assert "does not answer; the nodes keep running meanwhile. " in unknown.why
            (queue.folder / "is-silent").unlink()
            await followed.until(Allocated, 2)
            assert not allocation.has_ended

    asyncio.run(run())


@engines
def test_a_node_that_the_engine_cannot_start_the_command_on_is_named(queue, place):
    async def run():
        (queue.folder / "h2-is-down").touch()
        async with launched(queue, place) as (_, followed):
            (lost,) = await followed.until(AgentExited)
            assert (lost.node, lost.host) == (1, "h2")
            assert lost.text.endswith("could not start the command there (exit code 255).")

    asyncio.run(run())


def test_a_job_with_another_number_of_nodes_ends_with_a_sentence(queue_of, place):
    """Grid Engine alone places slots by the rule of its parallel environment."""
    queue_of("sge")

    async def run():
        options = {"parallel_environment": "per2", "cpus_per_node": 1}
        wanted = place.wanted(**options)
        launchers = place.launchers()
        followed = Followed(await launchers.get("sge").submit(wanted))
        (ended,) = await followed.until(Ended)
        assert "Grid Engine gave the job 1 instead of 2 nodes: h1" in ended.why
        assert "Choose a parallel environment" in ended.why
        await launchers.detach()
        with pytest.raises(JupyterDistError, match="2 nodes need the option 'parallel_environment'"):
            await launchers.get("sge").submit(place.wanted())

    asyncio.run(run())


@engines
def test_a_server_that_was_killed_while_it_submitted_finds_the_job_by_its_name(queue, place):
    async def run():
        async with launched(queue, place) as (allocation, followed):
            await followed.until(AgentStarted, 2)
            path = allocation.directory / "launcher.json"
            saved = json.loads(path.read_text())
            saved["state"]["job_id"] = None
            path.write_text(json.dumps(saved))
            launchers = place.launchers()
            again = launchers.adopt(allocation.directory)
            await Followed(again).until(Allocated)
            assert again.job_id == allocation.job_id
            await launchers.detach()

    asyncio.run(run())


def test_what_ranks_need_is_asked_for_in_the_words_of_each_engine(queue_of, place):
    queue = queue_of("pbs")

    async def run():
        options = {
            "gpus_per_node": 2,
            "memory": "64G",
            "cpus_per_node": 8,
            "time_limit": "90",
            "chunk": "gpu_type=a100",
        }
        async with launched(queue, place, num_nodes=2, ranks_per_node=(1, 2), **options):
            found = json.loads(next(queue.folder.glob("jobs/*/amounts.json")).read_text())
            more = {"mem": "64gb", "gpu_type": "a100"}
            assert found == [{"ncpus": "4", "ngpus": "1", **more}, {"ncpus": "8", "ngpus": "2", **more}]
            assert json.loads(next(queue.folder.glob("jobs/*/job.json")).read_text())["limit"] == 5400

    asyncio.run(run())


def test_the_grace_before_sigkill_is_as_the_engine_is_set_up(queue_of, place, monkeypatch):
    async def grace(engine, **options):
        return await place.launchers().get(engine).grace_seconds(options)

    for engine, seconds in {"pbs": 10, "lsf": 15, "sge": 45}.items():
        queue_of(engine)
        assert asyncio.run(grace(engine)) == seconds
    queue_of("pbs")
    assert asyncio.run(grace("pbs", queue="old")) == 20
    monkeypatch.setenv("PATH", "/nonexistent")
    assert {asyncio.run(grace(engine)) for engine in OPTIONS} == {5}


def test_without_the_commands_an_engine_is_not_usable(place, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")

    async def run():
        found = await place.launchers().probe()
        for name, tool in (("pbs", "qsub"), ("lsf", "bsub"), ("sge", "qsub")):
            assert not found[name].is_usable
            assert f"there is no {tool}. Run Jupyter on a login node." in found[name].text

    asyncio.run(run())


def test_no_tool_of_an_engine_gets_the_tokens_of_the_server(place, tmp_path, monkeypatch):
    """A wrapper that an administrator has put before a tool may log its environment."""
    seen = tmp_path / "seen"
    launchers = [one for name in ("slurm", *OPTIONS) if (one := place.launchers().get(name))]
    (tmp_path / "bin").mkdir()
    for launcher in launchers:
        for tool in launcher.tools:
            (tmp_path / "bin" / tool).write_text(f"#!/bin/sh\necho {tool} >> {seen}\nenv >> {seen}\n")
            (tmp_path / "bin" / tool).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    for name in ("JUPYTER_TOKEN", "JUPYTERHUB_API_TOKEN", "JPY_API_TOKEN", "CONFIGPROXY_AUTH_TOKEN"):
        monkeypatch.setenv(name, "token-canary")
    for launcher in launchers:
        asyncio.run(launcher.probe())
        asyncio.run(launcher.grace_seconds({}))
    said = seen.read_text()
    assert {"sinfo", "scontrol", "qstat", "bqueues", "qconf"} <= set(said.split())
    assert "PATH=" in said
    assert "token-canary" not in said


def test_environments_travel_without_the_variables_of_the_job_and_of_the_node(tmp_path):
    text = environment_script(
        {"A": "it's $HOME", "PBS_JOBID": "1", "TMPDIR": "/t", "CUDA_VISIBLE_DEVICES": "7", "bad-name": "x", "PWD": "/"},
        ("PBS_",),
    )
    (tmp_path / "env.sh").write_text(text)
    script = f'. {tmp_path}/env.sh; echo "$A|$TMPDIR|$CUDA_VISIBLE_DEVICES|${{PBS_JOBID-none}}"'
    done = subprocess.run(
        [shutil.which("sh"), "-c", script], env={"TMPDIR": "/node"}, capture_output=True, text=True, check=True
    )
    assert done.stdout == "it's $HOME|/node|7|none\n"


@pytest.mark.parametrize(
    ("text", "seconds", "shown"), [("90", 5400, "1:30:00"), ("2:30:00", 9000, "2:30:00"), ("1-12", 129600, "36:00:00")]
)
def test_a_time_limit_is_written_as_each_engine_takes_it(text, seconds, shown):
    assert seconds_of(text) == seconds
    assert clock(seconds) == shown


def test_jobs_are_read_as_the_engines_list_them():
    fields = {"Job_Name": "n", "job_state": "F", "Exit_status": -29, "exec_host": "a/0*4+a/1*4+b/0"}
    assert pbs._listed("1.s", fields) == ListedJob(
        "1.s", "n", "ended", "The job has reached its time limit.", ("a", "b")
    )
    assert pbs._listed("1.s", {"job_state": "E", "Job_Name": "n"}).phase == "ending"
    assert pbs._listed("1.s", {"job_state": "H", "Job_Name": "n"}).text.startswith("It is held")
    row = ["7", "EXIT", "4*a:4*b", "-", "140", "n", "-"]
    assert lsf._listed(row).text == "The job has reached its time limit."
    assert lsf._listed(row).hosts == ("a", "b")
    xml = "<job_info><queue_info/><job_info><job_list><JB_job_number>3</JB_job_number><JB_name>n</JB_name><state>Eqw</state></job_list></job_info></job_info>"
    assert gridengine._parse(xml)["3"][0]["state"] == "Eqw"
