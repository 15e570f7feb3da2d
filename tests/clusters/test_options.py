"""Options that launchers have in common, an administrator's limits, and presets."""

import asyncio
import contextlib
import os
import stat

import pytest

from jupyter_dist.parts.clusters.slurm import options as slurm_options
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.server.groups.resolve import WantedGroup
from jupyter_dist.server.launchers.allocation import AgentExited, Ended
from jupyter_dist.server.launchers.common import limits, network
from jupyter_dist.server.launchers.common.command import node_command, passed
from jupyter_dist.server.launchers.common.presets import FILE_NAME, Presets
from jupyter_dist.testing.launchers import Followed

# -- what is wrong --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"head_port": "80-70"}, "'head_port' is '80-70'; ports look like 5000 or 5000-5100."),
        ({"head_port": "5000-70000"}, "'head_port' is '5000-70000'; ports look like"),
        ({"head_address": "login1, a b"}, "'head_address' has ' a b'; an address looks like login1.example.org,"),
        ({"head_address": "10.0.0.1:0"}, "'head_address' has '10.0.0.1:0'; an address looks like"),
        ({"ip_version": "5"}, "'ip_version' is '5'; it is 4 or 6."),
        ({"interface": "eth0; id"}, "'interface' is 'eth0; id'; an interface looks like eth1."),
        ({"nccl": {"LD_PRELOAD": "x"}}, "'nccl' has 'LD_PRELOAD'; a setting of NCCL looks like NCCL_DEBUG."),
        ({"omp_threads": 0}, "'omp_threads' is 0; it must be at least 1."),
        ({"cpu_binding": "core"}, "'cpu_binding' is 'core'; it is none, rank, numa."),
    ],
)
def test_a_wrong_option_of_nodes_is_refused_with_any_launcher(place, given, sentence):
    for name in ("external", "processes", "slurm"):
        with pytest.raises(JupyterDistError) as refused:
            place.launchers().options_of(name).check(given, 2)
        assert refused.value.message.startswith(sentence)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"prologue": "module load \x1b"}, "'prologue' must be lines of printable characters, at most 4000"),
        ({"environment_passed": "A B"}, "'environment_passed' is 'A B'; names look like WANDB_*,DATA;"),
        ({"container": "a image"}, "'container' is 'a image'; an image looks like /images/torch.sif"),
        ({"container_mounts": "data"}, "'container_mounts' has 'data'; a mount looks like /data or /data:/mnt:ro."),
        ({"container_runtime": "docker"}, "'container_runtime' is 'docker'; it is apptainer"),
        ({"output_folder": "logs"}, "'output_folder' is 'logs'; a folder looks like /home/me/logs or ~/logs."),
    ],
)
def test_a_wrong_option_of_the_command_is_refused(place, given, sentence):
    for name in ("processes", "slurm"):
        with pytest.raises(JupyterDistError) as refused:
            place.launchers().get(name).check(given, 2)
        assert refused.value.message.startswith(sentence)
    with pytest.raises(JupyterDistError, match="The launcher external has no option"):
        place.launchers().options_of("external").check(given, 2)


# -- what they mean -------------------------------------------------------------------------------------------


def test_options_of_the_network_become_fields_of_the_group_and_variables_of_ranks():
    given = {"head_port": "5000-5010", "head_address": "login1, 10.0.0.1:80, ::1, [::2]:81", "interface": "eth1"}
    given |= {"nccl_interface": "ib0", "nccl_adapters": "mlx5_0:1", "nccl": {"NCCL_DEBUG": "INFO"}, "omp_threads": 4}
    fields = network.group_fields(given)
    assert fields["head_ports"] == [5000, 5010]
    assert fields["head_addresses"] == [["login1", None], ["10.0.0.1", 80], ["::1", None], ["::2", 81]]
    assert fields["interface"] == "eth1"
    found = network.variables(given)
    assert (found["GLOO_SOCKET_IFNAME"], found["NCCL_SOCKET_IFNAME"], found["NCCL_IB_HCA"]) == (
        "eth1",
        "ib0",
        "mlx5_0:1",
    )
    assert (found["NCCL_DEBUG"], found["OMP_NUM_THREADS"]) == ("INFO", "4")
    assert (network.variables({}), network.group_fields({})["head_ports"]) == ({}, [])


