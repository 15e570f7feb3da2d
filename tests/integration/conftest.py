"""A Jupyter server that drives real ranks through a real agent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from apiclient import Api, Remote
from faults.server import FORKSERVER_SECONDS, TOKEN
from leaks import nothing_left as no_leaks
from waits import until_async


@pytest.fixture
def _no_leaks():
    with no_leaks():
        yield


@pytest.fixture(autouse=True)
def jp_asyncio_loop(_no_leaks, jp_asyncio_loop):
    """The loop in which the server is cleaned up: before anybody looks for leaks."""
    return jp_asyncio_loop


@pytest.fixture
def jp_server_config():
    return {
        "ServerApp": {
            "jpserver_extensions": {"jupyter_dist": True, "jupyter_server_terminals": False},
            "allow_unauthenticated_access": False,
        },
        "DistApp": {
            "warm_environment": False,
            "on_server_stop": "end",
            "lease_seconds": 60,
            "forkserver_seconds": FORKSERVER_SECONDS,
        },
    }


@pytest.fixture
def api(jp_serverapp, jp_fetch, jp_ws_fetch):
    """A server in this process, which has no group yet."""
    return Api(jp_fetch, jp_ws_fetch)


@pytest.fixture
def shared_api(group_server, jp_asyncio_loop):
    """The server that all share; its group `g` has two new ranks."""
    with Remote(group_server.info["url"], TOKEN) as remote:
        yield Api(remote.fetch, remote.ws_fetch)


def processes_in(directory: Path) -> list[int]:
    """The processes that name what is in a directory on their command line."""
    inside = os.fsencode(f"{directory}{os.sep}")
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if inside in command:
                found.append(int(entry.name))
    return found


@pytest.fixture
def groups_path(jp_serverapp):
    """Where this server's groups live."""
    return jp_serverapp.extension_manager.extension_points["jupyter_dist"].app.manager._spawner._parent


@pytest.fixture
def nothing_left(groups_path):
    """Wait until no process and no directory of this server's groups is left."""

    async def check() -> None:
        await until_async(lambda: not processes_in(groups_path), lambda: processes_in(groups_path))
        assert list(groups_path.iterdir()) == []

    return check
