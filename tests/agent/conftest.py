"""Every test of this folder ends with what it began with."""

import pytest
from leaks import nothing_left

from .harness import AgentProcess


@pytest.fixture(autouse=True)
def _no_leaks():
    with nothing_left():
        yield


@pytest.fixture(scope="module")
def process(tmp_path_factory):
    """An agent with two ranks, for all tests of a file; each connects as a server of its own."""
    process = AgentProcess(tmp_path_factory.mktemp("agent") / "g")
    with process as client:
        client.start(2)
        client.close()
        yield process
