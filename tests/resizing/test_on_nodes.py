"""A group on three machines that loses one goes on with the other two, and grows when a machine is there again.

The last machine has two ranks, the others one.
"""

from __future__ import annotations

import pytest
from libraries import LIGHT, preloading
from nodes.twonodes import TwoNodes
from waits import PATIENCE

from jupyter_dist.protocol.errors import JupyterDistError

from .test_resizing import SIZE, resize

LEASE_SECONDS = 600.0  # a node that is lost would be waited for as long as the test may take


@pytest.fixture
def nodes(tmp_path):
    group = TwoNodes(tmp_path / "g")
    cwd = tmp_path / "work"
    cwd.mkdir()
    given = {"cwd": str(cwd), "launcher": "external", "ranks_per_node": [1, 1, 2], "node_lease_seconds": LEASE_SECONDS}
    group.client.start(4, wait=False, start_timeout_seconds=PATIENCE, **given)
    for node in range(3):
        group.join("--node-rank", str(node), **preloading(LIGHT))
    group.ready()
    yield group
    group.end()


def size_of(client, mine, counts):
    """Check on every rank that it has the right place on the right node, and its value of `mine`."""
    number = len(mine)
    places = [(local_rank, count) for count in counts for local_rank in range(count)]
    cell = client.run(SIZE, range(number), expression="all")
    assert cell["state"] == "ok", client.group
    for rank, (value, (local_rank, local_size)) in enumerate(zip(mine, places, strict=True)):
        named, environ = [rank, number, rank, number, local_rank], [rank, number, local_rank, local_size]
        assert client.text(rank, cell["id"]) == f"{named} {environ} {rank} {number} {number} {value}\n"


def lose(nodes, number):
    """End a node with the process that watches over it, as when its machine loses its power."""
    nodes.nodes[number].end()
    client = nodes.client
    client.wait(lambda: any(node["state"] == "unreachable" for node in client.group["nodes"]))


def nodes_of(client, which="nodes"):
    return [(node["ranks"], node["state"]) for node in client.group[which]]


def test_a_group_goes_on_with_two_machines_of_three_and_grows_again(nodes):
    client = nodes.client
    client.run("mine, alike = f'made on {rank}', [1]", range(4))
    before = [rank["pid"] for rank in client.group["ranks"]]
    waits = client.submit("dist.barrier()", range(2))  # it waits for rank 2, and then for a rank that is lost
    lose(nodes, 0)
    assert resize(client, 3)["error"] is None
    assert client.ended(waits)["state"] != "ok"
    assert [rank["pid"] for rank in client.group["ranks"]] == before[1:]
    assert nodes_of(client) == [("0", "joined"), ("1-2", "joined")]
    assert nodes_of(client, "spare_nodes") == [("", "gone")]
    size_of(client, ["made on 1", "made on 2", "made on 3"], [1, 2])
    with pytest.raises(JupyterDistError, match=r"4 ranks were requested; 2 nodes are there, .* and room for 3"):
        client.request("resize", num_ranks=4, others="keep")
    nodes.join(**preloading(LIGHT))
    client.wait(lambda: nodes_of(client, "spare_nodes") == [("", "joined")])
    assert "alike" in resize(client, 4)["copied"]
    assert client.group["spare_nodes"] == []
    size_of(client, ["made on 1", "made on 2", "made on 3", None], [1, 2, 1])
    cell = client.run("print(alike)", range(4))
    assert [client.text(rank, cell["id"]) for rank in range(4)] == ["[1]\n"] * 4


def test_the_last_machine_may_have_fewer_ranks_and_is_filled_first(nodes):
    client = nodes.client
    client.run("mine = f'made on {rank}'", range(4))
    before = [rank["pid"] for rank in client.group["ranks"]]
    resize(client, 3)
    assert nodes_of(client) == [("0", "joined"), ("1", "joined"), ("2", "joined")]
    size_of(client, ["made on 0", "made on 1", "made on 2"], [1, 1, 1])
    resize(client, 4)
    assert [rank["pid"] for rank in client.group["ranks"]][:3] == before[:3]
    client.run("mine = f'made on {rank}'", (3,))
    client.request("kill", rank=2)
    client.wait_group("degraded")
    client.request("replace")
    client.wait_group("ready")
    size_of(client, ["made on 0", "made on 1", None, "made on 3"], [1, 1, 2])
    resize(client, 1)
    assert nodes_of(client, "spare_nodes") == [("", "joined")] * 2
    size_of(client, ["made on 0"], [1])
    client.request("restart")
    client.wait_group("ready")
    size_of(client, [None], [1])
    resize(client, 3)
    assert [node["ranks"] for node in client.group["nodes"]] == ["0", "1", "2"]
    size_of(client, [None] * 3, [1, 1, 1])
    cell = client.run("print(local_rank)", (2,), expression="node:2")
    assert client.text(2, cell["id"]) == "0\n"
