"""Real agents, real ranks, real damage."""

import pytest
from agent.harness import AgentProcess
from leaks import nothing_left


@pytest.fixture(autouse=True)
def _no_leaks():
    with nothing_left():
        yield


@pytest.fixture
def make_agent(tmp_path):
    """Start an agent; a test that ends it by force says `ends_by_itself=False`."""
    open_ones = []

    def make(directory=None, **options):
        process = AgentProcess((directory or tmp_path) / f"g{len(open_ones)}", **options)
        open_ones.append(process)
        return process

    yield make
    for process in open_ones:
        process.__exit__()


@pytest.fixture
def own(make_agent):
    """An agent of one's own, without a group yet."""
    return make_agent().client()
