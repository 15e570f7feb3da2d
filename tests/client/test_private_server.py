"""A private server only serves clients of its user, whatever the user's configuration of servers."""

import http.client
import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
from ownserver import private
from waits import PATIENCE

from jupyter_dist.client import JupyterDistError
from jupyter_dist.client.servers import private_server
from jupyter_dist.server.http.openapi import operations_of
from jupyter_dist.server.http.routes import ROUTES

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
PATHS = [route.path.format(name="x", group="x", rank=0, execution="x") for route in ROUTES]
OTHERS = ["api/contents", "api/kernels", "api/sessions", "api/kernelspecs", "files/x", "api/terminals"]


def status(server, method, path, token=None):
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=PATIENCE)
    headers = {"Authorization": f"token {token}"} if token else {}
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
            for path, route in zip(PATHS, ROUTES, strict=True):
                for verb in operations_of(route.handler):
                    assert status(server, verb.upper(), f"jupyter-dist/api/{path}", token) == 403, (verb, path)
            for path in OTHERS:
                assert status(server, "GET", path, token) in (302, 403, 404)  # 302: log in
        assert status(server, "GET", "jupyter-dist/api/groups", server.token) == 200
        assert {status(server, "GET", path, server.token) for path in OTHERS} == {404}  # what nobody needs


WITHOUT_TOKEN = """
from jupyter_dist.client.servers import headless
made = headless._config
def without(wanted):
    config = made(wanted)
    config.{0}
    return config
headless._config = without
headless.main()
"""


@pytest.mark.parametrize("change", ["OwnIdentityProvider.token = ''", "HeadlessServer.ip = '0.0.0.0'"])
def test_a_private_server_that_would_be_open_is_never_told_of(change, tmp_path):
    server = subprocess.run(
        [sys.executable, "-c", WITHOUT_TOKEN.format(change)],
        input=json.dumps({"token": "t", "root_dir": str(tmp_path), "lock": 2}).encode() + b"\n",
        env={**os.environ, "JUPYTER_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert server.stdout == b""
    assert list(tmp_path.glob("jpserver-*.json")) == []  # nor found


def test_what_a_private_server_says_when_it_does_not_come_up_reaches_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))  # where no server runs yet
    with pytest.raises(JupyterDistError) as raised:
        private_server(str(Path(tmp_path, "no", "such", "folder")))
    assert raised.value.code == "no_server"
    assert "no/such/folder" in str(raised.value)


def test_it_builds_no_grammar_of_iris():
    """Half of a Jupyter server's start would be a check that is not used."""
    code = "import sys, jupyter_dist.client.servers.headless; print(sys.modules['rfc3987_syntax'])"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "None\n"
