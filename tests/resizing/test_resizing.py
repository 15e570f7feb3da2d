"""A group that is resized, in one direction and the other, again and again; and resizes that fail half-way."""

from __future__ import annotations

import os
import signal

import pytest
from faults.conftest import _no_leaks  # noqa: F401 (fixture)
from waits import until

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.operations import BY_NAME

# What the ranks of a group know of its size: names, variables, torch, and a collective that all must join.
SIZE = """
import os, torch
t = torch.ones(1)
dist.all_reduce(t)
named = [rank, world_size, __rank__, __world_size__, local_rank]
environ = [int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")]
print(named, environ, dist.get_rank(), dist.get_world_size(), int(t.item()), globals().get("mine"))
del t, named, environ
"""


def size_of(client, mine):
    """Check on every rank that it has the right place, and return the values of `mine`."""
    number = len(client.group["ranks"])
    cell = client.run(SIZE, range(number), expression="all")
    assert cell["state"] == "ok", (client.group["note"], client.group["ranks"])
    for rank, value in enumerate(mine):
        named, environ = [rank, number, rank, number, rank], [rank, number, rank, number]
        expected = f"{named} {environ} {rank} {number} {number} {value}\n"
        assert client.text(rank, cell["id"]) == expected


def resize(client, num_ranks, **fields):
    client.request("resize", num_ranks=num_ranks, **{"others": "keep", **fields})
    assert client.group["state"] in ("resizing", "ready")
    client.wait_group("ready", "degraded", "dead")
    assert client.group["resized"]["error"] is None, client.group
    assert (client.group["state"], client.group["spec"]["world_size"]) == ("ready", num_ranks), client.group
    assert [rank["rank"] for rank in client.group["ranks"]] == list(range(num_ranks))
    return client.group["resized"]


def pids(client):
    return [rank["pid"] for rank in client.group["ranks"]]


def test_ranks_that_stay_keep_all(own):
    """2 -> 4 -> 1 -> 3: processes, variables, subgroups and the objects of process groups."""
    own.start(2)
    own.run("mine = f'made on {rank}'; world = dist.group.WORLD; everyone = dist.new_group(group_desc='everyone')")
    before = pids(own)
    assert resize(own, 4)["again"] == []
    assert pids(own)[:2] == before
    size_of(own, ["made on 0", "made on 1", None, None])
    own.run("world, everyone = dist.group.WORLD, None", [2, 3])
    same = "assert world is dist.group.WORLD and (world.rank(), world.size()) == (rank, world_size)\n"
    of_all = "assert everyone is None or (everyone.rank(), everyone.size()) == (rank, world_size)\n"
    assert own.run(f"{same}{of_all}dist.barrier(world)", range(4))["state"] == "ok", own.text(0)
    own.run("even = dist.new_group([0, 2], group_desc='even')", range(4))
    assert resize(own, 1)["again"] == ["The process group even (ranks 0,2) lost members: make it again on all ranks."]
    assert pids(own) == before[:1]
    size_of(own, ["made on 0"])
    resize(own, 3)
    assert pids(own)[:1] == before[:1]
    size_of(own, ["made on 0"] * 3)  # of one rank, all names are alike
    assert own.run(same, [0])["state"] == "ok"


def test_the_ranks_that_live_go_on(own):
    """They get consecutive numbers, and keep their subgroups; the log of each number has the whole story."""
    own.start(4)
    own.run("mine = f'made on {rank}'; pair = dist.new_group([0, 3], group_desc='pair')", range(4))
    own.run("import os; os.environ['MINE'] = str(rank)", range(4))
    before = pids(own)
    own.kill_rank(1)
    own.wait_group("degraded")
    assert resize(own, 3)["again"] == []
    assert pids(own) == [before[0], *before[2:]]
    size_of(own, ["made on 0", "made on 2", "made on 3"])
    in_pair = "t = torch.ones(1); dist.all_reduce(t, group=pair); print(t.item(), dist.get_process_group_ranks(pair))"
    cell = own.run(in_pair, [0, 2])
    assert (cell["state"], own.text(2, cell["id"])) == ("ok", "2.0 [0, 2]\n")
    assert b"Rank 3 became rank 2: the group was resized." in [content for _, content in own.records]
    resize(own, 4)
    size_of(own, ["made on 0", "made on 2", "made on 3", None])


