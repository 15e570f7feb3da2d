"""A group on three machines that loses one goes on with the other two, and grows when a machine is there again."""

from __future__ import annotations

import pytest
from faults.test_resizing import SIZE, resize
from libraries import LIGHT, preloading
from waits import PATIENCE

from jupyter_dist.protocol.errors import JupyterDistError

from .twonodes import TwoNodes

LEASE_SECONDS = 600.0  # a node that is lost would be waited for as long as the test may take


@pytest.fixture
def nodes(tmp_path):
    group = TwoNodes(tmp_path / "g")
    cwd = tmp_path / "work"
    cwd.mkdir()
    given = {"cwd": str(cwd), "launcher": "external", "num_nodes": 3, "node_lease_seconds": LEASE_SECONDS}
    group.client.start(3, wait=False, start_timeout_seconds=PATIENCE, **given)
    for node in range(3):
        group.join("--node-rank", str(node), **preloading(LIGHT))
    group.ready()
    yield group
    group.end()


def size_of(client, mine):
    number = len(mine)
    cell = client.run(SIZE, range(number), expression="all")
    assert cell["state"] == "ok", client.group
    for rank, value in enumerate(mine):
        named, environ = [rank, number, rank, number, 0], [rank, number, 0, 1]
        assert client.text(rank, cell["id"]) == f"{named} {environ} {rank} {number} {number} {value}\n"


def lose(nodes, number):
    """End a node with the process that watches over it, as when its machine loses its power."""
    nodes.nodes[number].end()
    client = nodes.client
    client.wait(lambda: any(node["state"] == "unreachable" for node in client.group["nodes"]))


def test_a_group_goes_on_with_two_machines_of_three_and_grows_again(nodes):
    client = nodes.client
    client.run("mine, alike = f'made on {rank}', [1]", range(3))
    before = [rank["pid"] for rank in client.group["ranks"]]
    waits = client.submit("dist.barrier()", range(2))  # it waits for rank 2, and then for a rank that is lost
    lose(nodes, 0)
    assert resize(client, 2)["error"] is None
    assert client.ended(waits)["state"] != "ok"
    assert [rank["pid"] for rank in client.group["ranks"]] == before[1:]
    assert [(node["node"], node["ranks"], node["state"]) for node in client.group["nodes"]] == [
        (0, "0", "joined"),
        (1, "1", "joined"),
    ]
    assert [(node["node"], node["ranks"], node["state"]) for node in client.group["spare_nodes"]] == [(2, "", "gone")]
    size_of(client, ["made on 1", "made on 2"])
    with pytest.raises(JupyterDistError, match="3 ranks need 3 nodes; 2 are there"):
        client.request("resize", num_ranks=3, others="keep")
    nodes.join(**preloading(LIGHT))
    client.wait(lambda: [node["state"] for node in client.group["spare_nodes"]] == ["joined"])
    assert "alike" in resize(client, 3)["copied"]
    assert client.group["spare_nodes"] == []
    size_of(client, ["made on 1", "made on 2", None])
    cell = client.run("print(alike)", range(3))
    assert [client.text(rank, cell["id"]) for rank in range(3)] == ["[1]\n"] * 3
    resize(client, 1)
    assert [node["state"] for node in client.group["spare_nodes"]] == ["joined", "joined"]
    size_of(client, ["made on 1"])
    client.request("restart")
    client.wait_group("ready")
    size_of(client, [None])
    resize(client, 3)
    size_of(client, [None] * 3)
