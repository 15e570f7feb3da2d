"""A group over two nodes as its user sees it: REST, Python client, command line; and a server that is killed."""

import json
import os
import shlex
import signal
import subprocess
import sys

import pytest
from faults.server import TOKEN, JupyterServer
from waits import PATIENCE, until

from jupyter_dist.client import Client

from .twonodes import NODE_VARIABLES

SHAPE = {"launcher": "external", "num_nodes": 2, "ranks_per_node": 2}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("s")


@pytest.fixture(scope="module")
def nodes():
    """Processes of node agents, ended when the tests are done."""
    started = []
    yield started
    for process in started:
        process.kill()
        process.wait(PATIENCE)


@pytest.fixture(scope="module")
def servers(home, nodes):
    """The servers, one after the other; the newest is the last."""
    found = [JupyterServer(home)]
    body = {"name": "wide", "python": sys.executable, "cwd": str(home), **SHAPE}
    group = found[0].ask("POST", "groups", body)
    assert group["state"] == "starting"
    assert [node["state"] for node in group["nodes"]] == ["waiting", "waiting"]
    shown = command(home, "status", "wide").stdout
    assert group["join"] in shown
    assert "Node 1: waiting, ranks 2-3." in shown
    join = shlex.split(group["join"])
    nodes.append(subprocess.Popen(join, env={**os.environ, **NODE_VARIABLES}, start_new_session=True))
    until(lambda: found[0].ask("GET", "groups/wide")["nodes"][0]["state"] == "joined")
    assert "Node 1: waiting" in command(home, "status", "wide").stdout
    with open(join[-1]) as file:  # as `ssh host jupyter dist join - < join.json` does
        words = [sys.executable, "-c", "from jupyter_dist.cli.main import main; main()", "join", "-"]
        nodes.append(subprocess.Popen(words, stdin=file, env={**os.environ, **NODE_VARIABLES}, start_new_session=True))
    group = found[0].ask("GET", f"groups/wide?wait={PATIENCE}&not_state=starting")
    assert group["state"] == "ready", group
    assert group["join"] is None
    yield found
    found[-1].ask("DELETE", "groups/wide")
    assert [process.wait(PATIENCE) for process in nodes] == [0, 0]  # they end with the group, in order
    found[-1].end()


def command(home, *words):
    environment = {**os.environ, "JUPYTER_RUNTIME_DIR": str(home / "runtime"), "JUPYTER_TOKEN": TOKEN, **NODE_VARIABLES}
    code = "from jupyter_dist.cli.main import main; main()"
    line = [sys.executable, "-c", code, *words]
    return subprocess.run(line, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=True)


def test_what_four_ranks_on_two_nodes_print_is_folded(servers):
    view = servers[-1].run("wide", "print('same on all'); print(rank)")
    texts = [(item["ranks"], item["output"].get("text")) for item in view["items"]]
    assert texts[0] == ("0-3", "same on all\n")
    view = servers[-1].run("wide", "print(rank)", "node:1")
    assert view["execution"]["ranks"] == "2-3"
    assert sorted(texts[1:]) == [(str(rank), f"{rank}\n") for rank in range(4)]


def test_the_client_pushes_pulls_and_launches_over_nodes(servers):
    with Client.connect(servers[-1].info["url"], TOKEN) as client:
        group = client.attach("wide")
        group.push({"shared": list(range(5))})
        assert group.gather("sum(shared) + rank") == {rank: 10 + rank for rank in range(4)}
        assert [node["ranks"] for node in group.model["nodes"]] == ["0-1", "2-3"]
        assert group.model["launcher"] == "external"


def test_a_killed_server_costs_a_group_over_nodes_no_line(servers, home):
    loop = "import time\nfor i in range(40): print('line', i); time.sleep(0.1)\n"
    code = loop + "print(int(dist.all_reduce(torch.ones(1)) is None))"
    execution = servers[-1].submit("wide", code)
    until(lambda: servers[-1].view("wide", execution, wait=0)["items"])
    servers[-1].end(signal.SIGKILL)
    servers.append(JupyterServer(home))
    view = servers[-1].view("wide", execution)
    assert view["execution"]["state"] == "ok", json.dumps(view)[:2000]
    expected = "".join(f"line {i}\n" for i in range(40)) + "1\n"
    assert "".join(item["output"]["text"] for item in view["items"] if item["ranks"] == "0-3") == expected
    assert [node["state"] for node in servers[-1].ask("GET", "groups/wide")["nodes"]] == ["joined", "joined"]


def test_a_group_whose_nodes_never_came_ends_at_once(servers):
    started = servers[-1].ask("POST", "groups", {"name": "alone", **SHAPE})
    assert started["state"] == "starting"
    assert servers[-1].ask("DELETE", "groups/alone") == {"killed": []}


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"launcher": "slurmm"}, "There is no launcher 'slurmm'."),
        ({"num_nodes": 2}, "'num_nodes' is 2, but the launcher 'local' starts ranks on one machine only."),
        ({"ranks_per_node": 2}, "'ranks_per_node' is for groups on nodes."),
        ({**SHAPE, "ranks_per_node": None, "num_ranks": 3}, "3 ranks cannot be divided evenly among 2 nodes."),
        ({**SHAPE, "num_ranks": 5}, "'num_ranks' is 5, but 2 nodes with 2 ranks have others."),
        ({**SHAPE, "devices": [0]}, "'devices' was given, but the ranks would run on the CPU of nodes."),
        ({**SHAPE, "num_nodes": 1024, "ranks_per_node": 64}, "1024 nodes with 64 ranks each were requested."),
        ({"num_nodes": 0}, "The field 'num_nodes'"),
    ],
)
def test_each_mistake_in_the_shape_of_a_group_has_its_sentence(servers, fields, sentence):
    given = {name: value for name, value in fields.items() if value is not None}
    status, error = servers[-1].refused("POST", "groups", {"name": "wrong", **given})
    assert status == 400
    assert sentence in error["message"]
    assert error["hint"]
