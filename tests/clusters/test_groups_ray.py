"""A group of two nodes with one rank and three on a real Ray, as its user sees it: REST, magics, client and the command line."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from faults.server import TOKEN, JupyterServer
from magickernel import kernel_of
from waits import PATIENCE, until

from jupyter_dist.client import Client
from jupyter_dist.system.processes import command_line, processes, read_process

pytestmark = pytest.mark.ray
ALL_REDUCE = "x = torch.ones(1) * (rank + 1)\ndist.all_reduce(x)\nprint(x.item(), os.environ['GROUP_RANK'])"
SAID = [("0", "10.0 0\n"), ("1-3", "10.0 1\n")]


class Place:
    """The servers, one after the other."""

    def __init__(self, home, cluster):
        self.home, self.cluster = home, cluster
        self.variables = {**cluster.env, "RAY_ADDRESS": cluster.address}
        self.servers = [JupyterServer(home, env=self.variables)]

    @property
    def server(self):
        return self.servers[-1]

    def begin(self):
        self.servers.append(JupyterServer(self.home, env=self.variables))

    def group(self, name="wide"):
        return self.server.ask("GET", f"groups/{name}")

    def said(self, code):
        view = self.server.run("wide", code)
        return [(item["ranks"], item["output"].get("text")) for item in view["items"]]

    def command(self, *words):
        environment = {**os.environ, "JUPYTER_RUNTIME_DIR": str(self.home / "runtime"), "JUPYTER_TOKEN": TOKEN}
        line = [sys.executable, "-c", "from jupyter_dist.cli.main import main; main()", *words]
        return subprocess.run(line, env=environment, capture_output=True, text=True, timeout=2 * PATIENCE, check=False)


@pytest.fixture(scope="module")
def place(ray_cluster, tmp_path_factory):
    ray_cluster.mend()
    place = Place(tmp_path_factory.mktemp("s"), ray_cluster)
    yield place
    for group in place.server.ask("GET", "groups")["groups"]:
        place.server.ask("DELETE", f"groups/{group['id']}")
    place.server.end()


def node_agents(place):
    """The watchers of node agents of this module's groups: the join file comes to them in a pipe."""
    found = set()
    for pid in processes():
        with contextlib.suppress(OSError):
            is_node = any(word.startswith(b"/dev/fd/") for word in command_line(pid))
            if is_node and os.fsencode(place.home) in variables_of(pid):
                found.add(pid)
    return {pid for pid in found if (process := read_process(pid)) and process.parent not in found}


def variables_of(pid):
    return Path(f"/proc/{pid}/environ").read_bytes()


@pytest.fixture(scope="module")
def kernel(place):
    variables = {
        "JUPYTER_RUNTIME_DIR": str(place.home / "runtime"),
        "JUPYTER_TOKEN": TOKEN,
        "JUPYTER_DIST_GRACE_SECONDS": "keep",
    }
    with kernel_of(place.home / "wide.ipynb", **variables) as kernel:
        yield kernel


def test_a_magic_starts_a_group_on_ray_and_a_restart_keeps_its_nodes(place, kernel):
    shape = "--name wide --launcher ray --num-nodes 2 --ranks-per-node 1,3"
    wrong = kernel.run(f"%dist_init {shape} --launcher-option cpus_per_node=few --launcher-option colour=red")
    assert "'cpus_per_node' must be a whole number." in wrong.error
    assert "The launcher ray has no option 'colour'." in wrong.error
    wrong = kernel.run(f"%dist_init {shape} --launcher-option cpus_per_node")
    assert "'cpus_per_node' has no value: write NAME=VALUE" in wrong.error
    given = """--launcher-option 'runtime_env={"env_vars": {"GIVEN": "yes"}}' --launcher-option cpus_per_node=2"""
    started = kernel.run(f"%dist_init {shape} {given}")
    assert started.status == "ok", started.error
    cell = kernel.run("%%distributed\nimport os\nprint(os.environ['GIVEN'])")
    assert cell.said == [("0-3", "yes\n")], cell.error
    allocation = place.group()["allocation"]
    assert (allocation["launcher"], allocation["state"], len(allocation["hosts"])) == ("ray", "allocated", 2)
    assert allocation["text"].startswith(f"Job {allocation['job_id']} runs on ")
    assert place.said(f"import os\n{ALL_REDUCE}") == SAID
    agents = node_agents(place)
    place.server.ask("POST", "groups/wide/restart")
    place.server.ask("GET", f"groups/wide?wait={PATIENCE}&not_state=restarting")
    assert place.said(f"import os\n{ALL_REDUCE}") == SAID
    assert node_agents(place) == agents
    assert place.group()["allocation"] == allocation


def test_a_hung_collective_is_interrupted_and_the_process_group_works_again(place):
    execution = place.server.submit("wide", "dist.all_reduce(torch.ones(1))", "0,2")
    until(lambda: place.server.view("wide", execution, wait=0)["execution"]["state"] == "running")
    place.server.ask("POST", "groups/wide/interrupt", {"ranks": "all"})
    assert place.server.view("wide", execution)["execution"]["state"] == "interrupted"
    assert place.said(ALL_REDUCE) == SAID