def test_the_command_of_a_node_has_its_prologue_outside_and_its_container_inside():
    command = ("/server/python", "-m", "jupyter_dist.agent.node", "/job/join.json")
    assert node_command({}, command, "/work") == command
    given = {"command_prefix": ["numactl", "--localalloc"], "container": "torch.sif", "gpus_per_node": "a100:4"}
    given |= {"container_mounts": ["/data:/mnt"], "container_python": "/opt/python"}
    in_container = ["apptainer", "exec", "--nv", "--bind=/work", "--bind=/data:/mnt", "--pwd=/work", "torch.sif"]
    wanted = ["numactl", "--localalloc", *in_container, "/opt/python", *command[1:]]
    assert node_command(given, command, "/work") == tuple(wanted)
    shell = node_command({**given, "prologue": "module load cuda"}, command, "/work")
    assert shell[:3] == ("/bin/bash", "-l", "-c")
    assert shell[5:] == tuple(wanted)
    assert shell[3].startswith("set -e\nmodule load cuda\n")
    of_srun = {**given, "container_runtime": "pyxis", "srun_arguments": ["--cpu-bind=none"]}
    assert node_command(of_srun, command, "/work")[:3] == ("numactl", "--localalloc", "/opt/python")
    assert slurm_options.srun_arguments(of_srun, "/work", "/job") == [
        "--container-image=torch.sif",
        "--container-mounts=/work:/work,/job:/job,/data:/mnt",
        "--container-workdir=/work",
        "--cpu-bind=none",
    ]


def test_variables_of_the_server_are_passed_as_asked():
    env = {"PATH": "/bin", "WANDB_KEY": "1", "DATA": "2", "OTHER": "3", "JUPYTER_DIST_UMASK": "077"}
    assert passed({}, env) == env
    assert set(passed({"environment_passed": "none"}, env)) == {"PATH", "JUPYTER_DIST_UMASK"}
    assert set(passed({"environment_passed": "WANDB_*, DATA"}, env)) == set(env) - {"OTHER"}


@contextlib.asynccontextmanager
async def ran(place, *actions, **options):
    """The program on one node on this machine, until it has ended."""
    async with place.server() as launchers:
        allocation = await launchers.get("processes").submit(place.wanted(*actions, num_nodes=1, **options))
        followed = Followed(allocation)
        await followed.until(Ended)
        yield allocation, followed.of(AgentExited)[0], await allocation.logs(0, 1000)


def test_a_prologue_that_fails_is_named_and_the_logs_are_kept(place):
    async def run():
        kept = place.folder / "kept"
        options = {"prologue": "echo before\nls /no/such/folder\necho after", "output_folder": str(kept)}
        async with ran(place, **options) as (allocation, exited, text):
            assert exited.code == 2
            assert "before\n" in text
            assert "/no/such/folder" in text
            assert "after" not in text
            allocation.forget()
        (log,) = kept.glob("train-g-*/node-0-0.log")
        assert log.read_text().strip() == text

    asyncio.run(run())


