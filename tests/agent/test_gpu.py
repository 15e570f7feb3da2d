"""What needs GPUs: `python -m pytest tests -m gpu`. docs/gpu.md says where these were seen."""

from __future__ import annotations

import functools
import subprocess
import sys
import time

import pytest

from jupyter_dist.server.devices.nvml import NvmlReader

from .harness import AgentProcess

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(180)]


@functools.cache
def num_gpus():
    """Return how many torch sees; in a process of its own, because the driver opens descriptors that stay."""
    command = [sys.executable, "-c", "import torch; print(torch.cuda.device_count())"]
    return int(subprocess.run(command, check=True, capture_output=True, timeout=60).stdout)


@pytest.fixture(scope="module", autouse=True)
def _driver_is_open():
    """Open the driver's library before leaks are looked for: it keeps pipes and events until the process ends."""
    NvmlReader().read()


@pytest.fixture
def gpus(tmp_path):
    """Start a group with so many GPUs."""
    process = AgentProcess(tmp_path / "g")
    with process as client:

        def start(number):
            if not num_gpus():
                pytest.skip("needs a GPU")
            devices = list(range(number)) if num_gpus() >= number else [0] * number
            client.start(number, accelerator="cuda", backend="nccl", devices=devices, wait=False)
            client.wait_group("ready", timeout=120)
            return client

        yield start


def test_a_rank_on_a_gpu_computes_and_its_memory_is_seen(gpus):
    agent = gpus(1)
    execution = agent.run(
        "x = torch.ones(1 << 26, device=device)\ndist.all_reduce(x)\nprint(x.sum().item(), device)", [0]
    )
    assert agent.text(0, execution["id"]) == f"{float(1 << 26)} cuda:0\n"
    agent.request("watch", seconds=0.2)
    agent.wait(lambda: any(sample["ranks"][0].get("allocated_bytes") for sample in agent.samples))
    sample = agent.samples[-1]["ranks"][0]
    assert sample["allocated_bytes"] >= 1 << 28
    assert sample["device_used_bytes"] >= sample["reserved_bytes"] >= sample["allocated_bytes"]


def test_reading_a_value_each_step_while_the_device_idles_is_named(gpus):
    pytest.importorskip("pynvml")
    agent = gpus(1)
    if others_compute():  # the ranks are idle yet
        pytest.skip("other processes compute on this device: it is never idle")
    # On every device: it is busy for half of the time, and the rank waits for it meanwhile.
    code = """
import itertools, time
x = torch.ones(1 << 13, 1 << 13, device=device)
(x @ x).sum().item()
begun = time.monotonic()
for step in itertools.count():
    started = time.monotonic()
    y = x @ x
    y.sum().item()
    track(done=1, step=step)
    time.sleep(time.monotonic() - started)
    if started - begun > 60:
        break
"""
    execution = agent.submit(code, [0])
    agent.wait(lambda: agent.executions.get(execution, {}).get("slowness"))
    cause = agent.executions[execution]["slowness"][0]
    agent.request("interrupt", ranks=[0])
    agent.ended(execution)
    assert (cause["kind"], cause["place"]["code"]) == ("device_sync", "y.sum().item()")


def test_emptying_the_cache_gives_memory_back(gpus):
    agent = gpus(1)
    agent.run("x = torch.ones(1 << 26, device=device); del x", [0])
    header, _ = agent.request("empty_cache", ranks=[0])
    assert header["freed_bytes"]["0"] >= 1 << 28


def test_a_large_tensor_is_copied_from_the_device_in_chunks_and_back(gpus, tmp_path):
    """In the rank: CUDA keeps descriptors of its own in a process that asks for it, as a load of a file does."""
    agent = gpus(1)
    path = str(tmp_path / "x")
    run = f"from jupyter_dist.objects import files\nfiles.save({{'x': x}}, [{path!r}])\ny = files.load({path!r})['x']"
    execution = agent.run(
        f"x = torch.arange(40 << 20, device=device, dtype=torch.int32)\n{run}\nprint(y.device, torch.equal(x, y))", [0]
    )
    assert agent.text(0, execution["id"]) == "cuda:0 True\n"


def others_compute():
    """Whether a device is busy with other processes: then no idle device can be seen."""
    return any((device["utilization_percent"] or 0) > 0 for device in NvmlReader().read())


def test_the_devices_of_this_machine():
    devices = NvmlReader().read()
    assert len(devices) == num_gpus()
    assert all(device["memory_total_bytes"] > 1 << 30 for device in devices)


