"""Where checks are switched off: a server's setting, an option of a start, and a group that runs already."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from faults.server import TOKEN, JupyterServer

from . import kinds

(WRONG,) = (kind for kind in kinds.WRONG if kind.name == "a loader without a sampler")


@pytest.fixture
def server_of(tmp_path):
    servers = []

    def start(**options):
        servers.append(JupyterServer(tmp_path, on_server_stop="end", **options))
        return servers[-1]

    yield start
    for server in servers:
        server.end()


def is_on(server, group):
    return server.ask("GET", f"groups/{group}")["parts"]["checks"]["on"]


def kinds_found(server, group):
    for code in (kinds.FIRST, WRONG.code):
        execution = server.submit(group, code)
        told = server.view(group, execution)["execution"]
        assert told["state"] == "ok"
    answer = server.ask("GET", f"groups/{group}/executions/{execution}/checks")
    assert answer["on"] == is_on(server, group)
    return [check["kind"] for check in answer["checks"]]


def test_a_servers_setting_is_for_new_groups_that_do_not_say_otherwise(server_of):
    server = server_of(checks=False)
    silent = server.start()["id"]
    assert not is_on(server, silent)
    assert kinds_found(server, silent) == []
    other = server.start(name="other", checks=True)["id"]
    assert is_on(server, other)
    assert kinds_found(server, other) == ["same_batch"]
    assert server.ask("POST", f"groups/{silent}/checks", {"on": True}) == {"on": True}
    assert kinds_found(server, silent) == ["same_batch"]


def test_no_checks_of_a_command(server_of, tmp_path):
    server = server_of()
    env = {**os.environ, "JUPYTER_RUNTIME_DIR": str(server.runtime), "JUPYTER_TOKEN": TOKEN}
    command = [
        sys.executable,
        "-c",
        "from jupyter_dist.cli.main import main; main()",
        "start",
        "quiet",
        "-n",
        "2",
        "--no-checks",
    ]
    started = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert started.returncode == 0, started.stderr
    (group,) = server.ask("GET", "groups")["groups"]
    assert not is_on(server, group["id"])
    assert kinds_found(server, group["id"]) == []
