"""Processes of Linux: who is below whom, at a cost that does not grow with the machine's other processes."""

import os
import subprocess
import sys

import leaks
import pytest
import waits

from jupyter_dist.system import processes
from jupyter_dist.system.processes import TreeShutdown, below, descendants, name_of

# A thread that has ended leaves its child to another; one that lives keeps it.
FAMILY = """
import subprocess, sys, threading
told, ended = threading.Event(), threading.Event()
def start():
    subprocess.Popen(["sleep", "600"])
    told.set()
    ended.wait()
threading.Thread(target=start, daemon=True).start()
told.wait()
subprocess.Popen([sys.executable, "-c", "import subprocess; subprocess.run(['sleep', '600'])"])
sys.stdin.read()
"""


@pytest.fixture
def family():
    """A process with a child of its second thread, and a child that has a child."""
    parent = subprocess.Popen([sys.executable, "-c", FAMILY], stdin=subprocess.PIPE)
    try:
        waits.until(lambda: [name_of(pid) for pid in descendants(parent.pid)].count("sleep") == 2)
        yield parent
    finally:
        for pid in [*descendants(parent.pid), parent.pid]:
            leaks.kill(pid)
        parent.communicate()


def test_all_below_are_found_as_in_a_list_of_all_processes(family, monkeypatch):
    quick = {process.pid for process in below(family.pid)}
    monkeypatch.setattr(processes, "_TELLS_CHILDREN", False)  # some kernels
    assert quick == {process.pid for process in below(family.pid)}
    assert len(quick) == 3


def test_ending_a_tree_reads_no_other_process(family, monkeypatch):
    # With n ranks, n shims end their trees at the same time: reading all of /proc each time makes that O(n * n).
    read = []
    monkeypatch.setattr(
        processes, "read_process", lambda pid, real=processes.read_process: read.append(pid) or real(pid)
    )
    everything = set(descendants(family.pid))
    monkeypatch.setattr(processes, "processes", lambda: pytest.fail("reads every process of the machine"))
    ending = TreeShutdown(family.pid)
    waits.until(ending.step)
    assert set(read) == everything
    assert set(ending.killed) == everything
    assert os.getpid() not in read


# exit_group ends a process; exit, by its number, ends one thread: its first one leaves a zombie whose others run.
WITHOUT_FIRST_THREAD = """
import ctypes, os, threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)
"""


def test_a_process_has_not_ended_while_a_thread_of_it_runs():
    # Nor while its threads free its memory after a kill, which takes the longer the more there is.
    process = subprocess.Popen([sys.executable, "-c", WITHOUT_FIRST_THREAD])
    waits.until(lambda: processes.read_process(process.pid).state == "Z")
    started = processes.read_process(process.pid).started
    assert process.pid in descendants(os.getpid())
    assert processes.is_same(process.pid, started)
    process.kill()
    waits.until(lambda: processes.read_process(process.pid).has_ended)
    assert process.pid not in descendants(os.getpid())
    assert not processes.is_same(process.pid, started)
    process.wait()


UNREADABLE = """
import os, resource
from jupyter_dist.system.processes import is_same, read_process
parent = read_process(os.getppid())
resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
assert read_process(parent.pid) is None
print(is_same(parent.pid, parent.started), is_same(2**22 + 1, 1))
"""


def test_a_process_that_cannot_be_read_has_not_ended():
    """It may own a group, which ends with it."""
    asked = subprocess.run([sys.executable, "-c", UNREADABLE], capture_output=True, text=True, check=True)
    assert asked.stdout == "True False\n"
