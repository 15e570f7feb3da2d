"""No group is lost while its agent lives: after thousands of cells, huge ones, silence, upgrades and other versions."""

from __future__ import annotations

import ast
import contextlib
import importlib.metadata
import itertools
import os
import re
import shlex
import shutil
import signal
import subprocess
import tarfile
import time
import urllib.error
from pathlib import Path

import pytest
from agent.harness import BOOT, AgentProcess
from leaks import children_of
from waits import PATIENCE, until

from jupyter_dist.client import connect
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.operations import AT_CURSOR, OPERATIONS
from jupyter_dist.protocol.schemas import run_options_of_parts
from jupyter_dist.protocol.wire.earlier import NEWER_FIELDS, NEWER_REQUESTS, UNUSED_FIELDS
from jupyter_dist.protocol.wire.specs import OLDEST_PROTOCOL_VERSION, PROTOCOL_VERSION
from jupyter_dist.server.spawner.directories import groups_directory
from jupyter_dist.system.processes import command_line, processes
from jupyter_dist.version import __version__

from .server import TOKEN, EarlierServer, JupyterServer

ROOT = Path(__file__).parents[2]


@pytest.fixture
def place(tmp_path):
    """Where servers come and go over the same groups."""
    home = Place(tmp_path)
    yield home
    home.close()


class Place:
    def __init__(self, home):
        self.home = home
        self.servers = []
        self.agents = []

    def serve(self, **options):
        self.servers.append(JupyterServer(self.home, **options))
        return self.servers[-1]

    def agent(self, number, boot=None):
        """An agent that no server has started: the next server finds it."""
        parent = groups_directory(str(self.home / "runtime"))
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        process = AgentProcess(parent / f"g-{number:08x}", boot=boot or BOOT, log=self.home / f"{number}.log")
        self.agents.append(process)
        return process

    def close(self):
        for server in self.servers:
            if server.process.poll() is None:
                for group in server.ask("GET", "groups")["groups"]:
                    server.ask("DELETE", f"groups/{group['id']}")
            server.end(signal.SIGKILL)
        for process in self.agents:
            process.__exit__()


def large(num_bytes, code):
    """A cell of that size; with this code in its last line."""
    return "#" + "x" * (num_bytes - len(code) - 2) + "\n" + code


def state_of(server, name="g"):
    return server.ask("GET", f"groups/{name}")["state"]


def test_a_group_with_thousands_of_cells_and_huge_ones_is_adopted(place):
    process = place.agent(1)
    client = process.client()
    client.start(1, name="g", group_id="g-00000001")
    ids = [client.submit(f"x = {n}  # {'c' * 3000}", [0]) for n in range(2000)]
    sizes = [1_000_000, 1_200_000, 5_000_000, 16_000_000]
    huge = [client.submit(large(size, f"total = globals().get('total', 0) + {size}"), [0]) for size in sizes]
    client.ended(huge[-1], timeout=300)
    client.close()

    began = time.monotonic()
    server = place.serve()
    group = server.ask("GET", "groups/g")
    print(f"listening and adopted {time.monotonic() - began:.2f} s after the server was started")
    assert (group["id"], group["state"], group["protocol"]) == ("g-00000001", "ready", PROTOCOL_VERSION)
    listed = server.ask("GET", "groups/g/executions")["executions"]
    assert [model["id"] for model in listed] == (ids + huge)[-2000:]
    assert listed[0]["line"].startswith(f"x = {len(sizes)}  # ccc")
    view = server.view("g", huge[-1])
    assert view["execution"]["code"] == large(sizes[-1], f"total = globals().get('total', 0) + {sizes[-1]}")
    shown = server.run("g", "total")["items"][0]["output"]["data"]["text/plain"]
    assert shown == str(sum(sizes))

    # The server's own connection is cut: it takes the group over again in the same way. A cell that is sent as soon as
    # the group is ready has all of its output, also where the server does not yet follow the agent's records.
    for _ in range(5):
        cutting = process.client()
        with contextlib.suppress(EOFError, ConnectionError):  # the server may be back before the answer is read
            cutting.request("hello", protocol=PROTOCOL_VERSION, server="another")
            cutting.wait_closed()
        until(lambda: state_of(server) == "ready")
        view = server.run("g", "print('said'); x")
        assert [item["output"].get("text") for item in view["items"]] == ["said\n", None]
        assert view["items"][1]["output"]["data"]["text/plain"] == "1999"

    # A rank can remove the file that says what the folder is.
    server.end(signal.SIGKILL)
    (process.directory / "group.json").unlink()
    server = place.serve()
    assert server.run("g", "x")["items"][0]["output"]["data"]["text/plain"] == "1999"


