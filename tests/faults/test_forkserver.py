"""Groups that are forked from a process that imported torch once: like those that import it themselves, and no less safe."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from agent.harness import AgentClient
from leaks import nothing_left
from waits import until, until_async

from jupyter_dist.agent.processes.starting.zygote import FORK_SECONDS
from jupyter_dist.server.spawner.forkservers import FOLDER_VARIABLE
from jupyter_dist.server.spawner.local import LocalSpawner
from jupyter_dist.system.inherited import without_threads
from jupyter_dist.system.processes import command_line, descendants, processes, read_process

LOOK = """
import json, multiprocessing, os, random, sys
import numpy as np
mask = os.umask(0); os.umask(mask)
print(json.dumps({
    "environ": dict(os.environ), "argv": sys.argv, "path": sys.path, "umask": mask, "numpy": np.random.random(),
    "random": random.random(), "authkey": multiprocessing.current_process().authkey.hex(),
    "flags": str(sys.flags), "session": os.getsid(0) == os.getpid(),
}))
"""


@pytest.fixture
def _no_leaks():
    """Takes the place of the one for all tests here: a forkserver may outlive a test, but not this file."""


@pytest.fixture(scope="module", autouse=True)
def place(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("fork"))
    with nothing_left():
        yield place
        place.end()


@pytest.fixture(autouse=True)
def _groups_end(place):
    yield
    place.end_groups()


class Place:
    """Servers' spawners, their groups and forkservers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.groups: list[AgentClient] = []
        self.spawners: list[LocalSpawner] = []

    def spawner(self, linger=600.0, preload=(), name="jupyter_dist") -> LocalSpawner:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(FOLDER_VARIABLE, str(self.folder / "fork"))
            spawner = LocalSpawner(self.folder / name, list(preload))
        spawner.share_imports(linger, keep=False)
        self.spawners.append(spawner)
        return spawner

    def launch(self, spawner, **env) -> AgentClient:
        return self.connect(asyncio.run(spawner.launch(sys.executable, env)))

    def connect(self, directory) -> AgentClient:
        client = AgentClient(directory.socket_path, SimpleNamespace(directory=directory.path, log=directory.log_path))
        client.pid = json.loads((directory.path / "group.json").read_text())["agent_pid"]
        self.groups.append(client)
        directory.release()
        return client

    def forkservers(self) -> list[int]:
        return [pid for pid in processes() if command_line(pid)[-2:-1] == [b"forkserver"] and self._is_ours(pid)]

    def _is_ours(self, pid: int) -> bool:
        return os.fsencode(self.folder) in command_line(pid)[-1]

    def end_groups(self) -> None:
        for client in self.groups:
            os.kill(client.pid, signal.SIGTERM)
            client.close()
            until(lambda client=client: not client.agent.directory.exists())
        self.groups.clear()

    def end(self) -> None:
        for pid in self.forkservers():
            os.kill(pid, signal.SIGKILL)
        until(lambda: not any(map(lives, self.forkservers())))
        for spawner in self.spawners:
            spawner.detach()


def lives(pid: int) -> bool:
    found = read_process(pid)
    return found is not None and not found.has_ended


def zygote_of(client: AgentClient) -> int:
    return until(lambda: [pid for pid, each in processes().items() if each.parent == client.pid])[0]


def kilobytes(pids: list[int]) -> int:
    """Their memory; what n processes share counts as an n-th for each."""
    texts = [Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in pids]
    return sum(int(line.split()[1]) for text in texts for line in text.splitlines() if line.startswith("Pss:"))


def seen_of(pid: int) -> dict:
    """What /proc shows of a process, without what must differ."""
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    names = ("Umask", "Threads", "SigBlk", "SigCgt", "NoNewPrivs", "Groups", "CapEff", "Cpus_allowed")
    kinds = [os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()]
    return {
        **{name: status[name] for name in names},
        # posix_spawn leaves the two signals that glibc keeps for itself ignored.
        "SigIgn": int(status["SigIgn"], 16) & ~(0b11 << 31),
        "limits": Path(f"/proc/{pid}/limits").read_text(),
        "oom": Path(f"/proc/{pid}/oom_score_adj").read_text(),
        "cwd": os.readlink(f"/proc/{pid}/cwd"),
        "fds": sorted(kind.split(":")[0].rpartition("/")[2] for kind in kinds),
        "command": [os.path.basename(part) for part in command_line(pid) if part][:3],
    }


def looked(client: AgentClient) -> dict:
    client.start(1)
    assert client.run(LOOK, [0])["state"] == "ok"
    return json.loads(client.text(0))


def family_of(client: AgentClient) -> dict[str, int]:
    return {"agent": client.pid, "keeper": read_process(client.pid).parent, "zygote": zygote_of(client)}