def test_a_new_rank_fails_to_start(own):
    """The group has its earlier size and all variables, each time; then a resize succeeds."""
    own.start(2)
    own.run("mine = rank")
    before = pids(own)
    for _ in range(2):
        until(lambda: is_disturbed(own))
        assert own.group["resized"]["error"]["code"] == "start_failed", own.group["resized"]
        assert own.group["note"].startswith("The group could not be resized to 4 ranks, and has 2 as before: Rank ")
        assert (own.group["state"], pids(own)) == ("ready", before)
        size_of(own, [0, 1])
    resize(own, 3)
    size_of(own, [0, 1, None])


def is_disturbed(client):
    """Kill a new rank while the group is resized; False if it died too late, as on a busy machine."""
    client.request("resize", num_ranks=4, others="keep")
    client.wait(lambda: pid_of_new(client) is not None)
    os.kill(pid_of_new(client), signal.SIGKILL)
    client.wait_group("ready", "degraded", "dead")
    if client.group["resized"]["error"] is not None:
        return True
    client.wait_group("degraded")
    resize(client, 2)
    return False


def pid_of_new(client):
    return next((rank["pid"] for rank in client.group["ranks"][2:] if rank["pid"]), None)


def test_a_rank_that_stays_dies_meanwhile(own):
    own.start(2)
    own.run("mine = rank")
    own.request("resize", num_ranks=3, others="keep")
    own.kill_rank(1)
    own.wait_group("ready", "degraded", "dead")
    if own.group["state"] == "ready":  # it died too late to disturb the resize
        own.wait_group("degraded")
    assert own.group["ranks"][1]["state"] == "dead"
    resize(own, 1)
    size_of(own, [0])


def test_cells_wait_for_the_new_size(own):
    """A cell for all ranks that is submitted meanwhile runs on all ranks of then; one for a rank that left does not."""
    own.start(2)
    own.request("resize", num_ranks=3)
    cell = own.submit("t = torch.ones(1); dist.all_reduce(t); print(t.item())", [0, 1], expression="all")
    ended = own.ended(cell)
    assert (ended["state"], ended["ranks"], own.text(2, cell)) == ("ok", "0-2", "3.0\n")
    own.request("resize", num_ranks=1)
    cell = own.submit("1", [0, 1, 2], expression="all") if own.group["state"] == "resizing" else own.submit("1", [0])
    assert own.ended(cell)["ranks"] == "0"


def test_what_cannot_be_resized(own):
    own.start(2)
    busy = own.submit("import time; time.sleep(1000)", [0])
    own.wait(lambda: own.executions[busy]["state"] == "running")
    with pytest.raises(JupyterDistError, match="A cell is running"):
        own.request("resize", num_ranks=3)
    own.request("interrupt", ranks=[0])
    own.ended(busy)
    with pytest.raises(JupyterDistError, match="has 2 ranks already"):
        own.request("resize", num_ranks=2)


TRAINS = """
torch.manual_seed(0)
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
optimizer = torch.optim.Adam(net.parameters())
data = torch.utils.data.TensorDataset(torch.arange(24.0).reshape(6, 4))
sampler = torch.utils.data.distributed.DistributedSampler(data, shuffle=False)
def step():
    global loss
    (batch,) = next(iter(torch.utils.data.DataLoader(data, batch_size=2, sampler=sampler)))
    loss = net(batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
step()
loss = None
"""
STATE = "[(p.sum().item(), s['exp_avg'].sum().item()) for p, s in optimizer.state.items()]"


def test_new_ranks_get_what_all_have_alike(own):
    """A DDP model, its optimizer with the same parameters, functions, a sampler: training goes on with more ranks."""
    own.start(2)
    assert own.run(TRAINS, range(2))["state"] == "ok", own.records[-1]
    resized = resize(own, 3, others="refuse")
    assert resized["copied"] == ["data", "loss", "net", "optimizer", "sampler", "step"]
    assert (resized["again"], resized["differ"]) == ([], [])
    cell = own.run(
        f"assert {{id(p) for p in net.parameters()}} == {{id(p) for p in optimizer.state}}; print({STATE})", range(3)
    )
    assert cell["state"] == "ok", own.records[-1]
    assert own.text(0, cell["id"]) == own.text(1, cell["id"]) == own.text(2, cell["id"]) != ""
    cell = own.run(f"step(); print({STATE}, sampler.num_replicas, len(sampler))", range(3))
    assert cell["state"] == "ok", own.records[-1]
    assert own.text(0, cell["id"]) == own.text(2, cell["id"])
    cell = own.run("print(sampler.rank, list(sampler))", range(3))
    assert [own.text(rank, cell["id"]) for rank in range(3)] == ["0 [0, 3]\n", "1 [1, 4]\n", "2 [2, 5]\n"]
    resize(own, 2, others="keep")
    cell = own.run("loss = None; step(); print(sampler.rank, list(sampler))", range(2))
    assert [own.text(rank, cell["id"]) for rank in range(2)] == ["0 [0, 2, 4]\n", "1 [1, 3, 5]\n"]


