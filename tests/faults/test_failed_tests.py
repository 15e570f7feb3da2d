"""A test that fails, times out, or breaks in a fixture leaves no process; checked with a run of pytest."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from waits import running, until

from jupyter_dist.system.processes import command_line, processes

TESTS = Path(__file__).parents[1]

FAILING = """
import multiprocessing.shared_memory, os, subprocess, time
import pytest, waits
from jupyter_dist.system.processes import command_line, processes
from leaks import nothing_left
from agent.harness import AgentProcess

@pytest.fixture
def breaks(tmp_path):
    AgentProcess(tmp_path / "g", forked=False).client()
    raise ValueError

@pytest.fixture
def watched(monkeypatch):
    monkeypatch.setattr("leaks.SETTLE_SECONDS", 0.1)
    with nothing_left():
        yield

def test_error_in_a_fixture(breaks):
    pass

@pytest.mark.timeout(2)
def test_timeout(tmp_path):
    subprocess.Popen(["sleep", "987654"], start_new_session=True)
    if os.fork() == 0:
        subprocess.Popen(["sleep", "987655"], start_new_session=True)
        os._exit(0)
    time.sleep(60)

def test_that_is_watched(watched):
    subprocess.Popen(["sleep", "987656"])
    # Nobody is to remove it: as after a tracker that was killed.
    open("/dev/shm/psm_of_a_test_that_failed", "x").close()

def test_after_it():
    # It was killed, which takes a moment.
    waits.until(lambda: not any(b"987656" in command_line(pid) for pid in processes()))
    assert not os.path.exists("/dev/shm/psm_of_a_test_that_failed")
"""


def test_a_run_with_failures_leaves_nothing(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("f")  # short, for the paths of unix sockets
    (tmp_path / "test_failing.py").write_text(FAILING)
    environment = {**os.environ, "PYTHONPATH": f"{TESTS}:{TESTS.parent}"}
    command = [sys.executable, "-m", "pytest", "-p", "leaks", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    command += ["--basetemp", str(tmp_path / "base"), str(tmp_path / "test_failing.py")]
    run = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert "1 failed, 2 passed, 2 errors" in run.stdout, run.stdout + run.stderr
    assert "/dev/shm/psm_of_a_test_that_failed" in run.stdout
    commands = [b" ".join(command_line(pid)) for pid, found in processes().items() if not found.has_ended]
    ours = (b"98765", os.fsencode(tmp_path))
    assert not [command for command in commands if any(mark in command for mark in ours)]


def test_a_program_is_ended_without_a_wait_for_what_holds_its_output():
    code = "import subprocess; print(subprocess.Popen(['sleep', '1000']).pid, flush=True)"
    with running([sys.executable, "-c", code]) as program:
        child = int(program.stdout.readline())
    until(lambda: b"sleep" in command_line(child))  # empty in the instant of its exec
    os.kill(child, signal.SIGKILL)