def test_servers_share_one_and_their_groups_are_as_if_they_had_imported_torch_themselves(place):
    one, other = place.spawner(name="one"), place.spawner(name="other")

    async def at_once():
        return await asyncio.gather(one.launch(sys.executable, {"PWD": "/one"}), other.launch(sys.executable, {}))

    first, second = map(place.connect, asyncio.run(at_once()))
    assert len(place.forkservers()) == 1
    spawned = place.launch(place.spawner(linger=0.0), PWD="/three")
    seen = {client: looked(client) for client in (first, second, spawned)}
    families = {client: family_of(client) for client in seen}
    for role in ("keeper", "agent", "zygote"):
        for forked in (first, second):
            pids = families[forked][role], families[spawned][role]
            # Each may have a thread or a descriptor for a moment.
            until(
                lambda pids=pids: seen_of(pids[0]) == seen_of(pids[1]), lambda pids=pids: [seen_of(pid) for pid in pids]
            )
    for family in families.values():
        assert os.getsid(family["agent"]) == os.getsid(family["zygote"]) == family["keeper"]
    taken = [kilobytes(descendants(client.pid)) for client in (first, second, spawned)]
    assert max(taken[:2]) < 0.75 * taken[2], taken
    for name in ("umask", "flags", "session", "path", "argv"):
        assert seen[first][name] == seen[second][name] == seen[spawned][name], name
    for name in ("numpy", "random", "authkey"):
        assert len({look[name] for look in seen.values()}) == 3, name
    variables = {client: dict(look["environ"]) for client, look in seen.items()}
    places = [environ.pop("PWD", None) for environ in variables.values()]
    assert places == ["/one", os.environ.get("PWD"), "/three"]
    for environ in variables.values():
        environ.pop("MASTER_PORT")
    assert variables[first] == variables[second] == variables[spawned]


def test_one_that_is_stopped_or_killed_costs_no_group_anything(place, caplog):
    spawner = place.spawner()
    before = place.launch(spawner)
    before.start(2)
    (pid,) = place.forkservers()
    os.kill(pid, signal.SIGSTOP)
    place.launch(spawner)  # without it
    assert "started without a forkserver" in caplog.text
    os.kill(pid, signal.SIGCONT)  # nobody finds it any more, so it ends
    until(lambda: not lives(pid))
    caplog.clear()
    place.launch(spawner)
    (pid,) = place.forkservers()
    assert not caplog.text
    os.kill(pid, signal.SIGSTOP)

    async def killed_while_it_is_asked():
        asked = spawner._forkservers.num_asked
        launch = asyncio.create_task(spawner.launch(sys.executable, {}))
        await until_async(lambda: spawner._forkservers.num_asked > asked)
        os.kill(pid, signal.SIGKILL)
        return await launch

    place.connect(asyncio.run(killed_while_it_is_asked()))
    assert "started without a forkserver" in caplog.text
    assert before.run("print(rank)")["state"] == "ok"