def test_what_ranks_do_not_have_alike_is_asked_about(own):
    own.start(2)
    own.run("alike, mine = [1], rank", range(2))
    for _ in range(2):
        kept = own.run("alike.append(2)", range(2), **({"keep_undo": True} if "undo" in BY_NAME else {}))
        own.request("resize", num_ranks=3)
        own.wait_group("ready")
        error = own.group["resized"]["error"]
        assert (error["code"], own.group["resized"]["differ"]) == ("ranks_differ", ["mine"])
        assert "these names alike: mine (mine differs)." in error["message"]
        assert "others='keep'" in error["hint"]
        if "undo" in BY_NAME:
            assert [cell["execution_id"] for cell in own.request("undoable")[0]["cells"]] == [kept["id"]]
        size_of(own, [0, 1])
    own.run(
        "import threading; torch.manual_seed(0)\nclass Own: pass\nown, lock, net = Own(), threading.Lock(), torch.nn.Sequential(torch.nn.Linear(1, 1))\n"
        "own.part = {'a': [0, rank]}; net[0].note = rank; lock.acquire(); of_net = net[0].weight\nif rank: only = 1",
        range(2),
    )
    own.request("resize", num_ranks=3)
    own.wait_group("ready")
    message = own.group["resized"]["error"]["message"]
    for reason in (
        "own.part['a'][1] differs",
        "net[0].note differs",
        "lock cannot be compared: it holds a lock that is held",
        "only is not on rank 0",
        "of_net is alike alone, and shares objects with another of them",
    ):
        assert reason in message
    own.run("del own, lock, Own, net, of_net, threading\nif rank: del only", range(2))
    assert resize(own, 3, others="copy")["copied"] == ["alike", "mine", "os"]
    size_of(own, [0, 1, 0])
    own.run(
        "from torch.distributed.device_mesh import init_device_mesh; mesh = init_device_mesh('cpu', (3,))", range(3)
    )
    again = resize(own, 2)["again"]
    assert again == ["A DeviceMesh was made for 3 ranks: make it again, with the models that are sharded over it."]


SHARDS = """
from torch.distributed.fsdp import fully_shard
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Linear(5, 1))
for layer in [*net, net]:
    fully_shard(layer)
adam = torch.optim.Adam(net.parameters())
def step():
    net(torch.ones(2, 3)).square().mean().backward()
    adam.step()
    adam.zero_grad()
def whole():
    moments = [state["exp_avg"].full_tensor() for state in adam.state.values()]
    return [part.tolist() for part in [*(p.full_tensor() for p in net.parameters()), *moments]]
step()
before = [id(p) for p in net.parameters()]
"""


def test_a_sharded_model_is_divided_among_the_ranks_of_now(own):
    """FSDP2 with its optimizer: equal parameters bit for bit, under the same objects, and it trains on as one."""
    own.start(2)
    assert own.run(SHARDS, range(2))["state"] == "ok", own.records[-1]
    for num_ranks in (3, 1):
        ranks = range(len(own.group["ranks"]))
        text = own.text(0, own.run("print(whole())", ranks)["id"])
        resized = resize(own, num_ranks, others="keep")
        assert (resized["resharded"], resized["again"]) == (["adam", "layer", "net"], [])
        cell = own.run("print(whole())", range(num_ranks))
        assert cell["state"] == "ok", own.records[-1]
        assert {own.text(rank, cell["id"]) for rank in range(num_ranks)} == {text}
        cell = own.run("step(); print(whole())", range(num_ranks))
        assert cell["state"] == "ok", own.records[-1]
        assert len({own.text(rank, cell["id"]) for rank in range(num_ranks)}) == 1
    assert own.run("assert before == [id(p) for p in net.parameters()]", [0])["state"] == "ok"
