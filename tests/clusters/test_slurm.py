"""What is Slurm's own: reasons, limits, requeues, preemption, and a controller that does not answer. On a real cluster."""

import asyncio
import contextlib
import json
import os
import shutil
import signal

import pytest
from clusters.slurmcluster import NODES
from system.test_owners import allow
from waits import PATIENCE, until, until_async

from jupyter_dist.parts.clusters.slurm import launcher, options, queue, words
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import words_of
from jupyter_dist.server.launchers.allocation import (
    AgentExited,
    AgentStarted,
    Allocated,
    Ended,
    EndsSoon,
    NotKnown,
    Queued,
)
from jupyter_dist.testing.launchers import Followed, running

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root to give files to another user")
CANCELLED = "The job was cancelled: with scancel, or by an administrator."


@contextlib.asynccontextmanager
async def launched(place, *actions, **wanted):
    """A job that was submitted, and its launcher."""
    launchers = place.launchers()
    try:
        launcher = launchers.get("slurm")
        allocation = await launcher.submit(place.wanted(*actions, **wanted))
        yield launcher, allocation, Followed(allocation)
    finally:
        await launchers.detach()


async def state(slurm, job_id, wanted):
    await until_async(lambda: slurm.jobs().get(job_id) == wanted, slurm.jobs)


# -- what can be asked ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"partition": "gpu; rm -rf ~"}, "'partition' is 'gpu; rm -rf ~'; a partition looks like gpu or gpu,long."),
        ({"account": "--wrap=id"}, "'account' is '--wrap=id'; an account looks like physics."),
        ({"qos": "a b"}, "'qos' is 'a b'; a QOS looks like normal."),
        (
            {"time_limit": "two hours"},
            "'time_limit' is 'two hours'; a time limit looks like 90 (minutes), 2:30:00 or 1-12",
        ),
        ({"gpus_per_node": "many"}, "'gpus_per_node' is 'many'; GPUs look like 4 or a100:4."),
        ({"cpus_per_node": 0.5}, "'cpus_per_node' must be a whole number."),
        ({"cpus_per_node": -1}, "'cpus_per_node' is -1; it must be at least 1."),
        ({"time_limit": "\u0663"}, "'time_limit' is '\u0663'; a time limit looks like"),
        ({"memory": "\u0663G"}, "'memory' is '\u0663G'; memory looks like 64G or 512000M."),
        ({"gpus_per_node": "a100:\uff14"}, "'gpus_per_node' is 'a100:\uff14'; GPUs look like 4 or a100:4."),
        ({"memory": "$(id)"}, "'memory' is '$(id)'; memory looks like 64G or 512000M."),
        ({"constraint": "a`id`"}, "'constraint' is 'a`id`'; a constraint looks like a100 or a100&nvlink."),
        ({"nodelist": "n1\nn2"}, "'nodelist' must be one line of at most 500 printable characters."),
        ({"requeue": "yes"}, "'requeue' must be true or false."),
        ({"extra_arguments": "--comment='a"}, "'extra_arguments' must be a list of at most 50 texts."),
        ({"extra_arguments": ["-p", "x"]}, "'extra_arguments' has '-p'; write each argument in its long form"),
        ({"extra_arguments": ["--wrap=id"]}, "'extra_arguments' has '--wrap', which the launcher sets itself"),
        ({"extra_arguments": ["--out=/x"]}, "'extra_arguments' has '--out', which the launcher sets itself"),
        ({"extra_arguments": ["job.sh"]}, "'extra_arguments' has 'job.sh'; write each argument in its long form"),
        ({"partitions": "gpu"}, "The launcher slurm has no option 'partitions'."),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_submitted(place, given, sentence):
    with pytest.raises(JupyterDistError) as refused:
        place.launchers().get("slurm").check(given, 2)
    assert refused.value.message.startswith(sentence)


