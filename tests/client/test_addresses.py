"""Servers that listen on a unix socket, below a prefix, and with JupyterHub's token: real ones."""

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from waits import PATIENCE, end, until

from jupyter_dist.client import Client, JupyterDistError
from jupyter_dist.client.servers import running_servers

TOKEN = "for-tests"


@contextmanager
def jupyter_server(tmp_path, *arguments):
    """Yields the file in which it says where it listens."""
    command = [sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root", *arguments]
    command += [f"--IdentityProvider.token={TOKEN}", "--ServerApp.jpserver_extensions={'jupyter_dist': True}"]
    command += [f"--ServerApp.root_dir={tmp_path}"]
    log = tmp_path / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, cwd=tmp_path)
    try:
        folder = Path(os.environ["JUPYTER_RUNTIME_DIR"])
        until(
            lambda: process.poll() is not None or ("Use Control-C" in log.read_text() and _said(folder)), log.read_text
        )
        assert process.poll() is None, log.read_text()
        yield _said(folder)
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE)
        finally:
            end(process)


def _said(folder):
    for path in folder.glob("jpserver-*.json"):
        if path.read_text().endswith("}"):
            return path
    return None


def connected(**options):
    """A client of a server that has just started: on a busy machine its first answer takes longer than clients wait."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return Client.connect(**options)
        except JupyterDistError:
            if time.monotonic() > deadline:
                raise


@pytest.fixture
def empty_runtime(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "rt"))
    (tmp_path / "rt").mkdir()


def test_a_server_on_a_unix_socket(empty_runtime, tmp_path):
    with jupyter_server(tmp_path, f"--ServerApp.sock={tmp_path}/s"), connected(private=False) as client:
        assert client.url.startswith("http+unix://")
        group = client.start(num_ranks=1, accelerator="cpu")
        seen = []
        assert group.run("print(6 * 7)", stream=lambda result: seen.append(result.text))[0].text == "42\n"
        assert seen
        with Client.connect(client.url, TOKEN) as again:
            assert again.attach().id == group.id
        group.shutdown()


def test_the_token_of_jupyterhub_is_for_its_own_server_alone(empty_runtime, tmp_path, monkeypatch):
    with jupyter_server(tmp_path, "--ServerApp.base_url=/user/ada/", "--ServerApp.port=0") as found:
        info = json.loads(found.read_text())
        found.write_text(json.dumps({**info, "token": ""}))  # as the single-user server's, whose tokens the hub knows
        with pytest.raises(JupyterDistError, match="no running Jupyter server"):
            Client.connect(private=False)
        monkeypatch.setenv("JUPYTERHUB_API_TOKEN", TOKEN)
        monkeypatch.setenv("JUPYTERHUB_SERVICE_PREFIX", "/user/eve/")
        assert running_servers()[0].token == ""
        monkeypatch.setenv("JUPYTERHUB_SERVICE_PREFIX", "/user/ada/")
        with Client.connect(private=False) as client:
            assert client.groups() == []
        with Client.connect(info["url"]) as client:
            assert client.groups() == []
        found.unlink()
        monkeypatch.setenv("JUPYTERHUB_SERVICE_URL", f"http://0.0.0.0:{info['port']}/user/ada/")
        with Client.connect(private=False) as client:
            assert client.groups() == []
