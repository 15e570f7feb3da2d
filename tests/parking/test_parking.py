"""Parking a group: real ranks leave their process groups, and their tensors go to files and come back.

On CPU alone files are offered; on a device the same code moves to host memory, and the driver takes the rest.
"""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path

import pytest
from agent.harness import AgentProcess
from agent.test_widgets import move, view_of, wait_done
from waits import PATIENCE, until

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.operations import BY_NAME
from jupyter_dist.protocol.wire.specs import ExecutionSpec

MODEL = """
import torch, numpy
from torch.nn.parallel import DistributedDataParallel
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(64, 64))
pair = dist.new_group([0, 1])
big = torch.arange(100_000.0) + rank
view, alias = big[10:20], big
shared = torch.ones(3)
array = shared.numpy()
sparse = torch.eye(40).to_sparse()
def step(number):
    torch.manual_seed(number + rank)
    loss = model(torch.randn(8, 64)).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.1 * parameter.grad
            parameter.grad.zero_()
    total = loss.detach().clone()
    dist.all_reduce(total, group=pair)
    return total.item()
"""


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    with AgentProcess(tmp_path_factory.mktemp("parking") / "g") as client:
        client.start(2)
        assert client.run(MODEL)["state"] == "ok"
        yield client


@pytest.fixture
def own(tmp_path):
    with AgentProcess(tmp_path / "g") as client:
        client.start(2)
        yield client


def park(client, **fields):
    client.request("park", **{"to": "file", **fields})
    client.wait_group("parked")


def texts(client, code):
    execution = client.run(code)
    assert execution["state"] == "ok", execution
    return [client.text(rank, execution["id"]) for rank in (0, 1)]


def resident(client):
    return sum(int(Path(f"/proc/{rank['pid']}/statm").read_text().split()[1]) * 4096 for rank in client.group["ranks"])


def test_a_group_trains_on_after_it_was_parked_three_times(agent):
    undisturbed = texts(agent, "import copy; was = copy.deepcopy(model.state_dict())\n"
                               "print([step(number) for number in range(4)])")  # fmt: skip
    texts(
        agent,
        "model.load_state_dict(was); found = []",
    )
    for number in range(4):
        texts(agent, f"found.append(step({number}))")
        if number < 3:
            park(agent)
            parked = agent.group["parked"]
            assert parked["place"] == "file"
            assert parked["by"] == ["storages"]
            assert parked["held_bytes"] > 2 * 400_000
            assert "NumPy" in parked["left"][0]
    assert texts(agent, "print(found)") == undisturbed
    assert agent.group["state"] == "ready"
    assert agent.group["parked"] is None
    assert any("Resumed in " in content.decode("utf-8", "replace") for _, content in agent.records)
    assert agent.group["note"] is None  # which ends with the cell


def test_objects_keep_their_identity_and_views_their_storage(agent):
    texts(agent, "before = id(big), id(model.module.weight), id(pair)")
    park(agent)
    code = (
        "array[0] = 5; big[15] = -1\n"
        "print(before == (id(big), id(model.module.weight), id(pair)), alias is big, view[5].item(), "
        "shared[0].item(), big.sum().item() > 0, sparse.to_dense().sum().item())"
    )
    assert set(texts(agent, code)) == {"True True -1.0 5.0 True 40.0\n"}


def test_memory_is_given_back(agent):
    texts(agent, "much = torch.ones(16 << 20); None")  # 64 MiB
    before = resident(agent)
    park(agent)
    assert before - resident(agent) > 100 << 20
    assert texts(agent, "print(int(much.sum().item()) == 16 << 20); del much") == ["True\n"] * 2


def test_a_cell_waits_for_the_group_and_shows_it(agent):
    park(agent)
    spec = ExecutionSpec(execution_id="e-waits", ranks=[0, 1])
    header, _ = agent.request("execute", b"print('here')", execution=spec.to_dict())
    assert header["execution"]["waits_for"] == "Resumes the group, which was parked"
    agent.wait(lambda: agent.group["state"] == "ready")
    agent.ended("e-waits")
    assert agent.text(0, "e-waits") == "here\n"
    assert agent.executions["e-waits"]["state"] == "ok"
    assert agent.executions["e-waits"]["waits_for"] is None