def test_cells_over_a_megabyte_and_requests_asked_again(place):
    server = place.serve()
    server.start(2, name="g")
    for size in (1_200_000, 15_900_000):
        ended = server.run("g", large(size, "times = globals().get('times', 0) + 1"))
        assert ended["execution"]["state"] == "ok"
    code, error = server.refused("POST", "groups/g/executions", {"code": "#" * ((16 << 20) + 1)})
    assert (code, error["code"]) == (413, "too_large")
    assert "16777216" in error["message"], error

    asked = [server.ask("POST", "groups/g/executions", {"code": "times += 10"}, key="once") for _ in range(3)]
    assert len({execution["id"] for execution in asked}) == 1
    refused = server.refused("POST", "groups/g/executions", {"code": "times += 100"}, key="once")
    assert (refused[0], refused[1]["code"]) == (409, "key_reused")
    assert server.run("g", "times", "0")["items"][0]["output"]["data"]["text/plain"] == "12"
    groups = [server.ask("POST", "groups", {"num_ranks": 1}, key="second")["id"] for _ in range(2)]
    assert groups[0] == groups[1]
    server.ask("DELETE", f"groups/{groups[0]}")

    # Changes still reach the server: a death is reported, and the request was carried out once.
    os.kill(server.ask("GET", "groups/g")["ranks"][1]["pid"], signal.SIGKILL)
    until(lambda: state_of(server) == "degraded")
    restarted = [server.ask("POST", "groups/g/restart", key="again") for _ in range(2)]
    assert {group["state"] for group in restarted} <= {"restarting", "ready"}
    until(lambda: state_of(server) == "ready")
    assert server.ask("POST", "groups/g/restart", key="again")["generation"] == 1


def test_an_agent_that_is_stopped_is_shown_as_such_and_is_never_taken_for_dead(place):
    server = place.serve()
    group = server.start(2, name="g")
    server.run("g", "kept = rank")
    agent = server.agent_pid(group["id"])

    os.kill(agent, signal.SIGSTOP)
    until(lambda: state_of(server) == "unresponsive")
    shown = server.ask("GET", "groups/g")
    assert {rank["state"] for rank in shown["ranks"]} == {"unresponsive"}
    assert shown["error"]["code"] == "agent_unreachable"
    assert f"process {agent}) is stopped" in shown["error"]["message"]
    code, error = server.refused("POST", "groups/g/executions", {"code": "kept = 'a cell that was refused'"})
    assert (code, error["code"]) == (503, "agent_unreachable")
    os.kill(agent, signal.SIGCONT)
    until(lambda: state_of(server) == "ready")
    assert server.run("g", "kept", "1")["items"][0]["output"]["data"]["text/plain"] == "1"

    # A server that starts while the agent is stopped shows it, and uses it when it continues.
    os.kill(agent, signal.SIGSTOP)
    server.end(signal.SIGKILL)
    server = place.serve()
    assert state_of(server) == "unresponsive"
    assert "kept = rank" in str(server.ask("GET", "groups/g/ranks/0/log")["records"])
    os.kill(agent, signal.SIGCONT)
    until(lambda: state_of(server) == "ready")
    assert server.run("g", "kept", "1")["items"][0]["output"]["data"]["text/plain"] == "1"

    # Shutting it down ends its processes, whether or not it answers.
    processes = [agent, *children_of(agent)]
    folder = server.group_folder(group["id"])
    os.kill(agent, signal.SIGSTOP)
    until(lambda: state_of(server) == "unresponsive")
    server.ask("DELETE", "groups/g")
    assert not [pid for pid in processes if Path(f"/proc/{pid}/exe").exists()]
    assert not folder.exists()


