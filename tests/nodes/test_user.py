"""A group over two nodes as its user sees it: REST, Python client, command line; and a server that is killed."""

import io
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from completing import completions
from faults.server import TOKEN, JupyterServer
from leaks import children_of
from waits import PATIENCE, until

from jupyter_dist.client import Client, JupyterDistError
from jupyter_dist.client.displays.live import TextDisplay

from .twonodes import NODE_VARIABLES

SHAPE = {"launcher": "external", "ranks_per_node": [1, 3]}


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
    assert "Node 1: waiting, ranks 1-3." in shown
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
    assert view["execution"]["ranks"] == "1-3"
    assert sorted(texts[1:]) == [(str(rank), f"{rank}\n") for rank in range(4)]


def test_the_head_imports_no_torch_and_starts_no_zygote(servers):
    agent = servers[-1].agent_pid(servers[-1].ask("GET", "groups/wide")["id"])
    assert children_of(agent) == {}
    with open(f"/proc/{agent}/maps") as maps:
        assert "libtorch" not in maps.read()


def test_the_client_pushes_pulls_and_launches_over_nodes(servers):
    with Client.connect(servers[-1].info["url"], TOKEN) as client:
        group = client.attach("wide")
        group.push({"shared": list(range(5))})
        assert group.gather("sum(shared) + rank") == {rank: 10 + rank for rank in range(4)}
        assert [node["ranks"] for node in group.model["nodes"]] == ["0", "1-3"]
        assert group.model["launcher"] == "external"


def test_names_of_hosts_choose_their_ranks_in_the_client_and_on_the_command_line(servers, home, monkeypatch):
    with Client.connect(servers[-1].info["url"], TOKEN) as client:
        group = client.attach("wide")
        host = group.model["nodes"][0]["host"]  # of both nodes: they are on one machine here
        chosen = f"!{host},3"
        assert list(group.run("mine = rank", chosen).ranks) == [3]
        group.push({"other": 7}, chosen)
        assert group.gather("mine + other", chosen) == {3: 10}
        with pytest.raises(JupyterDistError, match="'nowhere' in 'nowhere' is not a rank expression"):
            group.run("1", "nowhere")
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(home / "runtime"))
    assert completions("jupyter-dist exec -g wide -r 0,no", home) == {"0,node:0", "0,node:1"}
    assert f"0,{host.partition('.')[0]}" in completions("jupyter-dist exec -g wide -r 0,", home)
    assert command(home, "exec", "-g", "wide", "-r", chosen, "print('host', rank)").stdout.strip().endswith("host 3")


HOSTILE = """
import subprocess
class Hostile:
    def __reduce__(self): return subprocess.call, (["touch", MARKER],)
def made(): return Hostile()
"""
# What a rank that was taken over does: it sends pickles all the same.
TAKEN_OVER = "import jupyter_dist.objects.files as f; f._data = f._pickle"
GIVEN_BACK = "del f._data; import importlib; importlib.reload(f)"


def test_a_value_of_another_machine_runs_no_code_in_the_client_unless_it_is_trusted(servers, tmp_path):
    marker = tmp_path / "marker"
    with Client.connect(servers[-1].info["url"], TOKEN) as client:
        group = client.attach("wide")
        group.run(f"MARKER = {str(marker)!r}\n{HOSTILE}", check=True)
        asks = (
            lambda: group.pull("Hostile()", rank=3),
            lambda: group.gather("[rank, {'x': Hostile()}]", "node:1"),
            lambda: group.launch(eval, "__import__('__main__').made()", ranks="3"),
        )
        for ask in asks:
            with pytest.raises(JupyterDistError, match=r"Hostile, which is no data.*group\.trust_nodes = True"):
                ask()
        group.run(TAKEN_OVER, check=True)
        for ask in asks:
            with pytest.raises(JupyterDistError, match="sent a pickle, which could run code here") as refused:
                ask()
            assert "group.trust_nodes = True" in refused.value.hint
        group.run(GIVEN_BACK, check=True)
        assert not marker.exists()
        state = group.pull("torch.nn.Linear(2, 3).state_dict()", rank=3)
        assert state["weight"].shape == (3, 2)
        group.trust_nodes = True
        assert group.pull("Hostile()", rank=3) == 0
        assert marker.exists()


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


