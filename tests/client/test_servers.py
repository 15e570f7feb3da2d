"""Which server is found, and how long a private one lives."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from waits import PATIENCE, end, until

from jupyter_dist.client import Client, JupyterDistError
from jupyter_dist.client.servers import running_servers


def test_the_running_server_is_found_and_shared(client):
    with Client.connect() as second:
        assert second.url == client.url
        assert second.is_private
        assert client.is_private


LISTENS = """
import os, socket, sys
if len(sys.argv) > 1:
    os.setuid(int(sys.argv[1]))
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
sys.stdin.read()
"""


@pytest.fixture
def listening():
    """Start processes that listen, also as another user; the process and its port."""
    started = []

    def start(*arguments):
        command = [sys.executable, "-c", LISTENS, *arguments]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        return started[-1].pid, int(started[-1].stdout.readline())

    yield start
    for process in started:
        end(process)


@pytest.fixture
def server_file(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))

    def write(pid, port, **fields):
        info = {"url": f"http://127.0.0.1:{port}/", "token": "t", "pid": pid, "port": port, **fields}
        (tmp_path / f"jpserver-{pid}.json").write_text(json.dumps(info))
        return tmp_path / f"jpserver-{pid}.json"

    return write


def test_the_kernels_own_server_comes_first(server_file, listening, monkeypatch, tmp_path):
    (own, own_port), (newer, newer_port) = listening(), listening()
    monkeypatch.setenv("JPY_PARENT_PID", str(own))
    os.utime(server_file(own, own_port), (0, 0))
    server_file(newer, newer_port)
    (tmp_path / "jpserver-1.json").write_text("{")
    assert [server.pid for server in running_servers()] == [own, newer]
    assert "token" not in repr(running_servers()[0])


def test_the_file_of_a_server_that_has_ended_is_nobodys(server_file, listening):
    (mine, port), (other, _) = listening(), listening()
    server_file(2**22 + 1, port)  # the process is gone
    server_file(other, port)  # its number is that of another process of ours, and so is its port
    server_file(os.getpid(), 1)  # nobody listens
    server_file("1", port)
    server_file(other, None)
    assert running_servers() == []
    with pytest.raises(JupyterDistError, match="no running Jupyter server"):
        Client.connect(private=False)
    server_file(mine, port)
    assert [server.pid for server in running_servers()] == [mine]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")
def test_the_token_is_not_for_another_user_who_has_the_port(server_file, listening, tmp_path, monkeypatch):
    (mine, _), (strangers, port) = listening(), listening("65534")
    server_file(mine, port)  # the number came back as ours, the port as the stranger's
    server_file(strangers, port)
    monkeypatch.setenv("JUPYTERHUB_SERVICE_URL", f"http://127.0.0.1:{port}/user/ada/")
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "t")
    assert running_servers() == []


def test_a_unix_socket_must_be_ours_as_well(server_file, tmp_path):
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        server_file(os.getpid(), 0, url="http+unix://x/", sock=str(path))
        assert [found.sock for found in running_servers()] == [str(path)]
    assert running_servers() == []


CONNECTS = """
from jupyter_dist.client import connect
client = connect()
print(client._client.server.pid, flush=True)
input()
client.ask("GET")
print(client._client.server.pid, flush=True)
input()
"""


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Start programs that connect; none outlives the test."""
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    started = []

    def start(code=CONNECTS, *arguments):
        command = [sys.executable, "-c", code, *arguments]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for program in started:
        end(program)


def test_a_private_server_belongs_to_no_client_and_ends_after_the_last_however_that_ends(tmp_path, programs):
    first, second = programs(), programs()  # at once
    server = psutil.Process(int(first.stdout.readline()))
    assert int(second.stdout.readline()) == server.pid
    (found,) = running_servers()
    assert found.token not in " ".join(server.cmdline())
    assert found.token not in Path(f"/proc/{server.pid}/environ").read_text()
    first.kill()
    second.stdin.write("\n")
    second.stdin.flush()
    assert int(second.stdout.readline()) == server.pid
    second.kill()
    server.wait(PATIENCE)
    assert list(tmp_path.glob("jpserver-*")) == []


