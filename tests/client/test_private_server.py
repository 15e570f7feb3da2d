"""A private server only serves clients of its user, whatever the user's configuration of servers."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
from ownserver import has_ended, private
from waits import PATIENCE, running, until

from jupyter_dist.client import JupyterDistError
from jupyter_dist.client.servers import Server, private_server
from jupyter_dist.client.servers import private as starting
from jupyter_dist.protocol.operations import OPERATIONS
from jupyter_dist.server.http.bare import BareHandler, bare_application

OPEN = {
    "IdentityProvider": {"token": ""},
    "PasswordIdentityProvider": {"token": ""},
    "LegacyIdentityProvider": {"token": ""},
    "ServerApp": {"ip": "0.0.0.0", "token": "", "password": "", "allow_unauthenticated_access": True, "port": 19_117},
    "HeadlessServer": {"ip": "0.0.0.0", "allow_origin": "*", "disable_check_xsrf": True},
    "OwnIdentityProvider": {"token": ""},
    "DistApp": {"lease_seconds": 12},
}
OTHER_IDENTITY = """
c = get_config()
from jupyter_server.auth.identity import IdentityProvider, User
class Anybody(IdentityProvider):
    auth_enabled = False
    def get_user(self, handler):
        return User("anybody")
c.ServerApp.identity_provider_class = Anybody
c.HeadlessServer.identity_provider_class = Anybody
c.HeadlessServer.ip = "0.0.0.0"
"""
OTHERS = ["api/contents", "api/kernels", "api/sessions", "api/kernelspecs", "files/x", "api/terminals"]


def status(server, method, path, token=None, headers=None):
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=PATIENCE)
    headers = {**({"Authorization": f"token {token}"} if token else {}), **(headers or {})}
    connection.request(method, f"/{path}", b"{}" if method == "POST" else None, headers)
    with connection.getresponse() as response:
        response.read()
    connection.close()
    return response.status


@pytest.fixture(params=["json", "py", "extension"])
def hostile_configuration(request, tmp_path, tmp_path_factory, monkeypatch):
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path_factory.mktemp("rt")))  # no other test's server is there
    folder = tmp_path / "config"
    folder.mkdir()
    if request.param == "json":
        for name in ("jupyter_config", "jupyter_server_config", "jupyter_headlessserver_config"):
            (folder / f"{name}.json").write_text(json.dumps(OPEN))
    elif request.param == "py":
        (folder / "jupyter_server_config.py").write_text(OTHER_IDENTITY)
    else:
        (folder / "jupyter_jupyter_dist_config.json").write_text(json.dumps(OPEN))
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(folder))
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(folder))
    monkeypatch.setenv("JUPYTER_TOKEN", "")
    monkeypatch.setenv("JUPYTER_SERVER_ALLOW_UNAUTHENTICATED_ACCESS", "true")


def test_a_private_server_takes_its_token_and_listens_on_loopback_whatever_is_configured(
    hostile_configuration, tmp_path
):
    with private(tmp_path) as server:
        listens = [found.laddr.ip for found in psutil.Process(server.pid).net_connections() if found.status == "LISTEN"]
        assert listens == ["127.0.0.1"]
        for token in (None, "wrong"):
            for operation in OPERATIONS:
                path = f"jupyter-dist/api/{operation.path.format_map(defaultdict(lambda: 'x', rank=0))}"
                assert status(server, operation.verb.upper(), path, token) == 403, operation.name
            for path in OTHERS:
                assert status(server, "GET", path, token) == 403
            assert status(server, "POST", "api/shutdown", token) == 403
        assert status(server, "GET", "jupyter-dist/api/groups", server.token) == 200
        assert {status(server, "GET", path, server.token) for path in OTHERS} == {404}  # what nobody needs


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A private server of its own, which a test may stop."""
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "rt"))
    with private(tmp_path) as server:
        yield server


