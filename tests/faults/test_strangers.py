"""The threats of other users and of what runs in ranks, on a real server: nothing listens, nothing can be read."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from leaks import nothing_left
from waits import PATIENCE, until

from jupyter_dist.protocol.operations import OPERATIONS
from jupyter_dist.server.spawner.forkservers import FOLDER_VARIABLE
from jupyter_dist.transport.frames import encode_frame

from .server import TOKEN, JupyterServer

NOBODY = 65534
SOURCES = sorted((Path(__file__).parents[2] / "jupyter_dist").rglob("*.py"))
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root to become another user")


@pytest.fixture
def server(tmp_path):
    server = JupyterServer(tmp_path)
    yield server
    for group in server.ask("GET", "groups")["groups"]:
        server.ask("DELETE", f"groups/{group['id']}")
    server.end()


def as_nobody(work):
    """Run `work` as another user, in a process of its own; what it returns, as JSON."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            answer = work()
        except BaseException as err:
            answer = repr(err)
        os.write(write_end, json.dumps(answer).encode())
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        answer = pipe.read()
    os.waitpid(pid, 0)
    return json.loads(answer)


def inodes(pids: list[int]) -> dict[str, int]:
    found = {}
    for pid in pids:
        for fd in Path(f"/proc/{pid}/fd").iterdir():
            try:
                target = os.readlink(fd)
            except OSError:
                continue
            if target.startswith("socket:["):
                found[target[8:-1]] = pid
    return found


def listening_tcp(pids: list[int]) -> list[tuple[str, int, int]]:
    """(address, port, pid); the address as 127.0.0.1, 0.0.0.0, or the hexadecimal of another one."""
    mine, found = inodes(pids), []
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in mine:
                address, port = fields[1].split(":")
                if table == "tcp":
                    address = socket.inet_ntoa(bytes.fromhex(address)[::-1])
                found.append((address, int(port, 16), mine[fields[9]]))
    return found


def listening_unix(pids: list[int]) -> list[str]:
    mine = inodes(pids)
    rows = (line.split(None, 7) for line in Path("/proc/net/unix").read_text().splitlines()[1:])
    return [row[7] for row in rows if len(row) == 8 and row[3] == "00010000" and row[6] in mine]


def test_nothing_listens_but_gloo_on_loopback(server):
    server.start(3, name="g")
    server.run("g", "t = torch.ones(1); dist.all_reduce(t); dist.new_group([0, 1])")
    ranks = {rank["pid"] for rank in server.ask("GET", "groups/g")["ranks"]}
    for address, port, pid in listening_tcp(server.tree()):
        if pid == server.process.pid:
            assert port == server.info["port"]
        else:
            assert address == "127.0.0.1", (address, port)
            assert pid in ranks
    paths = listening_unix(server.tree())
    # By the name that it was bound under: it takes its own once it listens.
    assert [path for path in paths if not path.startswith(os.environ[FOLDER_VARIABLE])] == [
        str(server.group_folder(server.ask("GET", "groups/g")["id"]) / "agent.new")
    ]
    assert not any(path.startswith("@") for path in paths)