def test_options_become_arguments_and_defaults_are_those_of_the_administrator(place):
    place.config.SlurmLauncher.defaults = {"partition": "gpu", "account": "physics"}
    given = {"partition": "long", "gpus_per_node": "a100:4", "time_limit": "1-12", "extra_arguments": ["--exclusive"]}
    found = place.launchers().get("slurm").check(given, 2)
    wanted = [
        "--partition=long",
        "--account=physics",
        "--time=1-12",
        "--gpus-per-node=a100:4",
        "--no-requeue",
        "--exclusive",
    ]
    assert options.job_arguments(found) == wanted


def test_ranks_have_a_cpu_each_and_gpus_are_counted(place, monkeypatch):
    launcher = place.launchers().get("slurm")
    assert options.job_arguments(launcher.fitted({}, 4)) == ["--cpus-per-task=4", "--no-requeue"]
    assert launcher.fitted({"cpus_per_node": 1}, 4) == {"cpus_per_node": 1}
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_CPUS_PER_NODE", "8(x2),2")
    assert launcher.fitted({}, 4) == {"cpus_per_node": 2}
    assert launcher.fitted({"new_job": True}, 4)["cpus_per_node"] == 4
    for given, number in {"4": 4, "a100:2": 2, "": 0}.items():
        assert launcher.gpus_per_node({"gpus_per_node": given}) == number
    for given, number in {"gpu": 1, "gpu:2": 2, "gpu:a100:3,shard:1": 3, "gpu:a100": 1, "lustre:2": 0}.items():
        assert launcher.gpus_per_node({"extra_arguments": [f"--gres={given}"]}) == number


def test_options_may_be_written_as_text(place):
    given = {
        "cpus_per_node": "8",
        "time_limit": 90,
        "requeue": "true",
        "new_job": "false",
        "extra_arguments": "--begin=now --hold",
    }
    wanted = {"cpus_per_node": 8, "time_limit": "90", "requeue": True, "extra_arguments": ["--begin=now", "--hold"]}
    assert place.launchers().get("slurm").check(given, 2) == wanted