def test_a_container_gets_the_command_and_sees_the_folder_of_the_job(place, monkeypatch):
    """Apptainer itself is scripted: it prints what it is called with, and runs the command without a container."""
    tools = place.folder / "tools"
    tools.mkdir()
    program = tools / "apptainer"
    program.write_text(
        '#!/bin/sh\necho "exec $*, binds $APPTAINER_BIND"\nwhile [ "$1" != a.sif ]; do shift; done\nshift\nexec "$@"\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")

    async def run():
        async with ran(place, "0=env:FROM_THE_GROUP", container="a.sif") as (allocation, exited, text):
            assert (exited.code, "FROM_THE_GROUP is 'yes'" in text) == (0, True), text
            assert f"exec exec --bind={place.folder} --pwd={place.folder} a.sif python3 " in text
            assert f"binds {allocation.files.folder}\n" in text

    asyncio.run(run())


# -- limits ---------------------------------------------------------------------------------------------------


def test_an_administrators_limits_are_refused_with_a_sentence_each(place):
    slurm = place.config.SlurmLauncher
    slurm.limits = {"num_nodes": 2, "num_ranks": 8, "time_limit": "2:00:00", "memory": "64G", "gpus_per_node": 4}
    slurm.limits["ranks_per_node"] = 5
    slurm.fixed = ["account", "extra_arguments"]
    slurm.defaults = {"account": "physics"}
    launcher = place.launchers().get("slurm")

    def refusal(counts=(4, 4), **given):
        try:
            launcher.check_limits(launcher.check(given, len(counts)), counts)
        except JupyterDistError as err:
            return err.message
        return None

    assert refusal() is None
    assert launcher.check({}, 2)["time_limit"] == "2:00:00"  # without one, Slurm would take the partition's
    assert refusal(time_limit="120", memory="64G", gpus_per_node="a100:4", account="physics") is None
    assert refusal(time_limit="1-0") == "'time_limit' 1-0 was requested; this server allows at most 2:00:00."
    assert refusal(time_limit="0") == "'time_limit' 0 was requested; this server allows at most 2:00:00."  # none
    assert refusal(memory="0") == "'memory' 0 was requested; this server allows at most 64G."  # all of the node
    assert refusal(memory="70000") == "'memory' 70000 was requested; this server allows at most 64G."
    assert refusal(gpus_per_node="a100:8") == "'gpus_per_node' 8 was requested; this server allows at most 4."
    assert refusal((1, 4, 4)) == (
        "3 nodes were requested; this server allows at most 2. 9 ranks were requested; this server allows at most 8."
    )
    assert refusal((1, 6)) == "6 ranks on a node were requested; this server allows at most 5."
    launcher.limits["cpus_per_node"] = 4
    assert refusal((5,)) == "'cpus_per_node' 5 was requested; this server allows at most 4."  # one for each rank
    assert refusal((5,), cpus_per_node=4) is None
    del launcher.limits["cpus_per_node"]
    assert refusal(account="other") == "'account' cannot be set on this server."
    assert refusal(extra_arguments="--gres=gpu:8") == "'extra_arguments' cannot be set on this server."
    launcher.fixed = []
    assert refusal(extra_arguments="--gres=gpu:8") == "'gpus_per_node' 8 was requested; this server allows at most 4."
    launcher.limits = {"colour": 1}
    assert refusal() == "SlurmLauncher.limits has a limit for 'colour', which is no option."


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 5400), ("2:30", 150), ("2:30:00", 9000), ("1-12", 129_600), ("1-12:30", 131_400), ("soon", None)],
)
def test_times_are_compared_as_slurm_reads_them(text, seconds):
    assert limits.duration(text) == seconds


# -- presets --------------------------------------------------------------------------------------------------

PRESETS = """
a100-short:
  label: A100, two hours
  description: For tries.
  launcher: slurm
  num_nodes: 2
  ranks_per_node: 4
  accelerator: cuda
  env: {A: "1", B: "2"}
  launcher_options: {partition: gpu, time_limit: "2:00:00"}
wrong:
  launcher: slurm
  walltime: 3
"""


def test_a_preset_has_the_options_that_a_start_leaves_out(tmp_path):
    file = tmp_path / FILE_NAME
    file.write_text(PRESETS)
    presets = Presets({"debug": {"num_ranks": 2}}, str(file))
    listed = {preset["name"]: preset for preset in presets.listed()}
    assert list(listed) == ["debug", "a100-short", "wrong"]
    assert (listed["a100-short"]["label"], listed["a100-short"]["problem"]) == ("A100, two hours", None)
    assert "'walltime' was unexpected" in listed["wrong"]["problem"]
    found = presets.applied(
        WantedGroup(preset="a100-short", num_nodes=1, env={"B": "3"}, launcher_options={"partition": "long"})
    )
    assert (found.launcher, found.num_nodes, found.ranks_per_node, found.accelerator) == ("slurm", 1, 4, "cuda")
    assert found.env.for_exec() == {"A": "1", "B": "3"}
    assert found.launcher_options == {"partition": "long", "time_limit": "2:00:00"}
    assert found.preset is None  # a start with the same options does not depend on the file
    other = presets.applied(WantedGroup(preset="a100-short", num_ranks=6))
    assert (other.num_ranks, other.ranks_per_node) == (6, None)
    for name, sentence in (("none", "There is no preset 'none'."), ("wrong", "The preset 'wrong' cannot be used:")):
        with pytest.raises(JupyterDistError) as refused:
            presets.applied(WantedGroup(preset=name))
        assert refused.value.message.startswith(sentence)
    file.write_text("a: [")
    (_, broken) = presets.listed()
    assert (broken["name"], "cannot be read" in broken["problem"]) == (FILE_NAME, True)


def test_presets_of_a_site_are_found_where_jupyter_looks_for_configuration(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(tmp_path))
    (tmp_path / FILE_NAME).write_text("site:\n  num_ranks: 3\n")
    assert "site" in [preset["name"] for preset in Presets({}).listed()]
