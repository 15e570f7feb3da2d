"""Two machines as far as network and shared memory are concerned: each node in namespaces, its cable can be pulled."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import torch
from libraries import FSDP, preloading
from waits import until

from jupyter_dist.agent.nodes.link.places import socket_path
from jupyter_dist.client.asynchronous.exchange import exchange_folders
from jupyter_dist.objects import files
from jupyter_dist.system.processes import command_line, processes, read_process

from .network import Network, SixOnly, built, ip
from .relay import Relay
from .twonodes import NODE_VARIABLES, TwoNodes

ALL = (0, 1, 2, 3)
SUM = "t = torch.ones(1) * (rank + 1); dist.all_reduce(t); print(t.item())"
LEASE_SECONDS = 10.0


@pytest.fixture(scope="module")
def network():
    yield from built(Network())


@pytest.fixture
def six():
    yield from built(SixOnly())


@pytest.fixture(scope="module")
def group(tmp_path_factory, network):
    nodes = TwoNodes(tmp_path_factory.mktemp("netns") / "g")
    nodes.begin(node_lease_seconds=LEASE_SECONDS)
    for node in range(2):
        given = {"SLURM_CPUS_PER_TASK": "1"} if node == 1 else {}
        given |= preloading(FSDP)
        nodes.join(prefix=network.inside(node), JUPYTER_DIST_NODE_RANK=str(node), **given)
    nodes.ready()
    yield nodes
    nodes.end()


def test_nodes_find_the_head_and_each_other_without_names(group, network):
    client = group.client
    found = [(node["host"], node["address"], node["interface"]) for node in client.group["nodes"]]
    names = [f"{network.tag}n{node}" for node in range(2)]
    assert found == [(name, network.address(node + 1), f"{name}i") for node, name in enumerate(names)]
    if (os.cpu_count() or 1) > 1:
        assert f"Node 1 ({names[1]}) has 1 of its machine's" in client.group["note"]
    code = SUM + "\nfrom torch.nn.parallel import DistributedDataParallel as DDP\nmodel = DDP(torch.nn.Linear(2, 1))\n"
    execution = client.run(code + "model(torch.ones(1, 2)).sum().backward()", ALL)
    assert execution["state"] == "ok", client.text(0, name="stderr")
    assert {client.text(rank, execution["id"]) for rank in ALL} == {"10.0\n"}


def test_objects_travel_to_ranks_that_do_not_see_the_files_of_the_client(group):
    client = group.client
    with exchange_folders() as folders:
        given = folders[0] / "for-all"
        value = {"shared": torch.arange(3_000_000), "name": "x"}
        with open(given, "wb") as file:
            files.write(file.fileno(), files.pack(value))
        call = {"do": "set", "files": {"all": str(given)}}
        assert client.run("# push", ALL, call=call)["state"] == "ok", client.text(0, name="stderr")
        call = {"do": "get", "names": ["shared + rank", "name"], "folders": [str(folder) for folder in folders]}
        assert client.run("# pull", ALL, call=call)["state"] == "ok"
        for rank in ALL:
            found = files.load(str(folders[0] / str(rank)))
            assert found["name"] == "x"
            assert torch.equal(found["shared + rank"], value["shared"] + rank)
        other = folders[0] / "other"
        other.write_text("a file of the user that no call names")
        peek = f"""
import gc
from jupyter_dist.rank.cells.clients.farfiles import FarFiles
(far,) = [each for each in gc.get_objects() if type(each) is FarFiles]
with far.here({str(other)!r}) as copy:
    print(open(copy).read())
"""
        execution = client.run(peek, ALL)
        assert execution["state"] == "error"
        assert "belongs to no running call" in str(
            [payload for header, payload in client.records if header["kind"] == "error"]
        )


@pytest.mark.part("saves")
def test_a_folder_that_not_all_machines_share_is_refused_for_saves(group):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as here:
        done = group.client.transfer("save", Path(here) / "saves", ALL)
        assert (done["state"], done["error"]["code"]) == ("error", "not_saved")
        assert "does not see the folder" in done["error"]["message"]
        until(lambda: not list((Path(here) / "saves" / "saves").iterdir()))  # removed after the end


def test_a_pulled_cable_holds_collectives_up_and_costs_nothing_when_it_is_back(group, network):
    client = group.client
    code = "import time\nfor i in range(60):\n    dist.all_reduce(torch.ones(1)); print('step', i); time.sleep(0.05)"
    execution = client.submit(code, ALL)
    client.wait(lambda: client.text(3, execution))
    network.cut(1)
    client.wait(lambda: client.group["nodes"][1]["state"] == "unreachable")
    assert client.group["nodes"][0]["state"] == "joined"
    network.heal(1)
    client.wait(lambda: client.group["nodes"][1]["state"] == "joined")
    assert client.ended(execution)["state"] == "ok"
    for rank in ALL:
        assert client.text(rank, execution) == "".join(f"step {i}\n" for i in range(60))


def errors_of(client, execution):
    """The errors of a cell, and the notes after them."""
    records = [(header, data) for header, data in client.records if header.get("execution_id") == execution["id"]]
    shown = [data.decode(errors="replace") for header, data in records if header["kind"] != "begin"]
    return "".join(shown)


MODEL = """
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
if 'sharded' not in globals():
    torch.manual_seed(0)
    sharded = fully_shard(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 1)), mesh=init_device_mesh("cpu", (4,)))
    optimizer = torch.optim.SGD(sharded.parameters(), lr=0.01)
