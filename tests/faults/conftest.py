"""Real agents, real ranks, real damage."""

import os
import time
from pathlib import Path

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


@pytest.fixture
def few_pids():
    """A control group in which there can be 60 processes and threads."""
    for path in (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup")):
        folder = path / f"jupyter-dist-pids-{os.getpid()}"
        try:
            folder.mkdir()
            (folder / "pids.max").write_text("60")
        except OSError:
            if folder.exists():
                folder.rmdir()
            continue
        yield folder
        deadline = time.monotonic() + 5
        while folder.exists() and time.monotonic() < deadline:
            try:
                folder.rmdir()
            except OSError:
                time.sleep(0.05)
        return
    pytest.skip("needs a control group that counts processes")
