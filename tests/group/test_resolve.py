"""From a start request to a GroupSpec: every default, and one clear error for every bad field."""

import dataclasses

import pytest

from jupyter_dist.agent.processes.starting.environment import rank_spec
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.ranks import divided
from jupyter_dist.server.environments.environments import Environment
from jupyter_dist.server.groups.resolve import (
    GroupDefaults,
    WantedGroup,
    build_spec,
    check_reserved,
    idle_gpus_note,
    resolve_spec,
)

CPU = Environment("cpu", "CPU", "/opt/cpu/bin/python", "kernelspec")
CUDA = dataclasses.replace(CPU, name="cuda", python="/opt/cuda/bin/python", accelerators={"cuda": "12.8"})


@pytest.fixture
def resolve(tmp_path):
    def resolve(environment=CUDA, available=(0, 1, 2, 3), taken=(), **fields):
        defaults = GroupDefaults(root_dir=str(tmp_path), default_world_size=3)
        found = available if isinstance(available, dict) else {"cuda": available}
        usable = {
            name: dict(zip(some, map(str, some), strict=True)) if not isinstance(some, dict) else some
            for name, some in found.items()
        }
        return build_spec("g-1", resolve_spec(WantedGroup.of(fields), environment, usable, defaults, taken))

    return resolve


def test_auto_takes_all_devices_when_there_are_some_and_torch_can_use_them(resolve):
    spec = resolve()
    assert (spec.accelerator, spec.backend, spec.devices, spec.world_size) == ("cuda", "nccl", [0, 1, 2, 3], 4)
    assert resolve(environment=CPU).accelerator == "cpu"
    spec = resolve(available=())
    assert (spec.accelerator, spec.backend, spec.devices, spec.world_size) == ("cpu", "gloo", [], 3)


@pytest.mark.parametrize(
    ("fields", "devices"),
    [
        ({"devices": [2, 0]}, [2, 0]),
        ({"devices": 2}, [0, 1]),
        ({"devices": -1}, [0, 1, 2, 3]),
        ({"devices": "all"}, [0, 1, 2, 3]),
        ({"num_ranks": 2}, [0, 1]),
        ({"num_ranks": 2, "devices": [1, 3]}, [1, 3]),
        ({"accelerator": "cuda"}, [0, 1, 2, 3]),
    ],
)
def test_naming_devices(resolve, fields, devices):
    spec = resolve(**fields)
    assert (spec.devices, spec.world_size) == (devices, len(devices))


def test_gpus_that_are_reserved_on_nodes_imply_the_accelerator_and_the_ranks(resolve):
    on_nodes = {"launcher": "slurm", "num_nodes": 2}
    spec = resolve(gpus_per_node=4, **on_nodes)
    assert (spec.accelerator, spec.backend, spec.devices, spec.world_size) == ("cuda", "nccl", [0, 1, 2, 3], 8)
    assert resolve(gpus_per_node=4, ranks_per_node=2, **on_nodes).devices == [0, 1]
    spec = resolve(gpus_per_node=4, accelerator="cpu", **on_nodes)
    assert (spec.accelerator, spec.devices, spec.world_size) == ("cpu", [], 6)
    with pytest.raises(JupyterDistError, match="3 ranks on each node were requested, with 2 GPUs"):
        resolve(gpus_per_node=2, ranks_per_node=3, **on_nodes)
    with pytest.raises(JupyterDistError, match=r"GPUs of nodes were requested, but the torch of .* has no CUDA"):
        resolve(environment=CPU, gpus_per_node=2, **on_nodes)
    assert idle_gpus_note({"devices": [], "ranks_per_node": [3, 3]}, [2, 2]) == (
        "2 GPUs are reserved on each node that no rank uses: the ranks run on the CPU."
    )
    assert idle_gpus_note({"devices": [0, 1], "ranks_per_node": [2]}, [3]).endswith("the ranks use 2 of them.")
    assert idle_gpus_note({"devices": [0, 1], "ranks_per_node": [2]}, [2]) is None