def test_inside_an_allocation_only_what_a_step_can_have_is_taken(place, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_NUM_NODES", "2")
    launcher = place.launchers().get("slurm")
    with pytest.raises(JupyterDistError, match="3 nodes were requested; the job that this server runs in has 2"):
        launcher.check({}, 3)
    with pytest.raises(JupyterDistError, match="'partition' cannot be set for a group in the job"):
        launcher.check({"partition": "gpu"}, 2)
    assert launcher.check({"partition": "gpu", "new_job": True}, 3)["partition"] == "gpu"
    assert options.step_arguments(launcher.check({"memory": "2G"}, 2)) == ["--mem=2G"]


def test_the_probe_says_what_is_free_or_why_it_cannot_be_used(slurm, place, monkeypatch):
    async def probe():
        return (await place.launchers().probe())["slurm"]

    found = asyncio.run(probe())
    assert found.is_usable
    assert found.choices == {"partition": ("main", "urgent")}
    assert "main: 2 of 2 nodes free (8 CPUs, 2 GB each)." in found.text
    assert "urgent: 2 of 2 nodes free (8 CPUs, 2 GB each, at most 1:00:00)." in found.text
    monkeypatch.setenv("SLURM_CONF", str(place.folder / "none.conf"))
    monkeypatch.setattr(launcher, "PROBE_SECONDS", 1.0)
    found = asyncio.run(probe())
    assert not found.is_usable
    assert found.text.startswith("Slurm does not answer: ")
    monkeypatch.setenv("PATH", str(place.folder))
    found = asyncio.run(probe())
    assert (found.is_usable, found.text.partition(":")[0]) == (False, "Slurm is not installed on the server's machine")


def open_to_all(shared):
    shared.chmod(0o777)
    return f"What is in {shared} can be replaced by all users"


def of_another_user(shared):
    shared.chmod(0o755)
    os.chown(shared, 65534, 65534)
    return f"What is in {shared} can be replaced by the user nobody"


def with_an_access_list(shared):
    shared.chmod(0o700)
    allow(shared, (0x02, 7, 65534))
    return f"What is in {shared} can be replaced by the user nobody"


def behind_a_link(shared):
    """As `~/scratch` often is."""
    scratch = shared.with_name("scratch")
    shared.rename(scratch)
    shared.symlink_to(scratch)
    scratch.chmod(0o777)
    return f"What is in {scratch} can be replaced by all users"


@pytest.mark.parametrize(
    "make", [open_to_all, behind_a_link, with_an_access_list, pytest.param(of_another_user, marks=needs_root)]
)
def test_nothing_is_submitted_where_others_could_replace_the_script(slurm, place, make):
    async def run():
        shared = place.folder / "shared"
        sentence = make(shared)
        with pytest.raises(JupyterDistError) as refused:
            await place.launchers().get("slurm").submit(place.wanted())
        assert refused.value.message.startswith(f"{sentence}, who could run programs as you")
        assert (list(shared.iterdir()), slurm.jobs()) == ([], {})

    asyncio.run(run())


@needs_root
def test_a_job_that_waits_runs_what_was_submitted_whoever_replaces_its_folder(slurm, place):
    async def run():
        async with launched(place, extra_arguments=["--hold"]) as (_, allocation, followed):
            folder, ran = allocation.files.folder, place.folder / "ran"
            assert {oct(path.stat().st_mode & 0o777) for path in folder.iterdir()} == {"0o600"}
            folder.rename(folder.with_name("moved"))
            folder.mkdir()
            for name in ("job.sh", "node.sh", "start.sh"):
                (folder / name).write_text(f"touch {ran}\n")
            for path in (folder, *folder.iterdir()):
                os.chown(path, 65534, 65534)
            slurm.ask("scontrol", "release", allocation.job_id)
            await followed.until(Ended)
            assert not ran.exists()
            assert f"{folder} does not belong to you." in (folder / "engine.log").read_text()

    asyncio.run(run())


def test_what_slurm_refuses_is_said_with_what_there_is(slurm, place):
    async def run():
        wanted = place.wanted(partition="gpu")
        with pytest.raises(JupyterDistError) as refused:
            await place.launchers().get("slurm").submit(wanted)
        assert refused.value.code == "launcher_failed"
        assert refused.value.message.startswith("Slurm refuses the job: invalid partition specified: gpu.")
        assert "main: 2 of 2 nodes free" in refused.value.hint
        assert [path.name for path in wanted.directory.iterdir()] == ["join.json"]
        assert list((place.folder / "shared").iterdir()) == []

    asyncio.run(run())


# -- waiting -------------------------------------------------------------------------------------------------


def test_while_it_waits_the_reason_and_the_estimate_are_given(slurm, place):
    async def run():
        busy = slurm.ask("sbatch", "--parsable", "--nodes=2", "--exclusive", "--output=/dev/null", "--wrap=sleep 600")
        await state(slurm, busy.stdout.strip(), "RUNNING")
        async with launched(place) as (_, allocation, followed):
            while not any("(Resources)" in event.reason and event.eta for event in await followed.until(Queued)):
                followed.seen.append(await anext(followed._events))
            assert allocation.status.reason.startswith("It is the next job, and waits until enough nodes are free.")
            slurm.ask("scancel", busy.stdout.strip())
            await followed.until(AgentStarted, 2)
        async with launched(place, num_nodes=3) as (_, allocation, followed):
            while "asks for less. (PartitionNodeLimit)" not in (await followed.until(Queued))[-1].reason:
                followed.seen.append(await anext(followed._events))
            assert not followed.of(Queued)[-1].can_start
            await allocation.cancel(5)  # a job that waits can be cancelled, too
            assert followed.allocation.status == Ended("The job was cancelled with the group.")

    asyncio.run(run())


# -- ends ----------------------------------------------------------------------------------------------------


def test_scancel_is_named_and_the_agents_are_asked_to_end_first(slurm, place):
    async def run():
        async with launched(place) as (_, allocation, followed):
            await followed.until_ready()
            slurm.ask("scancel", allocation.job_id)
            (ended,) = await followed.until(Ended)
            assert ended.why.startswith(CANCELLED)
            assert {(event.code, event.text.endswith("ended by SIGTERM")) for event in followed.of(AgentExited)} == {
                (0, True)
            }

    asyncio.run(run())


def test_the_time_limit_is_announced(slurm, place):
    async def run():
        async with launched(place, time_limit="20") as (launcher, allocation, followed):
            (allocated,) = await followed.until(Allocated)
            assert allocated.ends_at is not None
            await asyncio.sleep(5 * launcher.poll_seconds)
            assert not followed.of(EndsSoon)  # it is 20 minutes away
            slurm.ask("scontrol", "update", f"JobId={allocation.job_id}", "TimeLimit=21")
            await followed.until(Allocated, 2)
            launcher.warn_seconds = 30 * 60
            (ending,) = await followed.until(EndsSoon)
            assert (ending.at, ending.why) == (
                followed.of(Allocated)[-1].ends_at,
                "The job is about to reach its time limit.",
            )
            slurm.ask("scontrol", "update", f"JobId={allocation.job_id}", "TimeLimit=3")
            ending = (await followed.until(EndsSoon, 2))[-1]
            assert ending.why.startswith("Slurm ends the job early: it is preempted, or its time limit was lowered.")

    asyncio.run(run())


def test_preemption_is_named(slurm, place):
    async def run():
        async with launched(place, cpus_per_node=8) as (_, _, followed):
            await followed.until_ready()
            slurm.ask(
                "sbatch", "--partition=urgent", "--nodes=2", "--exclusive", "--output=/dev/null", "--wrap=sleep 600"
            )
            (ended,) = await followed.until(Ended)
            assert ended.why.startswith("The job was preempted: Slurm gave its nodes to a job of higher priority.")
            # Without a grace time, too, the nodes are asked to end, and have the KillWait for a save.
            assert {(event.code, event.text.endswith("ended by SIGTERM")) for event in followed.of(AgentExited)} == {
                (0, True)
            }

    asyncio.run(run())


def test_a_requeued_job_says_so_and_starts_again(slurm, place):
    async def run():
        async with launched(place, requeue=True) as (_, allocation, followed):
            await followed.until_ready()
            slurm.ask("scontrol", "requeue", allocation.job_id)
            while not any("queued the job again" in event.reason for event in followed.of(Queued)):
                followed.seen.append(await asyncio.wait_for(anext(followed._events), PATIENCE))
            await until_async(lambda: not running(allocation.directory.name))
            await asyncio.sleep(2.5)  # slurmd refuses what starts in the second of the requeue
            slurm.ask("scontrol", "update", f"JobId={allocation.job_id}", "StartTime=now")  # else two minutes later
            await followed.until(AgentStarted, 4)

    asyncio.run(run())


def test_a_failed_node_is_named_and_leaves_the_other(slurm, place):
    async def run():
        async with launched(place) as (_, allocation, followed):
            await followed.until_ready()
            # The job's script and its srun are on the first node: with that one, Slurm ends the others.
            (failed,) = (started for started in followed.of(AgentStarted) if started.node == 1)
            slurm.ask("scontrol", "update", f"NodeName={failed.host}", "State=DOWN", "Reason=test")
            (lost,) = await followed.until(AgentExited)
            assert (lost.node, lost.host, lost.code, lost.signal) == (failed.node, failed.host, None, None)
            assert lost.text == f"Node {failed.host} failed: Slurm has taken it out of the job."
            assert not allocation.has_ended
            await allocation.cancel(5)
        slurm.ask("scontrol", "update", f"NodeName={failed.host}", "State=RESUME")
        until(lambda: slurm.states() == {"idle": len(NODES)}, slurm.states)

    asyncio.run(run())


def test_a_slurmd_that_is_killed_and_started_again_costs_nothing(slurm, place):
    """Before SlurmdTimeout is over; after it Slurm takes the node out of the job, and ends its part when slurmd is back."""

    async def run():
        async with launched(place) as (_, allocation, followed):
            await followed.until_ready()
            for node in NODES:  # the job's script and its srun are on the first
                slurm.kill(node)
                slurm.start_node(node)
                step = ("srun", f"--jobid={allocation.job_id}", "--overlap", "-N1", "-n1", f"--nodelist={node}", "true")
                await until_async(lambda step=step: slurm.ask(*step).returncode == 0)
            assert len(running(allocation.directory.name)) >= 2
            await allocation.cancel(5)
            ends = await followed.until(AgentExited, 2)
            assert {(end.code, end.text.endswith("ended by SIGTERM")) for end in ends} == {(0, True)}

    asyncio.run(run())


# -- what cannot be known ------------------------------------------------------------------------------------


def test_a_controller_that_is_down_is_not_known_and_nothing_has_ended(slurm, place):
    async def run():
        async with launched(place) as (launcher, allocation, followed):
            launcher.command_seconds = 3.0
            await followed.until(AgentStarted, 2)
            slurm.kill("slurmctld", signal.SIGTERM)  # one that is killed forgets the last seconds
            try:
                (unknown,) = await followed.until(NotKnown)
                assert unknown.why.startswith("Slurm does not answer; the nodes keep running meanwhile. ")
                assert not allocation.has_ended
            finally:
                await asyncio.to_thread(slurm.start_controller)
            await followed.until(Allocated, 2)
            assert not followed.of(AgentExited)
            await allocation.cancel(5)

    asyncio.run(run())


def test_a_start_that_is_cancelled_while_slurm_accepts_the_job_leaves_no_job(slurm, place, monkeypatch):
    tools = place.folder / "tools"
    tools.mkdir()
    slow = (
        f'{shutil.which("sbatch")} "$@" || exit\ntouch {tools}/accepted\nuntil [ -e {tools}/go ]; do sleep 0.05; done'
    )
    (tools / "sbatch").write_text(f"#!/bin/sh\n{slow}\n")
    (tools / "sbatch").chmod(0o700)
    monkeypatch.setenv("PATH", f"{tools}:{slurm.env['PATH']}")

    async def run():
        launchers = place.launchers()
        wanted = place.wanted(num_nodes=3)
        starting = asyncio.create_task(launchers.get("slurm").submit(wanted))
        await until_async((tools / "accepted").exists)
        starting.cancel()
        await asyncio.sleep(0)
        (tools / "go").touch()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert slurm.jobs() == {}
        assert [path.name for path in wanted.directory.iterdir()] == ["join.json"]
        await launchers.detach()

    asyncio.run(run())


def test_a_job_of_a_server_that_was_killed_while_submitting_is_found_by_its_name(slurm, place):
    async def run():
        async with launched(place) as (_, allocation, followed):
            await followed.until(AgentStarted, 2)
            directory, job_id = allocation.directory, allocation.job_id
        saved = json.loads((directory / "launcher.json").read_text())
        assert saved["state"]["job_id"] == job_id
        saved["state"]["job_id"] = None
        (directory / "launcher.json").write_text(json.dumps(saved))
        launchers = place.launchers()
        again = launchers.adopt(directory)
        await Followed(again).until(Allocated)
        assert again.job_id == job_id
        await again.cancel(5)
        await launchers.detach()

    asyncio.run(run())


def test_a_job_that_slurm_has_forgotten_is_over(slurm, place):
    async def run():
        async with launched(place) as (_, allocation, followed):
            await followed.until(AgentStarted, 2)
            directory = allocation.directory
            await allocation.cancel(5)
        saved = json.loads((directory / "launcher.json").read_text())
        saved["state"] = {**saved["state"], "job_id": "999999"}
        (directory / "launcher.json").write_text(json.dumps(saved))
        launchers = place.launchers()
        (ended,) = await Followed(launchers.adopt(directory)).until(Ended)
        assert ended.why.startswith("Slurm does not list the job any more")
        await launchers.detach()

    asyncio.run(run())


def test_all_jobs_are_asked_for_at_once(slurm, place, monkeypatch):
    tools = place.folder / "tools"
    tools.mkdir()
    (tools / "squeue").write_text(f'#!/bin/sh\necho x >> "{tools}/asked"\nexec {shutil.which("squeue")} "$@"\n')
    (tools / "squeue").chmod(0o700)
    monkeypatch.setenv("PATH", f"{tools}:{slurm.env['PATH']}")

    async def run():
        place.config.SlurmLauncher.poll_seconds = 1000.0  # only the looks of this test
        launchers = place.launchers()
        launcher = launchers.get("slurm")
        jobs = [await launcher.submit(place.wanted(num_nodes=1)) for _ in range(3)]
        await until_async((tools / "asked").exists)  # the first look is at once
        before = (tools / "asked").read_text().count("x")
        await launcher.look(jobs)
        assert (tools / "asked").read_text().count("x") == before + 1
        await launchers.detach()

    asyncio.run(run())


# -- words ---------------------------------------------------------------------------------------------------


WAITS = {
    "Priority": "Other jobs are ahead in the queue.",
    "PartitionTimeLimit": "Its time limit is longer than the partition allows: it will not start. Shut the group down",
    "QOSMaxGRESPerUser": "Your jobs together have as many GPUs or other resources as the QOS allows: it starts when",
    "QOSMaxCpuPerUserLimit": "Your jobs together have as many CPUs as the QOS allows: it starts when some of them end",
    "QOSMaxWallDurationPerJobLimit": "It asks for more than the QOS allows to one job: it will not start.",
    "AssocMaxJobsLimit": "Your jobs together have as many jobs as your account allows",
    "AssocGrpCpuLimit": "All jobs together have as many CPUs as your account allows: it starts when some",
    "AssocGrpCPUMinutesLimit": "The computing time that your account has is used up",
    "ReqNodeNotAvail, UnavailableNodes:nd1": "A node that it needs is down, reserved or drained: it starts when",
    "ReqNodeNotAvail, Reserved for maintenance": "Its nodes are reserved for maintenance",
    "(Nodes required for job are DOWN, DRAINED or reserved)": "Nodes that it needs are down, drained, or reserved",
    "NewReason": "Slurm says: NewReason.",
}


def test_reasons_and_ends_have_words_and_unknown_ones_are_passed_on():
    for reason, beginning in WAITS.items():
        found = words.waits(reason)
        assert found.text.startswith(beginning), found
        assert found.can_start == ("it will not start" not in found.text)
        assert words_of(found.text)
        assert found.text.endswith(f"({reason.strip('()')})") or reason == "NewReason"
    assert words_of(words.ended("TIMEOUT"))
    assert words.ended("TIMEOUT") == "The job has reached its time limit."
    assert words.ended("NEW_STATE") == "The job ended in Slurm's state NEW_STATE."


def test_what_squeue_and_sinfo_print_is_read():
    jobs = queue.parse_queue("12|PENDING|N/A|1795372835|2||jupyter-dist-a|(a|b)\nnot a job\n")
    job = jobs["12"]
    assert (job.ends_at, job.starts_at, job.num_nodes, job.reason) == (None, 1795372835.0, 2, "(a|b)")
    text = (
        "gpu*|up|3|mixed|gpu:a100:4(S:0-1),gpu:2|64|512000|2-00:00:00\ngpu*|up|5|idle~|gpu:8|64+|512000+|2-00:00:00\n"
    )
    (gpu,) = queue.parse_info(text)
    assert (gpu.nodes, gpu.idle, gpu.mixed, gpu.gpus, gpu.is_default) == (8, 5, 3, 8, True)
    described = "gpu: 5 of 8 nodes free, 3 partly free (64 CPUs, 500 GB, 8 GPUs each, at most 2-00:00:00)."
    assert queue.describe([gpu]) == described