def test_clients_of_a_killed_server_go_on_with_one_other(programs):
    both = [programs(), programs()]
    server = psutil.Process({int(program.stdout.readline()) for program in both}.pop())
    server.kill()
    for program in both:
        program.stdin.write("\n")
        program.stdin.flush()
    (pid,) = {int(program.stdout.readline()) for program in both}
    assert pid != server.pid


FORKS = """
import os, signal, time
from jupyter_dist.client import connect
client = connect()
print(client._client.server.pid, flush=True)
if os.fork() == 0:
    time.sleep(1000)
print("forked", flush=True)
input()
"""


def test_a_worker_that_outlives_its_program_keeps_no_server(programs):
    program = programs(FORKS)
    server = psutil.Process(int(program.stdout.readline()))
    program.stdout.readline()
    (worker,) = psutil.Process(program.pid).children()
    program.kill()
    server.wait(PATIENCE)
    assert worker.is_running()
    worker.kill()


STARTS = """
import os
from jupyter_dist.client import connect
client = connect()
group = client.start(num_ranks=1, accelerator="cpu", grace_seconds=0)
code = "import os; print(os.getcwd(), os.environ.get('COLOUR'), os.environ.get('SHADE'))"
print(client._client.server.pid, group.run(code)[0].text, end="", flush=True)
"""


def test_a_group_has_the_folder_and_the_environment_of_the_program_that_starts_it(programs, tmp_path, monkeypatch):
    monkeypatch.setenv("COLOUR", "blue")
    server = programs().stdout.readline().strip()
    monkeypatch.delenv("COLOUR")
    monkeypatch.setenv("SHADE", "dark")
    monkeypatch.setenv("LARGE", "x" * 100_000)
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert programs(STARTS).stdout.readline() == f"{server} {tmp_path / 'other'} None dark\n"


def test_importing_is_light():
    code = """
import sys
import IPython, tornado.httpclient, tornado.websocket, jupyter_core.paths  # every kernel has these
import jupyter_dist, jupyter_dist.client
print(*{'torch', 'jupyter_server', 'zmq', 'jsonschema'} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.split() == []


OTHER = """
from jupyter_dist.client import Client
with Client.connect() as client:
    print(client.start("other", num_ranks=1, accelerator="cpu").id)
"""

PREPARED = f"""
import os, subprocess, sys
OTHER = {OTHER!r}
from pathlib import Path
from waits import until
from jupyter_dist.client import Client
with Client.connect() as client:
    folder = Path(os.environ["JUPYTER_RUNTIME_DIR"], "jupyter_dist")
    until(lambda: [*folder.glob("g-*/agent.sock")])
    assert client.groups() == []  # it is nobody's yet
    (prepared,) = folder.glob("g-*")
    # Both at once: it ends if nobody claims it for half a minute, in which a busy machine does not import torch.
    environ = dict(os.environ, OF_THE_PROGRAM="1")
    other = subprocess.Popen([sys.executable, "-c", OTHER], env=environ, stdout=subprocess.PIPE, text=True)
    group = client.start("prepared", num_ranks=1, accelerator="cpu")
    other_id = other.communicate(timeout=120)[0].strip()
    print(group.id == prepared.name, other_id == prepared.name, other_id in [each.id for each in client.groups()])
    group.shutdown(), client.attach("other").shutdown()
"""


def test_a_server_that_a_program_starts_prepares_for_its_first_group(tmp_path_factory, monkeypatch):
    tmp_path = tmp_path_factory.mktemp("rt")  # so short that groups are in it
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("JUPYTER_DIST_PREPARE", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[1]), os.environ["PYTHONPATH"]]))
    command = [sys.executable, "-c", PREPARED]
    said = subprocess.run(command, check=False, capture_output=True, text=True, timeout=4 * PATIENCE)
    assert said.stdout == "True False True\n", said.stderr
    until(lambda: not [*tmp_path.glob("jpserver-*")])
    until(lambda: not [*tmp_path.glob("jupyter_dist/g-*")])  # nothing is left that was prepared
