"""A private server of our own for the tests of the kernel's side: nothing of the user's is seen or touched."""

import os
from pathlib import Path

import pytest

from jupyter_dist.client import Client

ROOT = Path(__file__).parents[1]


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