def test_a_group_whose_nodes_never_came_ends_at_once_and_its_join_file_with_it(servers, tmp_path):
    started = servers[-1].ask("POST", "groups", {"name": "alone", **SHAPE})
    assert started["state"] == "starting"
    words = shlex.split(started["join"])
    copy = tmp_path / "join.json"  # on another machine
    join = json.loads(Path(words[-1]).read_text())
    # Other tests add addresses to this machine and take them away: at such a one nothing answers, not even a refusal.
    copy.write_text(json.dumps({**join, "endpoints": [one for one in join["endpoints"] if one.startswith("127.")]}))
    assert servers[-1].ask("DELETE", "groups/alone") == {"killed": []}
    for file, why in ((words[-1], "The join file cannot be read"), (copy, "the group of this join file has ended")):
        environment = {**os.environ, **NODE_VARIABLES}
        late = subprocess.run(
            [*words[:-1], file], env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert (late.returncode, late.stdout) == (1, "")
        assert why in late.stderr


class Cut:
    """Node 1 falls silent, as behind a cut link, while cells of node 0 run."""

    def __init__(self, node, server):
        self.agent = next(iter(children_of(node.pid)))
        self.server = server

    def __enter__(self):
        os.kill(self.agent, signal.SIGSTOP)

    def __exit__(self, *_):
        os.kill(self.agent, signal.SIGCONT)
        until(lambda: self.server.ask("GET", "groups/wide")["nodes"][1]["state"] == "joined")


def test_a_lost_node_is_said_once_in_the_output_of_the_running_cell(servers, nodes, tmp_path):
    go = tmp_path / "go"
    waits = f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.05)"
    with Client.connect(servers[-1].info["url"], TOKEN) as client:
        group, said = client.attach("wide"), io.StringIO()
        show = TextDisplay(said)

        def show_and_go(result):
            show(result)
            if "[warning]" in said.getvalue():
                go.touch()

        with Cut(nodes[1], servers[-1]):
            assert group.run(waits, "node:0", stream=show_and_go).ok
            assert said.getvalue().count(f"[warning] Node 1 ({socket.gethostname()}): The link is lost") == 1
            again = io.StringIO()
            assert group.run("import time; time.sleep(1); print('again')", "node:0", stream=TextDisplay(again)).ok
            assert "again" in again.getvalue()
            assert "[warning]" not in again.getvalue()
        assert group.run("print('healed')", stream=TextDisplay(io.StringIO())).ok
        execution = group.submit("import time; time.sleep(1000)", "node:0")

        def warned():
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                with pytest.raises(TimeoutError):
                    execution.result(1.0)
            return [(warning.category, str(warning.message)) for warning in found]

        try:
            with Cut(nodes[1], servers[-1]):  # without a display it is a warning of Python
                until(lambda: servers[-1].ask("GET", "groups/wide")["nodes"][1]["state"] == "unreachable")
                ((category, message),) = until(warned)
            assert category is RuntimeWarning
            assert "Group 'wide': Node 1" in message
        finally:
            execution.cancel()


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"launcher": "slurmm"}, "There is no launcher 'slurmm'."),
        ({"num_nodes": 2}, "'num_nodes' is 2, but the launcher 'local' starts ranks on one machine only."),
        ({"ranks_per_node": 2}, "'ranks_per_node' is for groups on nodes."),
        (
            {**SHAPE, "num_nodes": 2, "ranks_per_node": None, "num_ranks": 3},
            "3 ranks cannot be divided evenly among 2 nodes.",
        ),
        ({**SHAPE, "num_nodes": 2, "ranks_per_node": 2, "num_ranks": 5}, "but 2 nodes with 2 ranks each have others."),
        ({**SHAPE, "devices": [0]}, "'devices' was given, but the ranks would run on the CPU of nodes."),
        ({"ranks_per_node": [2]}, "'ranks_per_node' is for groups on nodes."),
        (
            {**SHAPE, "num_nodes": 2, "ranks_per_node": [1, 3, 2]},
            "'ranks_per_node' lists 3 nodes, but 'num_nodes' is 2.",
        ),
        ({**SHAPE, "num_ranks": 5}, "but 2 nodes with 1 and 3 ranks have others."),
        ({**SHAPE, "ranks_per_node": [0, 4]}, "The field 'ranks_per_node.0' is 0."),
        ({**SHAPE, "ranks_per_node": []}, "The field 'ranks_per_node' is an empty list."),
        ({**SHAPE, "ranks_per_node": [4, 2.5]}, "The field 'ranks_per_node.1' is 2.5."),
        ({**SHAPE, "ranks_per_node": [65, 1]}, "The field 'ranks_per_node.0' is 65."),
        ({**SHAPE, "ranks_per_node": "4,8"}, "The field 'ranks_per_node' is "),
        ({**SHAPE, "ranks_per_node": [1, 3], "num_nodes": 1}, "lists 2 nodes, but 'num_nodes' is 1."),
        ({**SHAPE, "num_nodes": 2, "ranks_per_node": None, "num_ranks": 1}, "1 rank was requested on 2 nodes."),
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
