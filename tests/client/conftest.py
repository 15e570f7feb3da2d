"""A private server of our own and one group on it: nothing of the user's is seen or touched."""

import os
from pathlib import Path

import pytest

from jupyter_dist.client import Client

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session", autouse=True)
def own_runtime(tmp_path_factory):
    """Where this session's servers write their files; processes that are started inherit it."""
    with pytest.MonkeyPatch.context() as patch:
        # Group directories hold sockets, whose paths are short.
        patch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path_factory.mktemp("rt")))
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
        patch.delenv("JPY_SESSION_NAME", raising=False)
        yield


@pytest.fixture(scope="session")
def client(own_runtime):
    with Client.connect() as client:
        yield client
        for group in client.groups():
            group.shutdown()


@pytest.fixture(scope="session")
def shared_group(client):
    return client.start("shared", num_ranks=2, accelerator="cpu")


@pytest.fixture
def group(shared_group):
    if shared_group.status()["state"] != "ready":
        shared_group.restart()
    return shared_group