def train():
    optimizer.zero_grad()
    loss = sharded(torch.ones(4, 8)).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()
"""


def begin_loop(client):
    """Begin a cell that trains an FSDP2 model without end; the second time the model is that of the first."""
    code = f"{MODEL}\nimport time\ntrain(); print('begun')\nwhile True:\n    train(); time.sleep(0.01)"
    execution = client.submit(code, ALL)
    client.wait(lambda: client.text(3, execution) or client.executions[execution]["ended_at"])
    assert client.text(3, execution), errors_of(client, client.executions[execution])
    return execution


@pytest.mark.part("hangs")
@pytest.mark.parametrize("cut", [[(0, 1), (1, 0)], [(1, 0)]], ids=["both ways", "one way"])
def test_nodes_that_reach_the_head_and_not_each_other_are_named_while_a_cell_waits(group, network, cut):
    client = group.client
    client.run("pair = dist.new_group([0, 2])", ALL)
    execution = begin_loop(client)
    for path in cut:
        network.cut_path(*path)

    def verdict():
        return client.executions[execution].get("verdict") or {}

    client.wait(lambda: verdict().get("reason") == "cut")
    assert verdict()["kind"] == "waits"
    host, address = f"{network.tag}n1", network.address(2)
    named = f"Node 0 ({network.tag}n0) cannot connect to node 1 ({host}) at {address}, interface {host}i (no answer"
    assert verdict()["paths"].startswith(named)
    assert 'env={"GLOO_SOCKET_IFNAME"' in verdict()["message"]
    assert {node["state"] for node in client.group["nodes"]} == {"joined"}
    client.request("interrupt", ranks=None)
    assert client.ended(execution)["state"] == "interrupted"
    client.wait(lambda: "could not be re-created (Nodes do not reach each other." in (client.group["note"] or ""))
    assert client.run("print('kept')", ALL)["state"] == "ok"
    failed = client.run(SUM, ALL)
    assert failed["state"] == "error"
    assert "could not be re-created, which is tried again: Nodes do not reach" in errors_of(client, failed)
    for path in cut:
        network.heal_path(*path)
    client.wait(lambda: "was re-created" in (client.group["note"] or ""))
    again = client.run(f"{SUM}\nif rank in (0, 2): dist.all_reduce(t, group=pair); print(t.item())", ALL)
    assert [client.text(rank, again["id"]) for rank in ALL] == ["10.0\n20.0\n", "10.0\n"] * 2
    trained = client.run("losses = [train() for _ in range(20)]; print(losses[-1] < losses[0])", ALL)
    assert {client.text(rank, trained["id"]) for rank in ALL} == {"True\n"}, errors_of(client, trained)


def test_a_start_of_nodes_that_do_not_reach_each_other_fails_and_names_them(group, network):
    client = group.client
    network.cut_path(0, 1)
    for _ in range(2):
        client.request("restart")
        client.wait_group("dead")
        assert f"Node 0 ({network.tag}n0) cannot connect to node 1" in client.group["error"]["message"]
        assert {rank["state"] for rank in client.group["ranks"]} == {"dead"}
    network.heal_path(0, 1)
    client.request("restart")
    client.wait_group("ready")
    again = client.run(SUM, ALL)
    assert {client.text(rank, again["id"]) for rank in ALL} == {"10.0\n"}


def test_a_cable_that_stays_out_frees_the_ranks_that_are_left(group, network):
    client = group.client
    execution = client.submit("import time\nwhile True:\n    dist.all_reduce(torch.ones(1)); time.sleep(0.05)", ALL)
    client.wait(lambda: all(rank["state"] == "busy" for rank in client.group["ranks"]))
    time.sleep(0.5)
    pids = [rank["pid"] for rank in client.group["ranks"]]
    network.cut(1)
    assert group.nodes[1].code() == 1
    until(lambda: not any(map(read_process, pids[2:])))
    assert client.ended(execution)["state"] == "lost"  # the ranks of node 0 were freed
    client.wait_group("degraded")
    network.heal(1)
    group.join("--node-rank", "1", prefix=network.inside(1))
    client.wait(lambda: client.group["nodes"][1]["state"] == "joined")
    client.request("replace")
    client.wait_group("ready")
    again = client.run(SUM, ALL)
    assert {client.text(rank, again["id"]) for rank in ALL} == {"10.0\n"}
    assert [rank["pid"] for rank in client.group["ranks"]][:2] == pids[:2]


def test_a_machine_that_is_started_again_joins_after_the_lease_and_its_ranks_are_replaced_twice(group, network):
    client = group.client
    pids = [rank["pid"] for rank in client.group["ranks"]]
    for _ in range(2):
        network.reboot(1)
        client.wait(lambda: client.group["nodes"][1]["state"] == "unreachable")
        back = group.join("--node-rank", "1", prefix=network.inside(1))  # the head takes the agent before for cut off
        client.wait_group("degraded")
        assert f"could not be reached for {LEASE_SECONDS:g} s" in client.group["nodes"][1]["message"]
        client.wait(lambda: client.group["nodes"][1]["state"] == "joined")
        assert "The link to node 1 is lost. This agent joins if it is not back after the lease." in back.text()
        client.request("replace")
        client.wait_group("ready")
        again = client.run(SUM, ALL)
        assert {client.text(rank, again["id"]) for rank in ALL} == {"10.0\n"}
    assert [rank["pid"] for rank in client.group["ranks"]][:2] == pids[:2]


SECOND = """
ip link set lo up
ip addr add 10.9.0.1/24 dev lo
ip addr add 10.9.0.2/24 dev lo
ip addr add 10.9.7.3/24 dev lo label lo:x
exec "$@"
"""


def test_second_addresses_of_an_interface_are_offered_to_nodes_and_known(network):
    code = (
        "from jupyter_dist.agent.nodes.link.joinfile import interface_of, own_addresses\n"
        "print(*((address, interface_of(address)) for address in own_addresses() if address.startswith('10.9.')))"
    )
    command = ["unshare", "--net", "sh", "-c", SECOND, "sh", sys.executable, "-c", code]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **NODE_VARIABLES})
    assert all(f"('{address}', 'lo')" in shown.stdout for address in ("10.9.0.1", "10.9.0.2", "10.9.7.3")), shown.stdout


def test_nodes_that_have_only_ipv6_addresses(tmp_path, six):
    nodes = TwoNodes(tmp_path / "g")
    try:
        nodes.begin(ranks_per_node=[1, 3])
        for node in range(2):
            nodes.join(prefix=six.inside(node), JUPYTER_DIST_NODE_RANK=str(node))
        nodes.ready()
        client = nodes.client
        found = [(node["address"], node["interface"]) for node in client.group["nodes"]]
        assert found == [(six.address(node + 1), f"{six.tag}n{node}i") for node in range(2)]
        own = "dist.destroy_process_group(); dist.init_process_group('gloo'); "  # over MASTER_ADDR
        execution = client.run(f"{SUM}; {own}{SUM}", ALL)
        assert execution["state"] == "ok", client.text(0, name="stderr")
        assert {client.text(rank, execution["id"]) for rank in ALL} == {"10.0\n10.0\n"}
    finally:
        nodes.end()


# -- what an administrator can set ----------------------------------------------------------------------------

FABRIC = "fab0"


@pytest.fixture
def fabric(network):
    """A second network between the nodes: the first address of its interfaces is dead, the second has a label."""
    ends = [f"{network.tag}f{node}" for node in range(2)]
    ip("link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
    for node, end in enumerate(ends):
        name = f"{network.tag}n{node}"
        ip("link", "set", end, "netns", name, "name", FABRIC)
        ip("-n", name, "addr", "add", f"10.9{node}.0.1/24", "dev", FABRIC)
        ip("-n", name, "addr", "add", f"10.99.0.{node + 1}/24", "dev", FABRIC, "label", f"{FABRIC}:2")
        ip("-n", name, "link", "set", FABRIC, "up")
    yield f"{FABRIC}:2"
    ip("-n", f"{network.tag}n0", "link", "del", FABRIC)


@contextlib.contextmanager
def two_nodes(folder, network, **fields):
    """A group whose nodes are in the namespaces."""
    nodes = TwoNodes(folder)
    try:
        nodes.begin(**fields)
        for node in range(2):
            nodes.join(prefix=network.inside(node), JUPYTER_DIST_NODE_RANK=str(node))
        yield nodes
    finally:
        nodes.end()


def test_the_head_has_the_port_the_name_and_the_interface_that_it_is_given(tmp_path, network, fabric):
    """Behind NAT, and between nodes whose way to the head does not lead to each other."""
    first = 20_000 + os.getpid() % 6000 * 2  # the kernel gives others to programs that ask for any
    with socket.create_server(("0.0.0.0", first)):  # the range begins with a port that is in use
        relay = Relay(("127.0.0.1", first + 1), network.address(0))
        fields = {"head_ports": [first, first + 1], "interface": fabric, "cpu_binding": "rank"}
        fields |= {"head_addresses": [["192.0.2.7", None], [relay.host, relay.port]]}  # the first leads nowhere
        for pair in ((0, 1), (1, 0)):
            network.cut_path(*pair)
        try:
            with two_nodes(tmp_path / "g", network, **fields) as nodes:
                nodes.ready()
                join = json.loads(nodes.join_file.read_text())
                assert join["endpoints"] == [f"192.0.2.7:{first + 1}", relay.endpoint]
                client = nodes.client
                found = [(node["address"], node["interface"]) for node in client.group["nodes"]]
                assert found == [("10.99.0.1", FABRIC), ("10.99.0.2", FABRIC)]
                show = "import os; print(os.environ['GLOO_SOCKET_IFNAME'], len(os.sched_getaffinity(0)))"
                done = client.run(f"{SUM}; {show}", ALL)
                share = (os.cpu_count() or 1) // 2 or 1
                texts = {client.text(rank, done["id"]) for rank in ALL}
                assert texts == {f"10.0\n{fabric} {share}\n"}, client.text(0, name="stderr")
        finally:
            relay.close()
            for pair in ((0, 1), (1, 0)):
                network.heal_path(*pair)


def test_nodes_that_cannot_connect_to_the_head_are_reached_from_its_side(tmp_path, network):
    """No packet of a node arrives at the head; the tunnel is a pipe into its namespace. It is lost twice, and comes back."""
    names = [f"{network.tag}n{node}" for node in range(2)]
    for name in names:
        ip("-n", name, "route", "add", "blackhole", f"{network.address(0)}/32")
    try:
        with two_nodes(tmp_path / "g", network, tunnel=["ip", "netns", "exec", "{host}"]) as nodes:
            client, group_id = nodes.client, json.loads(nodes.join_file.read_text())["group_id"]
            client.request("tunnels", hosts=["no-such-host", names[1]], job="")
            client.wait(lambda: "The tunnel to no-such-host ended" in (client.group["nodes"][0]["message"] or ""))
            client.request("tunnels", hosts=names, job="")
            nodes.ready()
            assert [node["address"] for node in client.group["nodes"]] == [network.address(1), network.address(2)]
            for _ in range(2):
                code = "import time\nfor i in range(40):\n    dist.all_reduce(t := torch.ones(1)); print(i); time.sleep(0.05)"
                execution = client.submit(code, ALL)
                client.wait(lambda: client.text(3, execution))
                for pid in bridges(group_id):
                    os.kill(pid, signal.SIGKILL)
                assert client.ended(execution)["state"] == "ok"
                assert {client.text(rank, execution) for rank in ALL} == {"".join(f"{i}\n" for i in range(40))}
        assert not bridges(group_id)
    finally:
        for name in names:
            ip("-n", name, "route", "del", "blackhole", f"{network.address(0)}/32")


def bridges(group_id):
    """The programs on nodes that the tunnels of a group have started."""
    own = str(socket_path(group_id, 0).parent)
    lines = ((pid, [os.fsdecode(word) for word in command_line(pid)]) for pid in processes())
    return [pid for pid, words in lines if words and words[-1].startswith(own)]


def test_a_trial_is_on_the_address_that_gloo_takes(network, fabric):
    """gloo knows an interface by its name, so it takes the first address, or the one with the label."""
    code = """
import asyncio, sys
from jupyter_dist.agent.nodes.link.trial import TrialPort
for interface, address in ((None, "10.99.0.1"), ("fab0", "10.99.0.1"), (None, "10.90.0.1")):
    print(asyncio.run(TrialPort().open(interface, address))["address"])
"""
    command = [*network.inside(0), sys.executable, "-c", code]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **NODE_VARIABLES})
    assert shown.stdout.split() == ["10.99.0.1", "10.90.0.1", "10.90.0.1"]


def test_a_node_without_the_interface_ends_and_names_its_own(tmp_path, network):
    with two_nodes(tmp_path / "g", network, interface="ib7") as nodes:
        assert nodes.nodes[0].code() == 1
        text = nodes.nodes[0].text()
        assert f"no network interface ib7 with an address; it has lo, {network.tag}n0i" in text
