"""Which server is found, and how long a private one lives."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from waits import PATIENCE

from jupyter_dist.client import Client, JupyterDistError
from jupyter_dist.client.servers import running_servers

LIGHT_SECONDS = 0.2


def test_the_running_server_is_found_and_shared(client):
    with Client.connect() as second:
        assert second.url == client.url
        assert not second.is_private
        assert client.is_private


def test_the_kernels_own_server_comes_first(client, tmp_path, monkeypatch):
    own, newer = os.getppid(), os.getpid()
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    for pid in (own, newer):
        info = {"url": f"http://127.0.0.1:{pid}/", "token": "t", "pid": pid}
        (tmp_path / f"jpserver-{pid}.json").write_text(json.dumps(info))
    (tmp_path / "jpserver-1.json").write_text("{")
    (tmp_path / "jpserver-2.json").write_text(json.dumps({"url": "http://x/", "pid": 2**22 + 1}))
    os.utime(tmp_path / f"jpserver-{own}.json", (0, 0))
    assert [server.pid for server in running_servers()] == [own, newer]
    assert "token" not in repr(running_servers()[0])
    with pytest.raises(JupyterDistError, match="No Jupyter server"):
        Client.connect(private=False)


def test_a_private_server_ends_with_its_client_however_that_ends(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    code = "from jupyter_dist.client import connect; c = connect(); print(c._client.server.pid, flush=True); input()"
    program = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    server = psutil.Process(int(program.stdout.readline()))
    (found,) = running_servers()
    assert found.token not in " ".join(server.cmdline())
    assert found.token not in Path(f"/proc/{server.pid}/environ").read_text()
    program.kill()
    program.communicate()
    server.wait(PATIENCE)
    assert list(tmp_path.glob("jpserver-*")) == []


def test_importing_is_light():
    code = """
import sys, time
import IPython, tornado.httpclient, tornado.websocket, jupyter_core.paths  # every kernel has these
started = time.perf_counter()
import jupyter_dist, jupyter_dist.client
print(time.perf_counter() - started, *sorted({'torch', 'jupyter_server', 'zmq', 'traitlets.config'} & set(sys.modules)))
"""
    best = None
    deadline = time.monotonic() + 10
    while (best is None or best > LIGHT_SECONDS) and time.monotonic() < deadline:
        seconds, *modules = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True, text=True
        ).stdout.split()
        best = min(float(seconds), best or 9)
    assert best < LIGHT_SECONDS
    assert not {"torch", "jupyter_server"} & set(modules)