def test_a_changed_module_and_other_variables_get_another_one(place, tmp_path):
    module = tmp_path / "of_the_user.py"
    module.write_text("version = 1")
    spawner = place.spawner(preload=["of_the_user"])
    environment = {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    known = set(place.forkservers())
    versions = []
    for version in (1, 2):
        client = place.launch(spawner, **environment)
        client.start(1)
        client.run("import of_the_user; print(of_the_user.version)", [0])
        versions.append(client.text(0))
        module.write_text(f"version = {version + 1}  # of another size")
    assert versions == ["1\n", "2\n"]
    first, *_ = set(place.forkservers()) - known
    os.kill(first, 0)


def test_what_must_not_be_forked_is_imported_by_each_group(place, tmp_path, caplog):
    (tmp_path / "threads.py").write_text(
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    )
    spawner = place.spawner(preload=["threads"])
    client = place.launch(spawner, PYTHONPATH=os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    assert "an imported package started 1 thread" in caplog.text
    client.start(1)
    assert "fresh processes" in client.group["note"]


def test_it_ends_after_its_last_server_and_leaves_nothing(place):
    known = set(place.forkservers())
    spawner = place.spawner(linger=0.5)
    spawner._forkservers.is_keeping = True
    client = place.launch(spawner, OWN="1")
    (pid,) = set(place.forkservers()) - known
    # Whoever sends junk is cut off.
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as sock:
        sock.connect(str(next(path for path in (place.folder / "fork").glob("*") if is_of(path, pid))))
        sock.sendall(b"\xff" * 64)
        assert sock.recv(1) == b""
    began = time.monotonic()
    until(lambda: time.monotonic() - began > 6.0)  # longer than it looks for servers
    assert lives(pid)
    spawner._forkservers.release()
    until(lambda: not lives(pid))
    assert client.hello()["group"]["state"] == "warm"


def is_of(path: Path, pid: int) -> bool:
    return os.fsencode(path) == command_line(pid)[-1]


# pandas imports pyarrow, which would start a thread: nothing could be forked.
LATE = {"JUPYTER_DIST_OPTIONAL_PRELOAD": "numpy,matplotlib,pandas"}
LATER = """
import gc, socket, sys
from jupyter_dist.rank.start import zygote
begun, threshold = gc.get_stats()[0], gc.get_threshold()
imported = zygote.import_all([], also_late=False)
print("matplotlib" in sys.modules, imported.report["safe"])
assert (gc.get_stats()[0], gc.get_threshold()) == (begun, threshold)  # nothing was scanned while it imported
zygote.Zygote(socket.socketpair()[0], imported)._prepare(1_000_000)
print("matplotlib" in sys.modules, imported.idle_seconds)
"""


def test_what_takes_long_to_import_is_left_out_only_where_a_caller_waits_for_few_ranks(place):
    environ = {**os.environ, **without_threads(os.environ), **LATE}
    done = subprocess.run([sys.executable, "-c", LATER], env=environ, capture_output=True, check=True)
    assert done.stdout.decode() == "False True\nTrue None\n"
    known = set(place.forkservers())
    spawner = place.spawner()
    place.launch(spawner, **LATE)
    spare = place.connect(asyncio.run(spawner.launch_spare(sys.executable, LATE)))
    assert len(set(place.forkservers()) - known) == 1
    spare.start(1)
    assert spare.run("import sys; print('matplotlib' in sys.modules)", [0])["state"] == "ok"
    assert spare.text(0) == "True\n"
    again = place.launch(spawner, **LATE)  # it has not taken its own imports for a change
    assert len(set(place.forkservers()) - known) == 1
    assert again.hello()["group"]["state"] == "warm"


def test_one_that_has_begun_is_the_one_that_forks(place):
    known = set(place.forkservers())
    spawner = place.spawner()
    variables = {"OF_ONE_THAT_HAS_BEGUN": "1"}
    spawner.begin(sys.executable, variables)
    spawner.begin(sys.executable, variables)
    (pid,) = set(place.forkservers()) - known
    place.launch(spawner, **variables)
    assert set(place.forkservers()) - known == {pid}


def with_module(folder: Path, name: str, text: str) -> dict[str, str]:
    """Write a module that forkservers import; return the variables with which it is found."""
    (folder / f"{name}.py").write_text(text)
    return {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}


SLOW = f"""
import os, sys, time
time.sleep({FORK_SECONDS + 1})
sys.path.remove(os.path.dirname(__file__))
del sys.modules["matplotlib"]
import matplotlib  # the real one
"""


def test_ranks_wait_for_an_import_that_takes_longer_than_a_fork_may(place, tmp_path):
    """More ranks than cores: the zygote imports before it forks, on a busy machine or a network file system for long."""
    slow = with_module(tmp_path, "matplotlib", SLOW)
    client = place.launch(place.spawner(), **LATE, **slow)
    num_ranks = len(os.sched_getaffinity(0)) + 1
    client.start(num_ranks)
    assert client.run("import sys; print('matplotlib' in sys.modules)", [0])["state"] == "ok"
    assert client.text(0) == "True\n"


def test_one_ends_when_memory_is_short(place, tmp_path):
    short = "from jupyter_dist.system import memory\nmemory.MIN_FREE_BYTES = 1 << 60\n"
    environ = with_module(tmp_path, "short_of_memory", short)
    known = set(place.forkservers())
    spawner = place.spawner(preload=["short_of_memory"])
    spawner.begin(sys.executable, environ)
    (pid,) = set(place.forkservers()) - known
    assert pid in spawner.forkservers()
    until(lambda: not lives(pid))
    assert pid not in spawner.forkservers()


def test_an_import_that_hangs_is_not_waited_for(place, tmp_path, caplog):
    hangs = "import sys, time\nif 'forkserver' in sys.argv:\n    time.sleep(1000)\n"
    environ = with_module(tmp_path, "hangs_there", hangs)
    known = set(place.forkservers())
    client = place.launch(place.spawner(preload=["hangs_there"]), **environ)
    assert "did not answer" in caplog.text
    assert not set(place.forkservers()) - known
    assert client.hello()["group"]["state"] == "warm"


def test_another_python_has_another_one(place, tmp_path):
    other = tmp_path / "bin" / "python"
    other.parent.mkdir()
    other.symlink_to(os.path.realpath(sys.executable))
    known = set(place.forkservers())
    spawner = place.spawner()
    for python in (sys.executable, str(other), str(other)):
        spawner.begin(python, {"OF_TWO_PYTHONS": "1"})
    begun = set(place.forkservers()) - known
    commands = {command_line(pid)[0] for pid in begun}
    for pid in begun:
        os.kill(pid, signal.SIGKILL)  # nothing is forked from them: their imports would be for nothing
    assert commands == {os.fsencode(sys.executable), os.fsencode(other)}
    assert len(begun) == 2