def wanted(folder, **others):
    """What a client tells the process of a private server."""
    places = {"root_dir": str(folder), "runtime_dir": str(folder), "clients": str(folder / "clients.lock")}
    return json.dumps({"token": "t", "lock": 2, "mark": "private", **places, **others}).encode() + b"\n"


def test_a_private_server_without_a_token_does_not_start(tmp_path):
    server = subprocess.run(
        [sys.executable, "-m", "jupyter_dist.server.main"],
        input=wanted(tmp_path, token=""),
        env={**os.environ, "JUPYTER_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert server.stdout == b""
    assert server.returncode != 0
    assert b"token" in server.stderr
    assert list(tmp_path.glob("jpserver-*")) == []  # nor found


def test_every_handler_of_a_private_server_refuses_requests_without_the_token():
    application = bare_application(None, "t", lambda: None)
    rules = application.wildcard_router.rules
    assert len(rules) > len({operation.path for operation in OPERATIONS})
    for handler in (*(rule.target for rule in rules), application.settings["default_handler_class"]):
        assert issubclass(handler, BareHandler), handler


STRANGERS = [
    {"Host": "evil.example"},
    {"Origin": "http://evil.example"},
    {"Host": "[::1"},
    {"Host": "[x]:80"},
    {"Origin": "http://[x"},
    {"Origin": "http://[::1"},
    {"Origin": ""},
    {"Authorization": "token "},
    {"Authorization": "token wrong"},
    {"Authorization": "Basic dDp0"},
    {"Authorization": "", "Cookie": "username-127-0-0-1=t; token=t"},
]


def test_a_private_server_refuses_other_sites_hosts_and_tokens(server):
    for headers in STRANGERS:
        given = {"Authorization": f"token {server.token}", **headers}
        for path in ("jupyter-dist/api/groups", "jupyter-dist/api/channel", "api/shutdown", "nothing"):
            for method in ("GET", "POST", "OPTIONS"):
                assert status(server, method, path, headers=given) in (403, 405), (method, path, headers)
    for _ in range(20):
        assert status(server, "GET", f"x?{'x' * 50_000}", headers={"Host": "[::1"}) == 403
    assert os.stat(f"/proc/{server.pid}/fd/2").st_size < 10_000  # nobody sees this file, and it has no name


def test_a_private_server_reads_no_large_body_before_it_has_seen_the_token(server):
    paths = ("api/shutdown", "files/x", "jupyter-dist/api/channel", "jupyter-dist/api/groups", "jupyter-dist/api/x")
    address = urlsplit(server.url)
    for path in paths:
        with socket.create_connection((address.hostname, address.port), PATIENCE) as connection:
            head = f"POST /{path} HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Length: {20 << 20}\r\n\r\n"
            connection.sendall(head.encode())
            answer = connection.makefile("rb").read()  # to its end, though no byte of the body was sent
            assert answer.split()[1] in (b"400", b"403"), (path, answer)
    large = json.dumps({"code": "#" * (1 << 20)})
    connection = http.client.HTTPConnection(address.netloc, timeout=PATIENCE)
    connection.request(
        "POST", "/jupyter-dist/api/groups/none/executions", large, {"Authorization": f"token {server.token}"}
    )
    with connection.getresponse() as response:
        assert (response.status, json.loads(response.read())["error"]["code"]) == (404, "unknown_group")
    connection.close()


def test_a_private_server_takes_the_token_as_jupyter_does(server):
    path = "jupyter-dist/api/groups"
    assert status(server, "GET", path, headers={"Authorization": f"Bearer {server.token}"}) == 200
    assert status(server, "GET", f"{path}?token={server.token}") == 200
    assert status(server, "GET", path, server.token, {"Origin": server.url.rstrip("/")}) == 200


def test_jupyter_server_lists_and_stops_a_private_server(server):
    code = (
        "from jupyter_server.serverapp import list_running_servers, shutdown_server\n"
        "found, = list_running_servers(); print(found['url'], found['version'], flush=True)\n"
        # How long it waits before it sends SIGTERM, and then SIGKILL, after which no server removes its file.
        f"shutdown_server(found, timeout={int(PATIENCE)})"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as stopping:
        assert stopping.stdout.readline().startswith(server.url)
        until(lambda: has_ended(server.pid))
        stopping.kill()  # it waits for the end of a process whose parent, this one, has not waited for it
    assert list(Path(os.environ["JUPYTER_RUNTIME_DIR"]).glob("jpserver-*")) == []


def test_what_a_private_server_says_when_it_does_not_come_up_reaches_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))  # where no server runs yet
    with pytest.raises(JupyterDistError) as raised:
        private_server(str(Path(tmp_path, "no", "such", "folder")))
    assert raised.value.code == "no_server"
    assert "no/such/folder" in str(raised.value)


HANGS = f"""import os, pathlib, sys, time
pathlib.Path({{told!r}}).write_text(str(os.getpid()))
print("waiting for a disk", file=sys.stderr, flush=True)
time.sleep({10 * PATIENCE})
"""
BEFORE_IT_READS = HANGS
IN_ITS_OWN_SESSION = starting.DETACHED.replace("os.execv(", HANGS + "os.execv(")
CONNECTS = """
import sys
from jupyter_dist.client import connect
from jupyter_dist.client.servers import private
private.DETACHED = sys.argv[1]
private.START_SECONDS = 1000
connect()
"""


@pytest.fixture(params=[BEFORE_IT_READS, IN_ITS_OWN_SESSION], ids=["before it reads", "in its own session"])
def hanging(request, tmp_path, monkeypatch):
    """What a client runs in place of a server, where none runs yet; and the file that names the process that hangs."""
    assert "os.execv" in starting.DETACHED
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    told = tmp_path / "hangs"
    return request.param.replace("{told!r}", repr(str(told))), told


def test_a_private_server_that_hangs_before_it_answers_is_ended_and_named(hanging, monkeypatch):
    script, told = hanging
    monkeypatch.setattr(starting, "DETACHED", script)
    monkeypatch.setattr(starting, "START_SECONDS", 3)
    monkeypatch.setenv("LARGE", "x" * 100_000)  # more than a pipe takes
    monkeypatch.delenv("JUPYTER_DIST_PREPARE")
    with pytest.raises(JupyterDistError, match="did not start within 3 s") as raised:
        private_server(prepare=True)
    assert raised.value.code == "no_server"
    assert raised.value.hint == "waiting for a disk"
    until(lambda: has_ended(int(told.read_text())))


def test_ctrl_c_ends_a_program_whose_private_server_hangs(hanging):
    script, told = hanging
    with running([sys.executable, "-c", CONNECTS, script], stderr=subprocess.PIPE) as program:
        until(lambda: told.exists() and told.read_text())
        program.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in program.communicate(timeout=PATIENCE)[1]
        assert program.returncode in (130, -signal.SIGINT)
    until(lambda: has_ended(int(told.read_text())))


SLOW_TO_IMPORT = (
    "jupyter_server",
    "jupyter_events",
    "jupyter_client",
    "notebook",
    "jsonschema",
    "jinja2",
    "zmq",
    "torch",
)


def test_it_imports_nothing_that_takes_long(tmp_path):
    """Importing jupyter_server takes longer than all that a private server does until its first answer."""
    say = f"print([name for name in {SLOW_TO_IMPORT} if name in sys.modules], file=sys.stderr)"
    code = f"import sys; from jupyter_dist.server import main; main.main(); {say}"
    with running([sys.executable, "-c", code], stdin=subprocess.PIPE, stderr=subprocess.PIPE) as server:
        server.stdin.write(wanted(tmp_path).decode())
        server.stdin.flush()
        found = Server(json.loads(server.stdout.readline())["url"])
        assert status(found, "GET", "jupyter-dist/api/groups", "t") == 200
        server.terminate()
        assert server.communicate(timeout=PATIENCE)[1] == "[]\n"
