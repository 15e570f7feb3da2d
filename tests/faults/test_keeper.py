"""Fault 40 at its worst: agent and zygote die in the same instant, and no process that ranks had started survives."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

import pytest
from waits import PATIENCE

from .server import JupyterServer

CHILDREN = """
import multiprocessing, os, subprocess, time
subprocess.Popen(['sleep', '1000'], start_new_session=True, env={}, cwd='/')
if os.fork() == 0:  # a daemon by the book: its own session, no parent, no descriptor of ours
    os.setsid()
    if os.fork(): os._exit(0)
    os.closerange(0, 1000); time.sleep(1000)
multiprocessing.get_context('fork').Process(target=time.sleep, args=(1000,), daemon=True).start()
print('go', flush=True)
if rank: __import__('ctypes').PyDLL(None).sleep(1000)
time.sleep(1000)
"""


@pytest.fixture(params=["forked", "fresh"])
def server(tmp_path, request):
    """Of a kind whose ranks are forked, and of one where an import has made that unsafe."""
    if request.param == "forked":
        yield request.getfixturevalue("group_server")
        return
    thread = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    (tmp_path / "starts_a_thread.py").write_text(thread)
    server = JupyterServer(tmp_path, preload_modules="starts_a_thread")
    yield server
    for group in server.ask("GET", "groups")["groups"]:
        server.ask("DELETE", f"groups/{group['id']}")
    server.end()


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def below(root: int) -> set[int]:
    table = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            table[int(name)] = parent_of(int(name))
        except OSError:
            continue
    found, frontier = set(), {root}
    while frontier := {pid for pid, parent in table.items() if parent in frontier}:
        found |= frontier
    return found


def below_ranks(group: dict) -> set[int]:
    return {child for rank in group["ranks"] for child in below(rank["pid"])}


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def wait_gone(pids: set[int]) -> float:
    began = time.monotonic()
    while not all(map(is_gone, pids)):
        assert time.monotonic() - began < PATIENCE, [pid for pid in pids if not is_gone(pid)]
        time.sleep(0.005)
    return time.monotonic() - began


def test_agent_and_zygote_killed_at_once_leave_nothing(server):
    group = server.start(2, name="keeper")
    running = server.submit("keeper", CHILDREN)
    while str(server.view("keeper", running, wait=0)["items"]).count("go") < 1 or len(below_ranks(group)) < 6:
        time.sleep(0.02)
    agent = server.agent_pid(group["id"])
    everything = below(agent)
    parents = {parent_of(rank["pid"]) for rank in group["ranks"]}  # the zygote, or the agent
    for pid in parents | {agent}:
        with contextlib.suppress(ProcessLookupError):  # it ended with the one before
            os.kill(pid, signal.SIGKILL)
    print(f"{len(everything)} processes gone after {wait_gone(everything | {agent}):.3f} s")
    assert server.ask("GET", f"groups/keeper?wait={PATIENCE}&not_state=ready")["state"] == "lost"


@pytest.mark.parametrize("server", ["forked"], indirect=True)
def test_a_keeper_passes_sigterm_on_and_a_group_lives_without_one(server):
    group = server.start(2, name="ends")
    agent = server.agent_pid(group["id"])
    keeper = parent_of(agent)
    assert b"keeper" in Path(f"/proc/{keeper}/cmdline").read_bytes()
    os.kill(keeper, signal.SIGTERM)
    wait_gone({agent, keeper, *(rank["pid"] for rank in group["ranks"])})
    agent = server.agent_pid(server.start(2, name="keeper")["id"])
    keeper = parent_of(agent)
    os.kill(keeper, signal.SIGKILL)
    wait_gone({keeper})
    assert server.run("keeper", "dist.barrier()")["execution"]["state"] == "ok"
    assert server.ask("DELETE", "groups/keeper") == {"killed": []}
    wait_gone({agent})
