"""Processes that a rank started, and its files in /dev/shm, end with it, however it ends; those of others stay."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from agent.harness import AgentProcess
from waits import PATIENCE, until

from jupyter_dist.system.processes import command_line, read_process, removes_shared_memory

CHILDREN = """
import multiprocessing, os, subprocess, time
started = [
    subprocess.Popen(['sleep', '1000']).pid,
    subprocess.Popen(['sleep', '1000'], start_new_session=True, env={}, cwd='/').pid,
    multiprocessing.get_context('fork').Process(target=time.sleep, args=(1000,), daemon=True),
]
started[2].start(); started[2] = started[2].pid
reader, writer = os.pipe()
if os.fork() == 0:  # a daemon by the book: its own session, no parent, no descriptor of ours
    os.setsid()
    if os.fork(): os._exit(0)
    os.write(writer, str(os.getpid()).encode())
    os.closerange(0, 1000); time.sleep(1000); os._exit(0)
os.wait()
started.append(int(os.read(reader, 20)))
print(*started, flush=True)
"""

MEMORY = """
import multiprocessing
from multiprocessing import shared_memory
segment = shared_memory.SharedMemory(create=True, size=50_000_000)
segment.buf[:1_000_000] = bytes(1_000_000)
context = multiprocessing.get_context('spawn')
semaphores = [context.Semaphore() for _ in range(3)]
print(segment.name, *(s._semlock.name.replace('/', 'sem.') for s in semaphores), flush=True)
"""


def is_alive(pid: int) -> bool:
    process = read_process(pid)
    return process is not None and not process.has_ended


def wait_gone(pids: list[int]) -> None:
    until(lambda: not any(map(is_alive, pids)), lambda: list(filter(is_alive, pids)))


def wait_unlinked(names: list[str]) -> None:
    until(lambda: not any(map(exists, names)), lambda: list(filter(exists, names)))


def exists(name: str) -> bool:
    return Path("/dev/shm", name).exists()


def words(client, code: str, ranks=(0, 1)) -> list[list[str]]:
    """What each rank printed."""
    execution = client.run(code, ranks)
    assert execution["state"] == "ok", client.records[-3:]
    return [client.text(rank, execution["id"]).split() for rank in ranks]


def children(client, ranks=(0, 1)) -> list[list[int]]:
    found = [[int(word) for word in line] for line in words(client, CHILDREN, ranks)]
    assert all(is_alive(pid) for pids in found for pid in pids)
    return found


def parent_of(pid: int) -> int:
    process = read_process(pid)
    assert process is not None
    return process.parent


def notes(client) -> str:
    return b"\n".join(payload for header, payload in client.records if header["kind"] == "note").decode()


def test_what_a_rank_had_started_ends_with_it_and_the_others_lives_on(pair):
    first, second = children(pair)
    pair.kill_rank(1)
    wait_gone(second)
    pair.wait_group("degraded")
    assert all(map(is_alive, first))
    pair.wait(lambda: "4 process(es) that it had started were ended with it: " in notes(pair))
    pair.request("replace")
    pair.wait_group("ready")
    (second,) = children(pair, [1])
    pair.request("kill", rank=0)
    wait_gone(first)
    assert all(map(is_alive, second))


def test_a_killed_zygote_is_named_and_what_its_ranks_had_started_ends(pair):
    started = [pid for pids in children(pair) for pid in pids]
    shim = parent_of(pair.group["ranks"][0]["pid"])
    os.kill(parent_of(shim), signal.SIGKILL)
    wait_gone(started)
    pair.wait_group("dead")
    for rank in pair.group["ranks"]:
        assert "its zygote, the process that it was forked from, was killed" in rank["exit"]["reason"]
    pair.request("restart")
    pair.wait_group("ready")
    assert pair.run("dist.barrier()")["state"] == "ok"


def test_a_killed_shim_takes_its_rank_and_all_that_it_had_started(pair):
    first, second = children(pair)
    os.kill(parent_of(pair.group["ranks"][1]["pid"]), signal.SIGKILL)
    wait_gone(second)
    pair.wait_group("degraded")
    assert "the process that watches over it was killed" in pair.group["ranks"][1]["exit"]["reason"]
    assert all(map(is_alive, first))


def test_named_shared_memory_goes_with_a_killed_rank_a_restart_and_the_group(pair):
    first, second = words(pair, MEMORY)
    assert all(map(exists, first + second))
    assert os.stat(f"/dev/shm/{first[0]}").st_size >= 50_000_000
    pair.request("kill", rank=1)
    wait_unlinked(second)
    pair.wait_group("degraded")
    assert all(map(exists, first))
    pair.request("replace")
    pair.wait_group("ready")
    (second,) = words(pair, MEMORY, [1])
    generation = pair.group["generation"] + 1
    pair.request("restart")
    pair.wait(lambda: pair.group["generation"] == generation and pair.group["state"] == "ready")
    assert not any(map(exists, first + second))
    both = [name for names in words(pair, MEMORY) for name in names]
    running = pair.submit("while True: pass", [0, 1])  # not idle: it is killed
    pair.wait(lambda: pair.executions[running]["state"] == "running")
    pair.request("restart")
    wait_unlinked(both)


@pytest.mark.parametrize("whom", ["agent", "zygote"])
def test_named_shared_memory_goes_with_a_killed_agent_or_zygote(tmp_path, whom):
    process = AgentProcess(tmp_path / "g", role="keeper")
    client = process.client()
    client.start(2)
    names = [name for line in words(client, MEMORY) for name in line]
    assert all(map(exists, names))
    zygote = parent_of(parent_of(client.group["ranks"][0]["pid"]))
    agent = parent_of(zygote)
    assert parent_of(agent) == process.process.pid
    os.kill(agent if whom == "agent" else zygote, signal.SIGKILL)
    wait_unlinked(names)
    if whom == "agent":
        process.process.wait(PATIENCE)
        client.close()
    else:
        process.__exit__()


def test_trackers_are_told_from_programs_that_only_name_them(tmp_path):
    """Real ones, which wait for the end of a pipe; by the whole of what they were started with."""
    script = tmp_path / "resource_tracker.py"
    script.write_text("import time; time.sleep(1000)")
    reader, writer = os.pipe()
    os.set_inheritable(reader, True)
    try:
        for arguments, expected in [
            (["-c", f"from multiprocessing.resource_tracker import main;main({reader})"], True),
            (["-c", f"from joblib.externals.loky.backend.resource_tracker import main; main({reader}, False)"], True),
            (
                ["-c", "import time; time.sleep(1000); 'from multiprocessing.resource_tracker import main;main(5)'"],
                False,
            ),
            ([str(script)], False),
        ]:
            process = subprocess.Popen([sys.executable, *arguments], close_fds=False)
            try:
                until(lambda pid=process.pid: command_line(pid))  # nothing to see in the instant of its exec
                assert removes_shared_memory(process.pid) is expected, arguments
                assert process.poll() is None
            finally:
                process.kill()
                process.wait()
    finally:
        os.close(reader)
        os.close(writer)