def test_a_cell_that_comes_while_it_is_parked_is_cancelled_alone(agent):
    """An interrupt while the group is resumed: the group is ready then, and the cell has not run."""
    park(agent)
    execution = agent.submit("print('not run')", [0, 1])
    agent.request("interrupt", ranks=[0, 1])
    agent.request("cancel", execution_id=execution)
    agent.ended(execution)
    agent.wait_group("ready")
    assert texts(agent, "print('whole')") == ["whole\n"] * 2


def test_a_parked_group_refuses_what_would_look_at_its_tensors(agent):
    park(agent)
    of_parts = {"variables": {"rank": 0}, "debug": {"rank": 0}}
    for request, fields in (
        *((name, fields) for name, fields in of_parts.items() if name in BY_NAME),
        ("empty_cache", {"ranks": [0]}),
        ("stacks", {}),
        ("preview_save", {}),
        ("reform", {}),
        ("replace", {}),
    ):
        with pytest.raises(JupyterDistError, match=r"parked|Not all|Unknown request"):
            agent.request(request, b'{"list": {}}', **fields)
    if "complete" in BY_NAME:
        found, _ = agent.request("complete", b"bi", rank=0, cursor_pos=2)
        assert "big" in found["matches"]
    agent.request("park", to="file")  # again: nothing happens
    assert agent.group["state"] == "parked"
    agent.request("resume")
    agent.wait_group("ready")
    agent.request("resume")  # again: nothing happens


def test_a_busy_group_is_not_parked(agent):
    running = agent.submit("import time\nwhile True: time.sleep(0.01)", [0, 1])
    agent.wait(lambda: agent.executions[running]["state"] == "running")
    with pytest.raises(JupyterDistError, match="runs a cell"):
        agent.request("park", to="file")
    agent.request("interrupt", ranks=[0, 1])
    agent.ended(running)
    agent.wait(lambda: all(rank["state"] == "idle" for rank in agent.group["ranks"]))


def test_a_thread_of_a_cell_forbids_parking(agent):
    texts(agent, "import threading\nstop = threading.Event()\n"
                 "def work():\n    while not stop.wait(0.01): big.sum()\nthreading.Thread(target=work).start()")  # fmt: skip
    with pytest.raises(JupyterDistError, match="a thread of an earlier cell may still run"):
        agent.request("park", to="file")
    texts(agent, "stop.set()")


def test_a_group_without_devices_is_not_parked_in_host_memory(agent):
    with pytest.raises(JupyterDistError, match="holds no devices"):
        agent.request("park", to="host")


def test_a_folder_that_cannot_be_written_is_named(agent):
    with pytest.raises(JupyterDistError, match="No such file"):
        agent.request("park", to="file", folder="/does/not/exist")
    with pytest.raises(JupyterDistError, match="in memory"):
        agent.request("park", to="file", folder="/dev/shm")
    agent.request("park", to="file", folder=__file__)  # on a disk with space; the ranks find out
    agent.wait_group("ready")
    assert "The group was not parked: Rank " in agent.group["note"]
    assert texts(agent, "print(step(1) > 0)") == ["True\n"] * 2


def test_a_group_that_cannot_be_resumed_stays_parked_and_loses_nothing(agent):
    """One rank has no room for its tensors; the cell that waits ends with the reason."""
    texts(agent, "much = torch.ones(16 << 20) * rank; None")  # 64 MiB
    park(agent)
    pid = agent.group["ranks"][1]["pid"]
    used = int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * 4096
    _, hard = resource.prlimit(pid, resource.RLIMIT_AS)
    resource.prlimit(pid, resource.RLIMIT_AS, (used + (8 << 20), hard))
    try:
        for _ in range(2):
            waiting = agent.run("much.sum()")
            assert waiting["state"] == "aborted"
            assert "could not be resumed: Rank 1: Cannot bring" in waiting["error"]["message"]
            assert agent.group["state"] == "parked"
            assert "It stays parked." in agent.group["note"]
    finally:
        resource.prlimit(pid, resource.RLIMIT_AS, (hard, hard))
    assert texts(agent, "print(int(much.sum().item())); del much") == ["0\n", f"{16 << 20}\n"]
    assert texts(agent, "print(step(1) > 0)") == ["True\n"] * 2