def _connects(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as sock:
        try:
            sock.connect(path)
        except PermissionError:
            return False
        return True


def _answer_of(path: Path) -> str:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(PATIENCE)
        sock.connect(str(path))
        with contextlib.suppress(ConnectionError):
            sock.sendall(encode_frame({"t": "nonsense", "id": 1}))
            return sock.recv(1000).decode(errors="replace")
    return ""


def _is_left_at_once(path: Path) -> bool:
    """Whether a connection is closed before it has sent anything; the owner's waits for a request."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(path))
        sock.settimeout(1)
        try:
            return not sock.recv(1)
        except ConnectionError:
            return True
        except TimeoutError:
            return False


def _reads(path: Path) -> bool:
    try:
        os.close(os.open(path, os.O_RDONLY))
    except PermissionError:
        return False
    return True


def _talks(port: int) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as sock:
        sock.sendall(b"junk" * 500)
        sock.settimeout(0.2)  # silence is what is expected
        try:
            return sock.recv(100)
        except (TimeoutError, ConnectionError):
            return b""


@contextlib.contextmanager
def open_to_all(opened: Path, *above: Path) -> Iterator[None]:
    """Let all users write to a file or folder, and reach it: no folder of all tests is open for writing meanwhile."""
    modes = {path: path.stat().st_mode for path in (opened, *above)}
    for path, mode in modes.items():
        path.chmod(mode | (0o077 if path == opened else 0o055))
    try:
        yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


@needs_root
def test_another_user_reaches_nothing(server, tmp_path):
    for path in (tmp_path, *list(tmp_path.parents)[:-2]):
        path.chmod(path.stat().st_mode | 0o055)  # so that it is our own directory that keeps them out
    group = server.start(2, name="g")
    server.run("g", "print('a secret')")
    sockets = listening_unix(server.tree())
    directory = server.group_folder(group["id"])
    assert len(sockets) > 1  # the agent's, and the forkserver's
    gloo = [port for _, port, pid in listening_tcp(server.tree()) if pid != server.process.pid]

    def try_everything():
        reached = [path for path in sockets if _connects(path)]
        paths = [directory / "x", directory / "group.json", directory / "journal", directory / "agent.log"]
        paths += [Path(f"/proc/{rank['pid']}/environ") for rank in group["ranks"]]
        reached += [str(path) for path in paths if _reads(path)]
        return reached + [f"gloo said {answer!r}" for port in gloo if (answer := _talks(port))]

    assert as_nobody(try_everything) == []
    agent = directory / "agent.sock"
    spares = [Path(path) for path in sockets if path.startswith(os.environ[FOLDER_VARIABLE])]
    assert spares
    for asked in (agent, *spares):  # they ask who connects
        with open_to_all(asked, *list(asked.parents)[:3]):
            assert as_nobody(lambda asked=asked: _connects(str(asked)))
            assert as_nobody(lambda asked=asked: _answer_of(asked)) == ""
            assert as_nobody(lambda asked=asked: _is_left_at_once(asked))
        assert not _is_left_at_once(asked)
    assert "nonsense" in _answer_of(agent)
    assert server.run("g", "t = torch.ones(1); dist.all_reduce(t)")["execution"]["state"] == "ok"
    assert server.refused("GET", "groups", token=None)[0] == 403


@pytest.mark.part("parking")
@needs_root
def test_another_user_reads_no_image_of_a_parked_group(server, tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    group = server.start(2, name="g")
    server.run("g", "secret = torch.ones(1 << 20)")
    server.ask("POST", "groups/g/park", {"to": "file", "folder": str(scratch)})
    until(lambda: server.ask("GET", "groups/g")["state"] == "parked", lambda: server.ask("GET", "groups/g"))
    descriptors = [Path(f"/proc/{rank['pid']}/fd") for rank in group["ranks"]]
    links = [os.readlink(link) for folder in descriptors for link in folder.iterdir()]
    assert len([link for link in links if link.startswith(str(scratch))]) == 2  # open, and without a name

    def images():
        return os.listdir(scratch) + [str(folder) for folder in descriptors if os.access(folder, os.R_OK | os.X_OK)]

    with open_to_all(scratch, *list(scratch.parents)[:-2]):
        assert as_nobody(images) == []


def test_no_secret_in_ranks_arguments_logs_or_files(server, tmp_path):
    server.start(2, name="g")
    code = f"""
import os
parent = os.getppid()
agent = int(open(f'/proc/{{parent}}/stat').read().rpartition(')')[2].split()[1])
for pid in ('self', parent, agent):
    data = open(f'/proc/{{pid}}/environ').read() + open(f'/proc/{{pid}}/cmdline').read()
    print({TOKEN!r} in data)
"""
    view = server.run("g", code)
    assert [item["output"]["text"] for item in view["items"]] == ["False\n" * 3]
    url = f"{server.info['url']}jupyter-dist/api/groups/none?token={TOKEN}"
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(urllib.request.Request(url, headers={"Referer": f"http://x/?token={TOKEN}"}))
    raised.value.close()
    for pid in server.tree():
        assert TOKEN not in Path(f"/proc/{pid}/cmdline").read_text()
    assert TOKEN not in server.log()
    for path in server.group_folder(server.ask("GET", "groups/g")["id"]).rglob("*"):
        if path.is_file() and path.parent.name != "journal":  # the cell above stands in the journal
            assert TOKEN not in path.read_text(errors="replace"), path


def test_what_is_not_ours_is_never_signalled(server, tmp_path):
    """Another group, and programs that are named as ours are."""
    decoys = [
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)", name, str(tmp_path)])
        for name in ("boot.py", "agent", "jupyter_dist")
    ]
    server.start(2, name="mine")
    server.start(2, name="theirs")
    server.run("mine", "import subprocess; subprocess.Popen(['sleep', '1000'], start_new_session=True)")
    server.ask("POST", "groups/mine/restart")
    server.ask("GET", "groups/mine?wait=30&not_state=restarting")
    server.ask("DELETE", "groups/mine")
    assert [decoy.poll() for decoy in decoys] == [None, None, None]
    assert server.run("theirs", "dist.barrier()")["execution"]["state"] == "ok"
    for decoy in decoys:
        decoy.send_signal(signal.SIGKILL)
        decoy.wait(PATIENCE)


def test_numbers_of_dead_processes_are_never_signalled_when_they_come_back(tmp_path):
    """In a pid namespace of its own, where the next number can be chosen."""
    script = Path(__file__).with_name("pidreuse.py")
    namespace = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if subprocess.run([*namespace, "true"], check=False, capture_output=True).returncode:
        pytest.skip("needs the right to make a pid namespace")
    with nothing_left():
        done = subprocess.run(
            [*namespace, sys.executable, str(script), str(tmp_path)], check=False, capture_output=True, text=True
        )
    assert "were left alone" in done.stdout, done.stderr[-2000:]


def test_reading_changes_nothing(server):
    """Every GET there is, twice, on a living group."""
    group = server.start(2, name="g")
    server.run("g", "kept = torch.nn.Linear(1, 1)")
    before = server.ask("GET", "groups/g")
    execution = server.ask("GET", "groups/g/executions")["executions"][0]["id"]
    for operation in (*OPERATIONS, *OPERATIONS):
        if operation.verb == "get" and operation.name != "channel":
            path = operation.path.format(group="g", rank=0, execution_id=execution, name="python3")
            if operation.name == "check":
                assert server.refused("GET", path)[1]["message"] == "The argument 'name' is missing."
                server.ask("GET", f"{path}?name=kept")
            elif operation.name in {"trace_file", "pace"}:  # the cell was not profiled, and was too short to be watched
                assert server.refused("GET", path)[0] == 404
            else:
                server.ask("GET", path)
    after = server.ask("GET", "groups/g")
    changing = ("ranks", "note")
    assert {k: v for k, v in after.items() if k not in changing} == {
        k: v for k, v in before.items() if k not in changing
    }
    assert [rank["pid"] for rank in after["ranks"]] == [rank["pid"] for rank in group["ranks"]]
    assert len(server.ask("GET", "groups")["groups"]) == 1
    assert len(server.ask("GET", "groups/g/executions")["executions"]) == 1


def test_a_long_home_and_an_open_umask_open_nothing(tmp_path):
    """A path of 200 characters is too long for a socket: the groups go to a private folder elsewhere."""
    home = tmp_path / ("long" * 50)
    home.mkdir()
    old = os.umask(0)
    try:
        server = JupyterServer(home)
    finally:
        os.umask(old)
    try:
        group = server.start(2, name="g")
        assert server.run("g", "dist.barrier(); print('fine')")["execution"]["state"] == "ok"
        command = Path(f"/proc/{server.agent_pid(group['id'])}/cmdline").read_bytes()
        folder = Path(os.fsdecode(command.rstrip(b"\0").split(b"\0")[-1]))
        assert len(str(folder)) < 90
        for path in (folder.parent, folder, *folder.rglob("*")):
            assert path.stat().st_uid == os.getuid()
            assert path.stat().st_mode & 0o077 == 0, path
    finally:
        server.ask("DELETE", "groups/g")
        server.end()
    assert not folder.exists()


def test_grep_gates():
    """What must not come back: signals by name, pickles, a torch.load that runs code, a store that listens."""
    for path in SOURCES:
        text = path.read_text()
        assert not re.search(r"\bpkill\b|\bkillall\b", text), path
        assert not re.search(r"torch\.load\((?!.*weights_only=True)", text), path
        assert "TCPStore(" not in text, path
        assert not re.search(r"[\"']0\.0\.0\.0[\"']", text), path
