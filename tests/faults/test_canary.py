"""A value of `env` is seen by the ranks of its group alone: no file has it, no other process, no log and no answer.

What launchers of engines write is looked at in their contract (jupyter_dist/testing/launchers.py).
"""

import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import nbformat
import pytest
from waits import PATIENCE, PATIENCE_WITH_A_START, until

from jupyter_dist.protocol.operations import BY_NAME
from jupyter_dist.protocol.secrets import Secrets
from jupyter_dist.protocol.wire.specs import GroupSpec, closed
from jupyter_dist.server.groups.resolve import Again, WantedGroup

from .server import LIGHT, JupyterServer, preloading

CANARY, NAME = "canary-5d1c0f7e", "OF_THE_CANARY"
SEES = f"import os; assert os.environ['{NAME}'].startswith('canary')"
TRACED = f"%%profile\n{SEES}\nkept = dist.get_rank()"
DIST = "from jupyter_dist.cli.main import main; main()"
NOTEBOOK = ("%load_ext jupyter_dist\n%dist_init -n 1 --name mine", f'%%rank 0\n{SEES}\nos.environ["NO_SUCH_NAME"]')
FORMS = (str, repr, json.dumps, pickle.dumps, lambda one: f"{one!r} {one}")


def traces_of(canary, *folders):
    """The files and processes in which a value stands; a process of a rank has it in its environment."""
    found = []
    for path in (each for folder in folders for each in Path(folder).rglob("*")):
        with contextlib.suppress(OSError):
            if path.is_file() and canary.encode() in path.read_bytes():
                found.append(str(path))
    for process in Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "environ"):
            with contextlib.suppress(OSError):
                if canary.encode() in (process / name).read_bytes():
                    found.append(f"{name} of {(process / 'cmdline').read_bytes().replace(bytes(1), b' ')}")
    return found


def test_secrets_have_no_text_and_leave_by_their_doors_alone():
    secrets = Secrets({NAME: CANARY})
    fields = {"env": {NAME: CANARY}, "environ": f"{NAME}={CANARY}\0"}
    wanted = WantedGroup(name="g", **fields)
    spec = GroupSpec("g-1", "g", 1, "cpu", "gloo", "/", env=secrets, request=wanted.fields())
    for one in (secrets, wanted, spec, [secrets], {"env": secrets}):
        for form in (*FORMS, *([asdict] if one in (wanted, spec) else [])):
            with contextlib.suppress(TypeError):
                assert CANARY not in str(form(one)), (form, one)
    for form in (json.dumps, pickle.dumps):
        with pytest.raises(TypeError):
            form(secrets)
    with pytest.raises(TypeError):
        asdict(wanted)
    assert CANARY not in json.dumps(spec.to_store())
    assert (secrets.for_exec(), GroupSpec.from_dict(json.loads(json.dumps(spec.to_dict())))) == ({NAME: CANARY}, spec)
    stored = GroupSpec.from_dict(spec.to_store())
    assert (stored.env.unknown, stored.request["environ"].unknown) == ([NAME], [NAME])


@pytest.fixture
def begin(tmp_path):
    """Starts a server; the groups of the last one end with it."""
    servers = []

    def begin():
        servers.append(JupyterServer(tmp_path))
        return servers[-1]

    yield begin
    for group in servers[-1].ask("GET", "groups")["groups"]:
        servers[-1].ask("DELETE", f"groups/{group['id']}")
    servers[-1].end()


def test_a_group_that_an_earlier_version_started_is_started_again_with_its_values():
    """It keeps them in its group.json, credentials of its program included."""
    kept = {"env": {NAME: CANARY}, "environ": f"A=1\0JUPYTERHUB_API_TOKEN={CANARY}\0", "num_ranks": 2}
    request = closed({"env": [NAME], "request": kept})["request"]
    assert CANARY not in str(request)
    wanted = Again().completed({**request, "name": "g"})
    assert (wanted.env.for_exec(), wanted.environ.for_exec(), wanted.num_ranks) == ({NAME: CANARY}, {"A": "1"}, 2)