def test_nodes_can_have_different_numbers_of_ranks(resolve):
    on_nodes = {"launcher": "slurm", "accelerator": "cuda", "gpus_per_node": 8}
    spec = resolve(ranks_per_node=[4, 8], **on_nodes)
    assert (spec.world_size, spec.num_nodes, spec.ranks_per_node) == (12, 2, [4, 8])
    assert spec.devices == list(range(8))
    assert resolve(ranks_per_node=[4, 8], num_nodes=2, num_ranks=12, **on_nodes) == spec
    specs = [rank_spec(spec, rank, "link:0", 0, None) for rank in range(12)]
    assert [(rank.node, rank.local_rank, rank.local_world_size) for rank in specs] == [
        *((0, rank, 4) for rank in range(4)),
        *((1, rank, 8) for rank in range(8)),
    ]
    assert [specs[rank].env["CUDA_VISIBLE_DEVICES"] for rank in (0, 11)] == ["0,1,2,3", "0,1,2,3,4,5,6,7"]
    names = ("LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "NODE_RANK", "GROUP_WORLD_SIZE")
    assert [specs[11].env[name] for name in names] == ["7", "8", "1", "1", "2"]
    assert idle_gpus_note({"devices": spec.devices, "ranks_per_node": [4, 8]}, [8, 8]) == (
        "4 GPUs are reserved that no rank uses: each node has 8, and their ranks use 4, 8."
    )
    assert idle_gpus_note({"devices": [0, 1, 2], "ranks_per_node": [2, 3]}, [3, 4]) == (
        "2 GPUs are reserved that no rank uses: nodes have 3, 4, and their ranks use 2, 3."
    )
    assert idle_gpus_note({"devices": [], "ranks_per_node": [1, 3]}, [1, 3]) == (
        "4 GPUs are reserved that no rank uses: nodes have 1, 3, and their ranks run on the CPU."
    )
    assert idle_gpus_note({"devices": spec.devices, "ranks_per_node": [4, 8]}, [4, 8]) is None
    for devices, counts, reserved, wrong in (
        ([3, 0, 1, 2], [2, 4], [2, 4], "device 3, but node 0 is to have 2 GPUs"),  # Ray and PBS
        ([0, 2], [1, 2], [1, 2], "device 2, but node 1 is to have 2 GPUs"),
        ([1], [1, 1], [1, 1], "device 1, but node 0 is to have 1 GPU,"),
    ):
        with pytest.raises(JupyterDistError, match=wrong):
            check_reserved({"devices": devices, "ranks_per_node": counts}, reserved)
    for devices, reserved in (([3, 0, 1, 2], [4, 4]), ([0, 1, 3, 2], [2, 4]), ([7, 6, 5, 4], [0, 0]), ([], [2, 4])):
        check_reserved({"devices": devices, "ranks_per_node": [2, 4]}, reserved)
    with pytest.raises(JupyterDistError, match="8 ranks on a node were requested, with 4 GPUs"):
        resolve(ranks_per_node=[4, 8], **{**on_nodes, "gpus_per_node": 4})
    with pytest.raises(JupyterDistError, match="'devices' names 4 devices of a node, which has 8 ranks"):
        resolve(ranks_per_node=[4, 8], devices=[0, 1, 2, 3], **on_nodes)


def test_a_group_is_filled_node_by_node():
    assert [divided(number, [4, 8, 8]) for number in (1, 4, 5, 12, 20)] == [[1], [4], [4, 1], [4, 8], [4, 8, 8]]


@pytest.mark.parametrize(("name", "backend"), [("rocm", "nccl"), ("xpu", "xccl")])
def test_devices_of_other_vendors(resolve, name, backend):
    environment = dataclasses.replace(CPU, accelerators={name: "1.0"})
    spec = resolve(environment=environment, available={"cuda": [], name: [0, 1]})
    assert (spec.accelerator, spec.backend, spec.devices) == (name, backend, [0, 1])
    # What the environment's torch was built for decides, where a machine has devices of two kinds.
    spec = resolve(environment=environment, available={"cuda": [0, 1, 2], name: [0]})
    assert (spec.accelerator, spec.devices) == (name, [0])
    with pytest.raises(JupyterDistError, match="no CUDA"):
        resolve(environment=environment, available={"cuda": [0], name: []}, accelerator="cuda")


def test_cpu_ranks(resolve):
    assert resolve(accelerator="cpu", num_ranks=8).world_size == 8
    assert resolve(num_ranks=8).accelerator == "cpu"  # more than there are devices: a rehearsal
    assert resolve(accelerator="cpu").devices == []
    assert resolve(accelerator="cuda", backend="gloo").backend == "gloo"


@pytest.mark.parametrize(
    ("fields", "code", "word"),
    [
        ({"devices": [4]}, "bad_devices", "device 4"),
        ({"devices": []}, "bad_devices", "empty"),
        ({"devices": 5}, "bad_devices", "5 devices"),
        ({"devices": 0}, "bad_devices", "0 devices"),
        ({"devices": [0, 1], "num_ranks": 3}, "bad_devices", "num_ranks"),
        ({"devices": [0], "environment": CPU}, "bad_devices", "CPU"),
        ({"devices": [0], "accelerator": "cpu"}, "bad_devices", "CPU"),
        ({"accelerator": "cuda", "environment": CPU}, "bad_environment", "no CUDA"),
        ({"accelerator": "cuda", "available": ()}, "bad_devices", "no CUDA device"),
        ({"accelerator": "cpu", "backend": "nccl"}, "bad_request", "backend"),
        ({"name": "train", "taken": ["train"]}, "name_taken", "train"),
        ({"name": "-x"}, "bad_request", "name"),
    ],
)
def test_bad_fields(resolve, fields, code, word):
    with pytest.raises(JupyterDistError) as raised:
        resolve(**fields)
    assert raised.value.code == code
    assert word in raised.value.message
    assert raised.value.hint


def test_names_that_are_free(resolve):
    assert resolve().name == "group-1"
    assert resolve(taken=["group-1", "group-2"]).name == "group-3"


def test_directories(resolve, tmp_path):
    (tmp_path / "lab").mkdir()
    assert resolve().cwd == str(tmp_path)
    assert resolve(cwd="lab").cwd == str(tmp_path / "lab")
    assert resolve(cwd=str(tmp_path / "lab")).cwd == str(tmp_path / "lab")
    assert resolve(notebook="lab/n.ipynb").cwd == str(tmp_path / "lab")
    assert resolve(notebook="lab/n.ipynb", cwd=".").cwd == str(tmp_path)


def test_devices_have_the_names_that_the_driver_gave(resolve):
    """CUDA counts devices in another order than the sidebar unless it gets their names."""
    available = {"cuda": {2: "GPU-c", 3: "GPU-d"}}
    spec = resolve(available=available)
    assert (spec.devices, spec.device_names, spec.world_size) == ([2, 3], ["GPU-c", "GPU-d"], 2)
    spec = resolve(available=available, devices=[3])
    assert (spec.devices, spec.device_names) == ([3], ["GPU-d"])
    assert resolve(devices=2).device_names == []


def test_a_server_with_some_of_the_devices_says_so(resolve, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    with pytest.raises(JupyterDistError, match="There is no device 0") as raised:
        resolve(available={"cuda": {2: "GPU-c", 3: "GPU-d"}}, devices=[0])
    assert raised.value.hint.startswith("The server was started with CUDA_VISIBLE_DEVICES='2,3'. Devices: 2, 3.")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(JupyterDistError, match="no CUDA device that the server may use") as raised:
        resolve(available={"cuda": {}}, accelerator="cuda")
    assert "CUDA_VISIBLE_DEVICES=''" in raised.value.hint


def test_a_device_that_is_listed_twice_has_two_ranks(resolve):
    spec = resolve(devices=[1, 1])
    assert (spec.devices, spec.world_size, spec.shares_devices) == ([1, 1], 2, True)
    with pytest.raises(JupyterDistError, match="twice"):
        resolve(devices=[0, 0], launcher="external", num_nodes=2, accelerator="cuda")