def test_a_killed_server_is_followed_by_one_that_knows_the_nodes(place):
    before = place.group()["allocation"]
    execution = place.server.submit("wide", "import time\nfor i in range(20): print('line', i); time.sleep(0.1)")
    until(lambda: place.server.view("wide", execution, wait=0)["items"])
    place.server.end(signal.SIGKILL)
    place.begin()
    view = place.server.view("wide", execution)
    text = "".join(item["output"]["text"] for item in view["items"] if item["ranks"] == "0-3")
    assert text == "".join(f"line {i}\n" for i in range(20)), json.dumps(view)[:2000]
    until(lambda: place.group()["allocation"] == before, place.group)


def test_the_ranks_of_a_killed_node_agent_are_named_and_the_others_live(place):
    (watcher,) = (pid for pid in node_agents(place) if b"JUPYTER_DIST_NODE_RANK=1\0" in variables_of(pid))
    (agent,) = (process.pid for process in processes().values() if process.parent == watcher)
    os.kill(agent, signal.SIGKILL)
    until(lambda: [rank["state"] for rank in place.group()["ranks"]].count("dead") == 3, place.group)
    (gone,) = (node for node in place.group()["nodes"] if node["state"] == "gone")
    assert gone["message"] == "its node agent was killed (signal 9)"
    (alive,) = (node["ranks"] for node in place.group()["nodes"] if node["state"] == "joined")
    assert place.server.run("wide", "print('here')", alive)["execution"]["state"] == "ok"
    assert place.group()["allocation"]["state"] == "allocated"


def test_a_shutdown_leaves_nothing(place):
    place.server.ask("DELETE", "groups/wide")
    assert node_agents(place) == set()
    text = next(one["text"] for one in place.server.ask("GET", "launchers")["launchers"] if one["name"] == "ray")
    assert "free: 8/8 CPU, 4/4 GPU." in text


def test_the_command_line_and_the_client_start_groups_on_ray(place):
    listed = place.command("launchers", "ray").stdout
    assert "cpus_per_node: CPUs of each node; a node with fewer ranks than another has fewer." in listed
    shape = ["--launcher", "ray", "--num-nodes", "2", "--ranks-per-node", "1"]
    wrong = place.command("start", "typed", *shape, "--launcher-option", "address=ray://x:1")
    assert "'address' is an address of Ray Client" in wrong.stderr
    with Client.connect(place.server.info["url"], TOKEN) as client:
        options = {"resources": {"tape": 1}}
        group = client.start(
            "waits", launcher="ray", num_nodes=2, ranks_per_node=1, launcher_options=options, wait=False
        )
        text = "It needs 2 nodes with 1 CPU, 1 tape each. Of the 3 nodes of the cluster, 0 can give 1 CPU, 1 tape."
        until(lambda: place.group("waits")["allocation"]["text"].startswith(text), lambda: place.group("waits"))
        assert text in place.command("status", "waits").stdout
        group.shutdown()


def test_a_group_is_saved_before_a_drained_node_ends_and_when_ray_ends_its_nodes(place):
    shape = {"launcher": "ray", "num_nodes": 2, "ranks_per_node": 1, "python": sys.executable}
    wanted = {"name": "kept", "cwd": str(place.home), "save_before_end_seconds": 120, **shape}
    started = place.server.ask("POST", "groups", wanted)
    place.server.ask("GET", f"groups/kept?wait={PATIENCE}&not_state=starting")
    assert place.server.run("kept", "x = rank + 40")["execution"]["state"] == "ok"
    place.cluster.ask("drain", "n1")
    try:
        until(
            lambda: str(place.group("kept")["note"]).startswith("The group was saved as '"), lambda: place.group("kept")
        )
        assert "Ray drains a node of the group" in place.group("kept")["allocation"]["warning"]
        first = place.group("kept")["last_save"]["name"]

        # The process that holds the nodes ends, and Ray ends its actors: node agents keep running until the group is saved.
        assert place.server.run("kept", "x = [rank, 'late']")["execution"]["state"] == "ok"
        (status,) = place.home.rglob(f"{started['id']}/nodes/status.json")
        os.kill(json.loads(status.read_text())["pid"], signal.SIGKILL)
        until(lambda: place.group("kept")["state"] == "dead", lambda: place.group("kept"))
        until(lambda: place.group("kept")["last_save"]["name"] != first, lambda: place.group("kept"))
        last = place.group("kept")["last_save"]
        until(lambda: node_agents(place) == set())
        place.server.ask("POST", "groups", {"name": "again", "num_ranks": 2, "accelerator": "cpu"})
        place.server.ask("GET", f"groups/again?wait={PATIENCE}&not_state=starting")
        restored = place.server.ask("POST", "groups/again/restore", {"name": last["name"]})
        assert place.server.view("again", restored["id"])["execution"]["state"] == "ok"
        view = place.server.run("again", "print(x)")
        assert [item["output"]["text"] for item in view["items"]] == ["[0, 'late']\n", "[1, 'late']\n"]
        place.server.ask("DELETE", "groups/again")
    finally:
        place.cluster.ask("replace", "n1")