def other_version(place, protocol):
    """A copy of the package as a version with another protocol would be; return the program of its agents."""
    package = place.home / f"protocol-{protocol}" / "jupyter_dist"
    shutil.copytree(ROOT / "jupyter_dist", package, ignore=shutil.ignore_patterns("labextension", "__pycache__"))
    specs = package / "protocol" / "wire" / "specs.py"
    ours, theirs = f"\nPROTOCOL_VERSION = {PROTOCOL_VERSION}\n", f"\nPROTOCOL_VERSION = {protocol}\n"
    assert specs.read_text().count(ours) == 1
    specs.write_text(specs.read_text().replace(ours, theirs))
    (package / "_version.py").write_text(f'__version__ = "{protocol}.9"\n')
    return package / "agent" / "boot.py"


def test_groups_of_an_older_and_a_newer_protocol_are_named_keep_all_and_can_be_shut_down(place):
    protocols = (OLDEST_PROTOCOL_VERSION - 1, PROTOCOL_VERSION + 1)
    agents = [place.agent(protocol, other_version(place, protocol)) for protocol in protocols]
    for protocol, agent in zip(protocols, agents, strict=True):
        client = agent.client()
        client.start(1, protocol=protocol, name=f"g{protocol}", group_id=f"g-{protocol:08x}")
        client.run("kept = 7\nprint('before')", [0], timeout=PATIENCE)
        client.close()

    server = place.serve()
    for protocol in protocols:
        group = server.ask("GET", f"groups/g{protocol}")
        assert (group["state"], group["protocol"]) == ("incompatible", protocol)
        assert group["error"]["code"] == "incompatible"
        assert f"jupyter_dist {protocol}.9 (protocol {protocol})" in group["error"]["message"]
        code, error = server.refused("POST", f"groups/g{protocol}/executions", {"code": "kept = 8"})
        assert (code, error["code"]) == (409, "incompatible")
        assert server.refused("POST", "groups", {"name": f"g{protocol}"})[1]["code"] == "name_taken"

    for protocol, agent in zip(protocols, agents, strict=True):
        client = agent.client()  # a server of its version comes back
        client.protocol = protocol
        client.hello()
        client.request("follow", since=client.group["seq"])
        again = client.run("print(kept)", [0], timeout=PATIENCE)
        assert client.text(0, again["id"]) == "7\n"
        client.close()
        server.ask("DELETE", f"groups/g{protocol}")
        assert agent.process.wait(PATIENCE) == 0
    assert server.ask("GET", "groups") == {"groups": []}


