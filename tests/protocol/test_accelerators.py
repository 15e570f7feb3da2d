"""The table of accelerators, and what ranks are given of it."""

import pytest

from jupyter_dist.agent.group.conditions import conditions
from jupyter_dist.agent.processes.starting.environment import rank_environment, rank_spec
from jupyter_dist.protocol import accelerators
from jupyter_dist.protocol.wire.specs import GroupSpec

MASTER = ("127.0.0.1", 29500)


def environment(accelerator, backend, devices=()):
    spec = GroupSpec("g-1", "train", len(devices) or 2, accelerator, backend, "/", list(devices))
    return rank_environment(spec, 1, MASTER)


@pytest.mark.parametrize("row", accelerators.STARTABLE, ids=lambda row: row.name)
def test_every_backend_of_an_accelerator_stays_on_this_machine(row):
    found = environment(row.name, row.backends[0], [0, 1] if row.has_devices else [])
    for name in row.backends:
        assert found[accelerators.BACKENDS[name].interface_variable] == "lo"
    assert row.reader or not row.has_devices


@pytest.mark.parametrize(
    ("name", "backend", "variable"),
    [
        ("cuda", "nccl", "CUDA_VISIBLE_DEVICES"),
        ("rocm", "nccl", "HIP_VISIBLE_DEVICES"),
        ("xpu", "xccl", "ZE_AFFINITY_MASK"),
    ],
)
def test_every_rank_sees_the_devices_of_its_group(name, backend, variable):
    found = environment(name, backend, [3, 1])
    assert found[variable] == "3,1"
    assert "ACCELERATE_USE_CPU" not in found
    assert found.get("TORCH_NCCL_ASYNC_ERROR_HANDLING") == ("0" if backend == "nccl" else None)


def test_a_rank_on_cpu_sees_no_device_of_any_kind():
    found = environment("cpu", "gloo")
    assert (found["CUDA_VISIBLE_DEVICES"], found["HIP_VISIBLE_DEVICES"]) == ("", "-1")
    assert found["ONEAPI_DEVICE_SELECTOR"] == "*:cpu"
    assert found["ACCELERATE_USE_CPU"] == "1"


def test_devices_are_named_as_torch_names_them():
    named = {name: accelerators.device_of(name, 1) for name in ("cuda", "rocm", "xpu", "cpu")}
    assert named == {"cuda": "cuda:1", "rocm": "cuda:1", "xpu": "xpu:1", "cpu": "cpu"}


def test_what_torch_was_built_for_is_read_by_its_own_names():
    versions = {"cuda": None, "hip": "6.4.43482", "xpu": None}
    assert accelerators.built_for(versions) == {"rocm": "6.4.43482"}
    assert accelerators.built_for({}) == {}


def test_devices_are_passed_by_the_names_of_their_driver():
    spec = GroupSpec("g-1", "train", 2, "cuda", "nccl", "/", [1, 0], ["GPU-b", "GPU-a"])
    found = rank_spec(spec, 1, "", 0, MASTER)
    assert (found.env["CUDA_VISIBLE_DEVICES"], found.env["CUDA_DEVICE_ORDER"]) == ("GPU-b,GPU-a", "PCI_BUS_ID")
    assert (found.device, found.device_index, found.env["LOCAL_RANK"]) == ("cuda:1", 0, "1")


def test_ranks_on_one_device_are_hosts_of_their_own():
    """NCCL takes two ranks of one host on one device for a mistake."""
    spec = GroupSpec("g-1", "train", 3, "cuda", "nccl", "/", [0, 0, 1], ["GPU-a", "GPU-a", "GPU-b"])
    found = [rank_spec(spec, rank, "", 0, MASTER) for rank in range(3)]
    assert [one.env["CUDA_VISIBLE_DEVICES"] for one in found] == ["GPU-a", "GPU-a", "GPU-b"]
    assert len({one.env["NCCL_HOSTID"] for one in found}) == 3
    assert {(one.device, one.local_rank, one.local_world_size, one.env["LOCAL_RANK"]) for one in found} == {
        ("cuda:0", 0, 1, "0")
    }
    assert [(one.env["GROUP_RANK"], one.env["GROUP_WORLD_SIZE"]) for one in found] == [
        (str(rank), "3") for rank in range(3)
    ]
    assert [one.device_index for one in found] == [0, 0, 1]
    assert "share a CUDA device" in " ".join(conditions(spec))


@pytest.mark.parametrize(("mib", "is_told"), [(64, True), (1024, False)])
def test_a_small_shared_memory_is_told_at_the_start(mib, is_told):
    spec = GroupSpec("g-1", "train", 2, "cpu", "gloo", "/")
    assert ("--shm-size" in " ".join(conditions(spec, mib << 20))) == is_told
    assert conditions(GroupSpec("g-1", "train", 2, "cpu", "gloo", "/", launcher="external"), mib << 20) == []


def test_ranks_on_devices_join_as_torch_does_by_default_with_communicators_that_are_there():
    """Tensors on the CPU need gloo; and a first collective that hangs has no communicator that could be aborted."""
    nccl, gloo = accelerators.BACKENDS["nccl"], accelerators.BACKENDS["gloo"]
    assert (nccl.joined_as, nccl.is_eager) == ("cpu:gloo,cuda:nccl", True)
    assert (gloo.joined_as, gloo.is_eager) == ("gloo", False)


def test_torch_on_devices_gives_up_nothing_and_waits_for_nothing_of_its_own():
    found = environment("cuda", "nccl", [0, 1])
    assert found["TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC"] == found["TORCH_FR_WAIT_TIMEOUT_DUMP_MILSEC"] == "1"
    assert found["TORCH_DIST_USE_NCCL2"] == "0"  # of torch 2.15


@pytest.mark.parametrize(
    ("variable", "value", "word"),
    [
        ("TORCH_DISTRIBUTED_DEBUG", "detail", "barrier"),
        ("TORCH_NCCL_ASYNC_ERROR_HANDLING", "3", "variables are lost"),
        ("TORCH_DIST_USE_NCCL2", "1", "second NCCL"),
    ],
)
def test_what_a_users_variable_changes_is_said(variable, value, word):
    nccl = accelerators.BACKENDS["nccl"]
    own = environment("cuda", "nccl", [0, 1])
    assert nccl.changed_by(own) == []
    (sentence,) = nccl.changed_by({**own, variable: value})
    assert sentence.startswith(f"{variable}={value} ")
    assert word in sentence