def test_a_rank_that_dies_while_parked_is_named_and_replaced(own):
    for _ in range(2):
        texts(own, "kept = torch.ones(1000)")
        park(own)
        os.kill(own.group["ranks"][1]["pid"], signal.SIGKILL)
        own.wait(lambda: "Rank 1" in (own.group["note"] or "") and "while the group was parked" in own.group["note"])
        assert own.group["state"] == "parked"
        own.request("resume")
        own.wait_group("degraded")
        assert "Rank 1 died meanwhile" in own.group["note"]
        execution = own.run("print(int(kept.sum()))", [0])
        assert own.text(0, execution["id"]) == "1000\n"
        own.request("replace")
        own.wait_group("ready")
        assert texts(own, "t = torch.ones(1); dist.all_reduce(t); print(t.item())") == ["2.0\n"] * 2


def test_ranks_that_die_while_the_group_is_parking_or_resuming(own):
    for begin in ("park", "resume"):
        texts(own, "kept = torch.ones(8_000_000); None")
        if begin == "resume":
            park(own)
        own.request(begin, **({"to": "file"} if begin == "park" else {}))
        os.kill(own.group["ranks"][1]["pid"], signal.SIGKILL)
        own.wait(lambda: own.group["ranks"][1]["state"] == "dead")
        own.wait_group("degraded", "parked")
        if own.group["state"] == "parked":
            own.request("resume")
            own.wait_group("degraded")
        execution = own.run("print(int(kept.sum()) == kept.numel())", [0])
        assert own.text(0, execution["id"]) == "True\n"
        own.request("replace")
        own.wait_group("ready")


def test_all_ranks_die_while_parked_and_the_group_is_restarted(own):
    park(own)
    for rank in own.group["ranks"]:
        os.kill(rank["pid"], signal.SIGKILL)
    own.wait_group("dead")
    own.request("restart")
    own.wait_group("ready")
    assert texts(own, "print(1)") == ["1\n"] * 2


def test_a_parked_group_is_restarted_and_shut_down_without_resuming(own):
    park(own)
    own.request("restart")
    own.wait_group("ready")
    assert own.group["parked"] is None
    texts(own, "x = torch.ones(1000)")
    park(own)
    own.request("shutdown")
    until(lambda: own.agent.process.poll() is not None)


def test_a_killed_agent_leaves_no_rank_of_a_parked_group(tmp_path):
    process = AgentProcess(tmp_path / "g")
    client = process.client()
    client.start(2)
    park(client)
    pids = [rank["pid"] for rank in client.group["ranks"]]
    os.kill(client.group["agent_pid"], signal.SIGKILL)
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
    client.close()
    process.process.kill()
    process.process.wait(PATIENCE)


WIDGET = """
import ipywidgets, time
slider = ipywidgets.IntSlider()
slider.observe(lambda change: time.sleep(change.new), "value")
slider
"""


def test_an_idle_group_is_parked_after_a_notice_and_not_while_a_widget_calls_back(tmp_path):
    with AgentProcess(tmp_path / "g") as client:
        client.start(2, options={"park_after_seconds": 2.5})
        client.request("comms")
        widget = client.run(WIDGET)["id"]
        done, _ = move(client, 1, view_of(client, widget, 1), 3)  # longer than the time without use
        wait_done(client, done)
        assert "it is parked in" not in (client.group["note"] or "")
        client.wait(lambda: "it is parked in 1 s" in (client.group["note"] or ""))
        client.wait_group("parked")
        assert texts(client, "print(2)") == ["2\n"] * 2
        assert "it is parked in" not in (client.group["note"] or "")