@pytest.mark.part("saves", "script", "profile")
def test_a_value_of_env_is_in_no_file_and_in_no_other_process(tmp_path, begin):
    """Through a save, a script, a trace, a dead rank, a dead agent and a dead server; and then it is asked for."""
    server = begin()
    folders = [tmp_path, "/dev/shm"]
    for fields in ({"name": "here"}, {"name": "nodes", "launcher": "processes", "num_nodes": 1}):
        server.start(**{"num_ranks": 1, **fields}, env={NAME: CANARY})
    for name in ("here", "nodes"):
        folders.append(server.group_folder(server.ask("GET", f"groups/{name}")["id"]))
        assert server.run(name, TRACED)["execution"]["state"] == "ok"
        saved = server.ask("POST", f"groups/{name}/saves", {"name": name, "folder": str(tmp_path / "saves")})
        server.view(name, saved["id"])
        if "script" in BY_NAME:
            assert CANARY not in json.dumps(server.ask("POST", f"groups/{name}/script", {}))
        assert CANARY not in json.dumps(server.ask("GET", f"groups/{name}"))
    server.run("here", "os.kill(os.getpid(), 11)")
    found = traces_of(CANARY, *folders)
    # Node agents get it by exec, and their ranks inherit it.
    assert [one for one in found if not one.startswith("environ of ")] == []
    assert all("jupyter_dist" in one for one in found), found

    again_with(server, "here")
    os.kill(server.agent_pid(server.ask("GET", "groups/here")["id"]), signal.SIGKILL)
    server.process.kill()
    server.end()
    server = begin()
    until(lambda: server.ask("GET", "groups/here")["state"] == "lost")
    status, answer = server.refused("POST", "groups/here/start_again")
    assert (status, answer["code"]) == (409, "group_not_ready")
    assert f"without the values of {NAME}: they are not stored on disk." in answer["message"]
    server.ask("POST", "groups/here/start_again", {"env": {NAME: "canary-2"}})
    sees(server, "here")
    assert traces_of("canary-2", *folders) == []
    assert CANARY not in server.log()


def again_with(server, name):
    """Kill the agent; the same server has the request in memory."""
    os.kill(server.agent_pid(server.ask("GET", f"groups/{name}")["id"]), signal.SIGKILL)
    until(lambda: server.ask("GET", f"groups/{name}")["state"] in ("dead", "lost"))
    server.ask("POST", f"groups/{name}/start_again")
    sees(server, name)


def sees(server, name):
    group = server.ask("GET", f"groups/{name}?wait={PATIENCE}&not_state=starting")
    assert group["state"] == "ready", group
    assert server.run(name, SEES)["execution"]["state"] == "ok"


@pytest.fixture
def short():
    """A folder whose path leaves room for a socket's, however long the tests' own is."""
    with tempfile.TemporaryDirectory(prefix="jd", dir="/tmp") as folder:
        yield Path(folder)


@pytest.mark.part("script")
def test_the_environment_of_a_program_is_in_no_file_and_its_credentials_in_no_process_of_a_group(short):
    """With a private server, a start brings the whole environment of the program."""
    hub = "hub-canary-77"
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST")},
        **preloading(LIGHT),
        **{"JUPYTER_RUNTIME_DIR": str(short / "rt"), "JUPYTER_DATA_DIR": str(short / "data")},
        **{"PYTHONPATH": str(Path(__file__).parents[2]), NAME: CANARY, "JUPYTERHUB_API_TOKEN": hub},
    }

    def dist(*arguments, command=("-c", DIST)):
        done = subprocess.run(
            [sys.executable, *command, *arguments],
            env=env, cwd=short, capture_output=True, text=True, timeout=PATIENCE_WITH_A_START, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (done.stdout, done.stderr)
        return done.stdout

    dist("start", "-n", "1", "mine")
    try:
        dist("exec", "-g", "mine", SEES)
        cells = [nbformat.v4.new_code_cell(code) for code in NOTEBOOK]
        nbformat.write(nbformat.v4.new_notebook(cells=cells), short / "seen.ipynb")
        dist("execute", "--inplace", "--allow-errors", "seen.ipynb", command=("-m", "jupyter"))
        assert "KeyError" in (short / "seen.ipynb").read_text()  # of a rank that has the canary
        dist("export", "mine", "--output", "seen.py")
        (group_json,) = short.rglob("g-*/group.json")
        assert json.loads(group_json.read_text())["spec"]["request"]["environ"].count(NAME) == 1
        assert [one for one in traces_of(CANARY, short, "/dev/shm") if not one.startswith("environ of ")] == []
        assert traces_of(hub, short, "/dev/shm") == []
        os.kill(json.loads(group_json.read_text())["agent_pid"], signal.SIGKILL)
        dist("start-again", "mine")  # by a server that does not know it: the program gives its environment again
        dist("exec", "-g", "mine", SEES)
    finally:
        dist("stop", "mine")