@pytest.fixture(scope="module")
def earlier(tmp_path_factory):
    """The package as 0.2.0 had it, but for the server, the page and the clients."""
    folder = tmp_path_factory.mktemp("earlier")
    with tarfile.open(Path(__file__).parent / "earlier" / "jupyter_dist-0.2.0.tar.xz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.4 has it
        archive.extractall(folder)
    return folder / "jupyter_dist"


@pytest.mark.part("saves", "resizing", "parking", "undo")
def test_a_group_of_the_first_protocol_goes_on_and_names_what_it_cannot_do(place, earlier):
    client = place.agent(1, earlier / "agent" / "boot.py").client()
    client.start(2, protocol=1, name="g", group_id="g-00000001")
    client.request("execute", b"kept = rank + 7", execution={"execution_id": "e-earlier", "ranks": [0, 1]})
    client.close()

    server = place.serve()
    group = server.ask("GET", "groups/g")
    assert (group["state"], group["protocol"]) == ("ready", 1)
    assert server.ask("GET", "groups/g/undoable") == {"cells": []}  # the page asks after each cell
    for _ in range(2):  # before and after a rank has been replaced
        server.run("g", "total = torch.tensor(rank)\ndist.all_reduce(total)")
        view = server.run("g", "kept, total.item()", "0")
        assert view["items"][0]["output"]["data"]["text/plain"] == "(7, 1)"
        for name, body in (
            ("saves", {"name": "x"}),
            ("resize", {"num_ranks": 1}),
            ("park", {}),
            ("undo", {}),
            ("executions", {"code": "1", "keep_undo": True}),
        ):
            code, error = server.refused("POST", f"groups/g/{name}", body)
            assert (code, error["code"]) == (409, "incompatible"), name
            assert "jupyter_dist 0.2.0 has started it" in error["message"]
        server.ask("POST", "groups/g/ranks/1/kill")
        assert server.refused("POST", "groups/g/replace", {"state": "copy"})[1]["code"] == "incompatible"
        server.ask("POST", "groups/g/replace")
        until(lambda: state_of(server) == "ready")
    server.end(signal.SIGKILL)
    server = place.serve()
    assert server.run("g", "kept", "0")["items"][0]["output"]["data"]["text/plain"] == "7"


@pytest.mark.part("checks")
def test_a_group_that_has_no_checks_yet_says_which_version_has_started_it(place):
    """As 0.3.0, whose agents speak today's protocol."""
    package = other_version(place, PROTOCOL_VERSION).parents[1]
    shutil.rmtree(package / "parts" / "checks")
    client = place.agent(1, package / "agent" / "boot.py").client()
    client.start(1, name="g", group_id="g-00000001")
    client.close()
    server = place.serve()
    execution = server.run("g", "kept = 7")["execution"]["id"]
    for method, address, body in (
        ("GET", f"executions/{execution}/checks", None),
        ("GET", "check?name=model", None),
        ("POST", "checks", {"on": False}),
    ):
        code, error = server.refused(method, f"groups/g/{address}", body)
        assert (code, error["code"]) == (409, "incompatible"), address
        assert f"jupyter_dist {PROTOCOL_VERSION}.9 has started it" in error["message"]
    assert server.run("g", "kept", "0")["items"][0]["output"]["data"]["text/plain"] == "7"


def test_all_that_came_after_the_first_protocol_is_known_to_be_newer(earlier):
    def requests_of(package):
        return set(
            re.findall(r'^ +"(\w+)": (?:once\()?self\._', (package / "agent" / "requests.py").read_text(), re.MULTILINE)
        )

    def fields_of(package, name):
        tree = ast.parse((package / "protocol" / "wire" / "specs.py").read_text())
        (found,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
        return {node.target.id for node in found.body if isinstance(node, ast.AnnAssign)}

    ours = ROOT / "jupyter_dist"
    files = (ours / "parts").glob("*/agent*/**/*.py"), (ours / "parts").glob("*/agent.py")
    of_parts = {
        name
        for path in itertools.chain(*files)
        for requests in re.findall(r"def requests\(self\)[^}]+\}", path.read_text())
        for name in re.findall(r'"(\w+)": self\._', requests)
    }
    assert (requests_of(ours) | of_parts) - requests_of(earlier) == NEWER_REQUESTS.keys()
    newer = fields_of(ours, "ExecutionSpec") - fields_of(earlier, "ExecutionSpec")
    assert newer - {"options"} | run_options_of_parts().keys() == NEWER_FIELDS.keys() | UNUSED_FIELDS


@pytest.mark.part("saves", "parking")
def test_a_client_of_this_version_uses_a_server_of_0_2_and_names_both_for_what_that_does_not_know(tmp_path):
    """As after an upgrade: the server has not been started again."""
    server = EarlierServer(tmp_path)
    try:
        with connect(server.info["url"], TOKEN) as client:
            group = client.start(num_ranks=1, name="g")
            assert "said 0" in str(group.run("print('said', rank)"))
            both = f"The server runs jupyter_dist 0.2.0, and this is {__version__}: if it does not know the request, restart it"
            for unknown in (
                lambda: group.save("x"),
                group.park,
                client.presets,
                lambda: client.start(num_ranks=1, save_every_seconds=60),
            ):
                with pytest.raises(JupyterDistError) as caught:
                    unknown()
                assert both in caught.value.hint, caught.value
            with pytest.raises(JupyterDistError) as caught:
                client.attach("none")
            assert "0.2.0" not in caught.value.hint
            group.shutdown()
    finally:
        server.end()


@pytest.fixture
def installed(place):
    """A server of a package that `upgrade` overwrites: the server, and a function."""
    package = place.home / "installed" / "jupyter_dist"
    shutil.copytree(ROOT / "jupyter_dist", package, ignore=shutil.ignore_patterns("labextension", "__pycache__"))
    version = importlib.metadata.version("jupyter_dist")  # so nodes are started with `-m`, as of an installed package
    (package / "_version.py").write_text(f"__version__ = {version!r}\n")

    def upgrade():
        for room in ("agent", "rank", "objects", "transport", "protocol", "journal", "system"):
            for path in (package / room).rglob("*.py"):
                path.write_text("raise SystemExit('this is the new version')\n")

    return place.serve(env={"PYTHONPATH": f"{package.parent}:{place.home}"}), upgrade


def test_a_package_that_is_upgraded_under_the_nodes_of_a_group_changes_nothing_on_them(installed):
    server, upgrade = installed
    server.ask("POST", "groups", {"name": "g", "launcher": "processes", "num_nodes": 2, "ranks_per_node": 1})
    until(lambda: state_of(server) == "ready")
    upgrade()
    joined = os.fsencode(server.ask("GET", "groups/g")["id"])
    below = [pid for pid in processes() if joined in b"".join(command_line(pid)) and b"node" in command_line(pid)]
    zygotes = {zygote for pid in below for zygote, words in children_of(pid).items() if "zygote" in words}
    assert len(zygotes) >= 2
    for zygote in zygotes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(zygote, signal.SIGKILL)
    until(lambda: state_of(server) == "dead")
    server.ask("POST", "groups/g/restart")  # with new zygotes
    until(lambda: state_of(server) == "ready", lambda: server.ask("GET", "groups/g"))
    code = "from jupyter_dist.objects.pickling import dumps\ntotal = torch.tensor(rank)\ndist.all_reduce(total)\ntotal"
    ended = server.run("g", code)
    assert ended["execution"]["state"] == "ok", ended


def test_a_package_that_is_upgraded_under_a_group_changes_nothing_in_it(installed):
    server, upgrade = installed
    group = server.start(1, name="g")
    upgrade()

    zygotes = [pid for pid, command in children_of(server.agent_pid(group["id"])).items() if "zygote" in command]
    assert zygotes
    os.kill(zygotes[0], signal.SIGKILL)
    until(lambda: state_of(server) == "dead")
    server.ask("POST", "groups/g/restart")  # with a new zygote
    until(lambda: state_of(server) == "ready")
    ended = server.run("g", "from jupyter_dist.objects.pickling import dumps\nfrom jupyter_dist.apps import registry")
    assert ended["execution"]["state"] == "ok", ended
    server.ask("POST", "groups", {"name": "later", "num_ranks": 1})
    until(lambda: state_of(server, "later") == "ready")


def test_a_flood_of_a_child_process_hides_no_state(place):
    server = place.serve()
    group = server.start(2, name="g")
    server.run("g", "import subprocess\nflood = subprocess.Popen(['yes'])", "0")
    below = children_of(server.agent_pid(group["id"]))
    (flood,) = [pid for pid, command in below.items() if command == "yes"]

    cell = server.ask("POST", "groups/g/executions", {"code": "import time\ntime.sleep(1000)"})["id"]
    until(lambda: server.ask("GET", f"groups/g/executions/{cell}")["execution"]["state"] == "running")
    server.ask("POST", "groups/g/interrupt", {"ranks": "all"})
    assert server.view("g", cell)["execution"]["state"] == "interrupted"

    os.kill(group["ranks"][1]["pid"], signal.SIGKILL)
    until(lambda: state_of(server) == "degraded")
    server.ask("POST", "groups/g/replace")
    until(lambda: state_of(server) == "ready")
    assert Path(f"/proc/{flood}").exists()

    # A restart ends what ranks have started.
    server.ask("POST", "groups/g/restart")
    until(lambda: state_of(server) == "ready")
    assert not Path(f"/proc/{flood}").exists()
    ended = server.run("g", "'flood' in globals()", "0")
    assert ended["execution"]["state"] == "ok", ended
    assert ended["items"][0]["output"]["data"]["text/plain"] == "False", ended


def test_a_node_that_is_started_by_hand_after_an_upgrade_runs_the_code_of_its_group(place):
    """As by a script of the user that has waited in a queue."""
    server = place.serve()
    server.ask("POST", "groups", {"name": "g", "launcher": "external", "num_nodes": 1, "ranks_per_node": 1})
    command = shlex.split(server.ask("GET", "groups/g")["join"])
    later = place.home / "later" / "jupyter_dist"
    shutil.copytree(ROOT / "jupyter_dist", later, ignore=shutil.ignore_patterns("labextension", "__pycache__"))
    (later / "_version.py").write_text("__version__ = '99.0.0'\n")
    words = [command[0], "-m", "jupyter_dist.agent.node", "--node-rank", "0", command[-1]]
    variables = {**os.environ, "PYTHONPATH": str(later.parent)}
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=variables, cwd=place.home) as node:
        until(lambda: state_of(server) == "ready", lambda: server.ask("GET", "groups/g"))
        view = server.run("g", "import jupyter_dist\nprint(jupyter_dist.__version__)")
        assert view["items"][0]["output"]["text"] == f"{__version__}\n"
        server.ask("DELETE", "groups/g")
        said = f"the group runs jupyter_dist {__version__}: its code is used, and not version 99.0.0."
        assert said in node.communicate(timeout=PATIENCE)[1]


LAUNCHERS = ("kubernetes/launcher", "queues/gridengine", "queues/lsf", "queues/pbs", "ray/launcher", "slurm/launcher")


@pytest.mark.part("saves", "clusters")
def test_a_package_that_is_uninstalled_under_a_server_changes_nothing_in_it(place):
    """It has read all that it needs, some seconds after its start: no request needs a file of the package."""
    package = place.home / "installed" / "jupyter_dist"
    shutil.copytree(ROOT / "jupyter_dist", package, ignore=shutil.ignore_patterns("labextension", "__pycache__"))
    server = place.serve(env={"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": ""})
    compiled = [next(iter((package / "parts" / "clusters").glob(f"{name}.py"))) for name in LAUNCHERS]
    until(lambda: all([*one.parent.glob(f"__pycache__/{one.stem}.*.pyc")] for one in compiled))
    shutil.rmtree(package)
    server.start(1, name="g")
    ended = server.run("g", "print('said')\nkept = 7")
    assert ended["execution"]["state"] == "ok", ended
    server.ask("POST", "groups/g/saves", {"name": "kept"})
    given = {"{group}": "g", "{rank}": "0", "{execution_id}": ended["execution"]["id"], "{name}": "x"}
    asked = 0
    for operation in OPERATIONS:
        path = re.sub(r"{\w+}", lambda found: given.get(found[0], "x"), operation.path)
        if operation.verb == "get" and path != "channel":
            asked += 1
            with contextlib.suppress(urllib.error.HTTPError):  # what this group does not have
                server.ask("GET", path)
    assert asked > 20
    for path in AT_CURSOR.values():
        server.ask("POST", f"groups/g/ranks/0/{path}", {"code": "kep", "cursor_pos": 3})
    listed = {launcher["name"] for launcher in server.ask("GET", "launchers")["launchers"]}
    assert {"external", "kubernetes", "local", "lsf", "pbs", "processes", "ray", "sge", "slurm"} <= listed
    server.ask("POST", "groups", {"name": "wide", "launcher": "processes", "num_nodes": 2, "ranks_per_node": 1})
    until(lambda: state_of(server, "wide") == "ready", lambda: server.ask("GET", "groups/wide"))
    log = server.log()
    assert "Error" not in log.replace("HTTPError", ""), log
