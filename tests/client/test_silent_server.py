"""A server that runs but does not answer is named, with what to do; it is never taken for no server."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from completing import completions
from faults.server import TOKEN, JupyterServer
from ownserver import variables
from waits import PATIENCE, until

from jupyter_dist.cli import words
from jupyter_dist.client import Client, JupyterDistError
from jupyter_dist.client.connection import channel, finding, http
from jupyter_dist.client.displays.live import RankDisplay
from jupyter_dist.client.servers import private_server, running_servers
from jupyter_dist.system.processes import read_process

SECONDS = 2  # instead of half a minute
COMMAND = f"""
from jupyter_dist.cli.main import main
from jupyter_dist.client.connection import finding
finding.ANSWER_SECONDS = {SECONDS}
main()
"""


@pytest.fixture
def server(tmp_path, tmp_path_factory, monkeypatch):
    """A Jupyter server of its own, found by its file; the only one."""
    runtime = tmp_path_factory.mktemp("rt")
    for name, value in variables(runtime).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(finding, "ANSWER_SECONDS", SECONDS)
    server = JupyterServer(tmp_path, runtime=runtime)
    yield server
    server.process.send_signal(signal.SIGCONT)
    server.end()


def stop(pid):
    os.kill(pid, signal.SIGSTOP)
    until(lambda: read_process(pid).state == "T")


def assert_tells(error, url, pid):
    assert error.code == "server_gone"
    assert error.message == f"The Jupyter server at {url} (process {pid}) did not answer within {SECONDS} s."
    assert f"It is stopped: continue it (kill -CONT {pid})" in error.hint


def test_clients_name_a_server_that_is_stopped_and_use_it_when_it_goes_on(server):
    url, pid = server.info["url"], server.process.pid
    with Client.connect() as client:
        stop(pid)
        for options in ({}, {"private": False}, {"start": False}, {"url": url, "token": TOKEN}):
            with pytest.raises(JupyterDistError) as raised:
                Client.connect(**options)
            assert_tells(raised.value, url, pid)
        with pytest.raises(JupyterDistError) as raised:
            client.ask("GET", "groups", timeout_seconds=SECONDS)
        assert_tells(raised.value, url, pid)
        assert [found.pid for found in running_servers()] == [pid]  # no private one was started beside it
        os.kill(pid, signal.SIGCONT)
        until(lambda: read_process(pid).state != "T")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(finding, "ANSWER_SECONDS", PATIENCE)
            with Client.connect(private=False) as again:
                assert again.url == url
        assert client.groups() == []


def test_commands_name_a_server_that_is_stopped(server, tmp_path):
    url, pid = server.info["url"], server.process.pid
    stop(pid)

    def dist(*arguments):
        command = [sys.executable, "-c", COMMAND, *arguments]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            timeout=PATIENCE,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 1, done
        return done

    said = f"The Jupyter server at {url} (process {pid}) did not answer within {SECONDS} s. It is stopped: continue it"
    assert dist("start", "-n", "1").stderr.startswith(f"jupyter dist start: {said}")
    assert dist("list").stderr.startswith(f"jupyter dist list: {said}")  # and not that there are no groups
    error = json.loads(dist("status", "--json").stdout)["error"]
    assert_tells(JupyterDistError(**error), url, pid)
    assert f"WRONG  server: {said.partition(' It is')[0]}" in dist("doctor").stdout


def test_a_private_server_that_is_stopped_is_named(tmp_path_factory, monkeypatch):
    for name, value in variables(tmp_path_factory.mktemp("rt")).items():
        monkeypatch.setenv(name, value)
    with Client.connect() as client:
        (found,) = running_servers()
        stop(found.pid)
        try:
            monkeypatch.setattr(finding, "ANSWER_SECONDS", SECONDS)
            monkeypatch.setattr("jupyter_dist.client.asynchronous.client.FIND_SECONDS", 2.0 * SECONDS)
            for options in ({}, {"private": False}):
                with pytest.raises(JupyterDistError) as raised:
                    Client.connect(**options)
                assert_tells(raised.value, found.url, found.pid)
            assert private_server().pid == found.pid
        finally:
            os.kill(found.pid, signal.SIGCONT)
        assert client.groups() == []


def test_shell_completion_has_no_names_of_groups_and_ends_before_the_server_is_given_up(server, tmp_path):
    stop(server.process.pid)
    began = time.monotonic()
    assert completions("jupyter-dist status ", tmp_path) == set()
    assert time.monotonic() - began >= words.ANSWER_SECONDS  # it has asked
    assert "--json" in completions("jupyter-dist status --", tmp_path)  # what needs no server is there


LINES = "import time\nfor line in range(40):\n    print('line', line)\n    time.sleep(0.05)"


@pytest.fixture
def pinging(monkeypatch):
    """The client notices soon that its server does not answer on the WebSocket."""
    monkeypatch.setattr(channel, "PING_SECONDS", 1.0)
    monkeypatch.setattr(channel, "RETRY_AFTER_SECONDS", (0.1,))
    monkeypatch.setattr(http, "CONNECT_SECONDS", SECONDS)


WAITS = {
    "run": lambda group: group.run("import time; time.sleep(1000)"),
    "stream": lambda group: group.run("import time; time.sleep(1000)", stream=lambda _: None),
    "logs": lambda group: list(group.follow_logs(0)),
}


@pytest.mark.parametrize("is_found", [True, False], ids=["found", "by URL"])
def test_what_follows_a_server_that_is_stopped_gets_an_error_that_names_it(server, pinging, is_found):
    options = {} if is_found else {"url": server.info["url"], "token": TOKEN}
    pid = server.process.pid
    with ThreadPoolExecutor(len(WAITS)) as threads, Client.connect(**options) as client:
        group = client.start("silent", num_ranks=1, accelerator="cpu")
        waiting = [threads.submit(wait, group) for wait in WAITS.values()]
        until(lambda: len(client._client.channel._all_feeds()) == len(WAITS))
        until(lambda: group.status().ranks[0].state == "busy")
        stop(pid)
        for wait in waiting:
            error = wait.exception(2 * PATIENCE)
            assert error.code == "server_gone"
            assert f"The Jupyter server at {server.info['url']} (process {pid}) did not answer within" in error.message
            assert f"kill -CONT {pid}" in error.hint
        os.kill(pid, signal.SIGCONT)
        until(lambda: read_process(pid).state != "T")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(finding, "ANSWER_SECONDS", PATIENCE)
            group.shutdown()


def test_a_server_that_was_stopped_for_a_while_costs_no_line(server, pinging, monkeypatch):
    monkeypatch.setattr(channel, "RETRY_AFTER_SECONDS", (0.1,) * 100)
    monkeypatch.setattr(finding, "ANSWER_SECONDS", PATIENCE)
    said = io.StringIO()
    pid = server.process.pid
    with ThreadPoolExecutor(1) as threads, Client.connect(server.info["url"], TOKEN) as client:
        group = client.start("paused", num_ranks=1, accelerator="cpu")
        waiting = threads.submit(group.run, LINES, stream=RankDisplay(said))
        until(lambda: "line 3" in said.getvalue())
        first = client._client.channel._socket
        stop(pid)
        until(lambda: client._client.channel._socket is not first)  # it was given up
        os.kill(pid, signal.SIGCONT)
        assert waiting.result(PATIENCE).ok
        assert said.getvalue() == "".join(f"0| line {line}\n" for line in range(40))
        group.shutdown()