def test_an_interrupt_frees_a_hung_nccl_collective_and_keeps_variables(gpus):
    agent = gpus(2)
    agent.run("kept = rank + 40\nt = torch.ones(1, device=device)\ndist.all_reduce(t)")
    hung = agent.submit("dist.all_reduce(t)\nprint(t.item())", [0])
    agent.wait(lambda: agent.group["ranks"][0]["message"] is not None, timeout=15)
    assert "Waits in" in agent.group["ranks"][0]["message"]
    asked = time.monotonic()
    agent.request("interrupt", ranks=[0])
    assert agent.ended(hung, timeout=20)["state"] == "interrupted"
    assert time.monotonic() - asked < 10
    execution = agent.run("t = torch.ones(1, device=device) * kept\ndist.all_reduce(t)\nprint(t.item())", timeout=60)
    assert agent.text(0, execution["id"]) == "81.0\n"


def test_survivors_of_a_death_on_nccl_go_on_after_it_is_replaced(gpus):
    agent = gpus(2)
    agent.run("kept = rank + 40\nt = torch.ones(1, device=device)\ndist.all_reduce(t)")
    agent.kill_rank(1)
    agent.wait_group("degraded")
    agent.request("replace", timeout=120)
    agent.wait_group("ready", timeout=120)
    execution = agent.run("t = torch.ones(1, device=device)\ndist.all_reduce(t)\nprint(t.item())", timeout=60)
    assert agent.text(0, execution["id"]) == "2.0\n"
    assert agent.text(0, agent.run("print(kept)", [0])["id"]) == "40\n"


def test_a_first_collective_that_hangs_is_freed_like_any_other(gpus):
    agent = gpus(2)
    for _ in range(2):  # after it, the communicators are new again
        hung = agent.submit("kept = 42\nt = torch.ones(1, device=device)\ndist.all_reduce(t)\nprint(t.item())", [0])
        agent.wait(lambda: agent.executions.get(hung, {}).get("verdict") is not None, timeout=30)
        agent.request("interrupt", ranks=[0])
        assert agent.ended(hung, timeout=20)["state"] == "interrupted"
        assert agent.text(0, agent.run("print(kept)", [0], timeout=60)["id"]) == "42\n"


@pytest.mark.parametrize("number", [1, 2])
def test_a_parked_group_leaves_the_device_and_comes_back(gpus, number):
    """Twice in one group; a cell resumes it, with communicators and a view of the same storage."""
    agent = gpus(number)
    ranks = list(range(number))
    agent.run("big = torch.arange(1 << 26, device=device); view = big[7:9]; t = torch.ones(1, device=device)\n"
              "before = int(big.sum()); dist.all_reduce(t)", ranks, timeout=60)  # fmt: skip
    for _ in range(2):
        agent.request("park", to="host", timeout=60)
        agent.wait_group("parked", timeout=120)
        assert agent.group["parked"]["held_bytes"] >= number << 29
        assert agent.group["parked"]["left_bytes"] < 1 << 30
        code = "t.fill_(1); dist.all_reduce(t); print(int(big.sum()) == before, view[0].item(), t.item())"
        execution = agent.run(code, ranks, timeout=120)
        assert agent.text(0, execution["id"]) == f"True 7 {float(number)}\n"


TRAINING = (
    "t = torch.ones(1 << 12, 1 << 12, device=device)\nprint('go', flush=True)\n"
    "while True:\n    u = t @ t\n    dist.all_reduce(u)\n    u.sum().item()"
)


@pytest.mark.parametrize("interrupted", [[0], [0, 1]])
def test_after_an_interrupt_of_healthy_training_the_group_is_whole(gpus, interrupted):
    agent = gpus(2)
    for _ in range(2):
        trains = agent.submit(TRAINING, [0, 1])
        agent.wait(lambda: "go" in agent.text(0, trains) and "go" in agent.text(1, trains), timeout=60)
        agent.request("interrupt", ranks=interrupted)
        assert agent.ended(trains, timeout=30)["state"] in ("interrupted", "error")
        execution = agent.run("t = torch.ones(1, device=device)\ndist.all_reduce(t)\nprint(t.item())", timeout=60)
        assert agent.text(0, execution["id"]) == "2.0\n"


def test_a_rank_whose_device_context_is_lost_is_replaced(gpus):
    agent = gpus(2)
    lost = agent.submit("torch._assert_async(torch.zeros(1, device=device))\ntorch.cuda.synchronize()", [1])
    assert agent.ended(lost, timeout=60)["state"] == "error"
    assert "device context is lost" in agent.text(1, lost, "stderr")
    agent.request("replace", timeout=120)
    agent.wait_group("ready", timeout=120)
    execution = agent.run("t = torch.ones(1, device=device)\ndist.all_reduce(t)\nprint(t.item())", timeout=60)
    assert agent.text(1, execution["id"]) == "2.0\n"
