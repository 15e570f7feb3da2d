"""Faults 33 to 38: starts and shutdowns leave nothing, whatever the ranks are doing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat

import pytest
from leaks import abandoned_shared_memory, children_of
from waits import PATIENCE, until

from .server import JupyterServer

FORKS = "import os, time\nfor _ in range({number}):\n    if os.fork() == 0:\n        os.setsid(); time.sleep(1000)"
LOADER = """
class Slow(torch.utils.data.Dataset):
    def __len__(self): return 10_000
    def __getitem__(self, index):
        import time; time.sleep(0.01); return torch.zeros(1000)
print('go', flush=True)
for _ in torch.utils.data.DataLoader(Slow(), num_workers=2, batch_size=4): pass
"""
IGNORES = """
import signal, ctypes
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(number, signal.SIG_IGN)
print('go', flush=True)
ctypes.PyDLL(None).sleep(1000)
"""
SEGMENT = "shared = torch.zeros(1_000_000).share_memory_()\nprint('go', flush=True)\nimport time; time.sleep(1000)"


SPEW = """
import subprocess, sys, time
child = "import signal\\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\\nwhile True: print('spam' * 100)"
subprocess.Popen([sys.executable, '-c', child], start_new_session=True)
print('go', flush=True)
while True: print('spam' * 100); time.sleep(0.001)
"""
STOPPED = "import os, signal\nprint('go', flush=True)\nos.kill(os.getpid(), signal.SIGSTOP)"


@pytest.mark.parametrize(
    "code",
    [LOADER, IGNORES, SEGMENT, SPEW, STOPPED],
    ids=["loader", "ignores", "segment", "spews and cannot be asked to end", "stopped"],
)
def test_a_busy_group_ends_and_says_what_it_killed(make_agent, code):
    process = make_agent()
    client = process.client()
    client.start(2)
    segments = abandoned_shared_memory()
    running = client.submit(code, [0, 1])
    client.wait(lambda: all("go\n" in client.text(rank, running) for rank in (0, 1)))
    header, _ = client.request("shutdown")
    assert process.process.wait(PATIENCE) == 0
    if code is IGNORES:
        assert header["killed"] == [f"Rank {rank} did not exit in time and was killed." for rank in (0, 1)]
    assert abandoned_shared_memory() <= segments


def test_a_burst_of_processes_is_ended_and_named(make_agent):
    """200 of them; another group of this machine does not notice."""
    other = make_agent().client()
    other.start(2)
    process = make_agent()
    client = process.client()
    client.start(2)
    assert client.run(FORKS.format(number=100), [0, 1])["state"] == "ok"
    assert len(children_of(process.process.pid)) > 200
    assert other.run("dist.barrier()")["state"] == "ok"
    header, _ = client.request("shutdown")
    assert len([line for line in header["killed"] if "which a rank had started" in line]) == 200
    assert process.process.wait(PATIENCE) == 0
    assert other.run("dist.barrier()")["state"] == "ok"


def test_a_group_that_may_start_no_more_processes_ends_all_the_same(few_pids, make_agent):
    process = make_agent(forked=False)  # so that the zygote is there, too
    (few_pids / "cgroup.procs").write_text(str(process.process.pid))
    client = process.client()
    client.start(2)
    burst = client.run(FORKS.format(number=200), [0, 1])
    assert burst["state"] == "error"
    assert "BlockingIOError" in str([p for h, p in client.records if h["kind"] == "error"])
    assert client.run("print('still here')", [0, 1])["state"] == "ok"
    client.request("shutdown")
    assert process.process.wait(PATIENCE) == 0


def test_a_store_that_was_left_and_a_port_that_is_taken_break_no_start(tmp_path, make_agent):
    """Fault 34: what torch would choke on is planted where the group will look."""
    process = make_agent()
    client = process.client()
    for number in range(4):
        (process.directory / f"store-{number}").write_bytes(b"\0" * 100 + b"left from before")
    client.start(2)
    report = "import os, socket; s = socket.socket(); s.bind(('127.0.0.1', int(os.environ['MASTER_PORT']))); s.listen()"
    assert client.run(report, [0])["state"] == "ok"  # whoever has that port now: nothing of ours needs it
    assert client.run("dist.barrier()")["state"] == "ok"
    client.request("restart")
    client.wait(lambda: client.group["generation"] == 1 and client.group["state"] == "ready")
    assert client.run("dist.barrier()")["state"] == "ok"


def test_a_restart_ends_what_ranks_had_started(pair):
    pair.run(FORKS.format(number=3))
    pair.run("import subprocess; subprocess.Popen(['sleep', '1000'], start_new_session=True)")
    generation = pair.group["generation"] + 1
    pair.request("restart")
    pair.wait(lambda: pair.group["generation"] == generation and pair.group["state"] == "ready")
    left = children_of(pair.agent.process.pid)
    assert len(left) == 5, left  # the zygote, two ranks, and a shim for each


def test_a_start_that_is_ended_half_way_leaves_nothing(make_agent):
    for is_so in (lambda _: True, lambda ranks: any(rank["pid"] for rank in ranks)):
        process = make_agent(forked=False)  # its zygote still imports
        client = process.client()
        client.start(4, wait=False)
        client.wait(lambda c=client, is_so=is_so: is_so(c.group.get("ranks", [])))
        client.request("shutdown")
        assert process.process.wait(PATIENCE) == 0
        assert not process.directory.exists()


def test_a_rank_that_dies_while_the_group_starts_is_named(make_agent):
    process = make_agent()
    client = process.client()
    client.start(8, wait=False)
    client.wait(lambda: any(rank["pid"] for rank in client.group.get("ranks", [])))
    number = next(rank["rank"] for rank in client.group["ranks"] if rank["pid"])
    client.kill_rank(number)
    client.wait_group("dead")
    assert client.group["error"]["code"] == "start_failed"
    assert f"Rank {number} was killed (SIGKILL" in client.group["error"]["message"]
    assert process.process.wait(PATIENCE) == 0
    assert not process.directory.exists()


def test_a_start_that_cannot_import_is_known_by_its_reason_at_once(tmp_path):
    (tmp_path / "slow_and_broken.py").write_text("import time\ntime.sleep(3)\nraise ImportError('broken on purpose')\n")
    server = JupyterServer(tmp_path, preload_modules="slow_and_broken")
    try:
        group = server.ask("POST", "groups", {"num_ranks": 2})["id"]
        waits = server.submit(group, "1")
        after = server.ask("GET", f"groups/{group}?wait={PATIENCE}&not_state=starting")
        assert after["error"]["code"] == "start_failed", after
        assert "broken on purpose" in after["error"]["hint"]
        assert "broken on purpose" in str(server.view(group, waits))

        def hint():
            status, error = server.refused("POST", f"groups/{group}/executions", {"code": "1"})
            assert status == 409
            return error["hint"]

        until(lambda: hint() == "Shut it down and start it again.", hint)  # once its agent has ended
    finally:
        server.end()


def test_a_group_whose_ranks_have_died_is_restarted_as_its_error_says(group_server):
    for rank in (0, 1):
        group_server.ask("POST", f"groups/g/ranks/{rank}/kill")
    group_server.ask("GET", f"groups/g?wait={PATIENCE}&not_state=ready")
    group_server.ask("GET", f"groups/g?wait={PATIENCE}&not_state=degraded")
    assert group_server.refused("POST", "groups/g/executions", {"code": "1"})[1]["hint"] == "Restart it."
    group_server.ask("POST", "groups/g/restart")
    group_server.ask("GET", f"groups/g?wait={PATIENCE}&not_state=restarting")
    assert group_server.run("g", "1")["execution"]["state"] == "ok"


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_nothing_is_open_to_others_whatever_the_umask(make_agent, umask):
    old = os.umask(umask)
    try:
        process = make_agent(forked=False)
    finally:
        os.umask(old)
    client = process.client()
    client.start(2)
    client.run("print('x')")
    for path in [process.directory, *process.directory.rglob("*")]:
        if not path.is_symlink():
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    # What cells write has the user's: that of the server when it started the group's agent.
    code = f"import os; old = os.umask(0); os.umask(old); assert old == {umask}, oct(old)"
    assert client.run(code + "; assert 'JUPYTER_DIST_UMASK' not in os.environ")["state"] == "ok"
    code = "dist.destroy_process_group(); dist.init_process_group(); dist.barrier()"
    assert client.run(code)["state"] == "ok"
    assert all(stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 for path in process.directory.glob("store-*"))


def test_sigterm_ends_everything_in_order(make_agent):
    process = make_agent()
    client = process.client()
    client.start(2)
    client.submit("while True: pass", [0, 1])
    process.process.send_signal(signal.SIGTERM)
    assert process.process.wait(PATIENCE) == 0
    assert not process.directory.exists()


@pytest.mark.timeout(600)
def test_cycles_leave_things_where_they_were(make_agent, request):
    """Restarts of one agent: its descriptors, threads and children come back to the first cycle's numbers."""
    process = make_agent()
    client = process.client()
    client.start(2)
    seen = []
    for _ in range(request.config.getoption("--cycles")):
        client.run("import subprocess; subprocess.run(['true']); t = torch.ones(1); dist.all_reduce(t)")
        generation = client.group["generation"]
        client.request("restart")
        client.wait(lambda g=generation: client.group["generation"] == g + 1 and client.group["state"] == "ready")
        agent = f"/proc/{process.process.pid}"
        seen.append(
            (
                len(os.listdir(f"{agent}/fd")),
                len(os.listdir(f"{agent}/task")),
                len(children_of(process.process.pid)),
                len([path for path in process.directory.iterdir() if not path.name.startswith("store-")]),
            )
        )
    assert len(set(seen[1:])) == 1, seen
    assert len(list(process.directory.glob("store-*"))) <= 2


def test_a_group_whose_folder_is_removed_is_found_by_the_next_server(own):
    """By a cleaner of old files, twice."""
    own.start(2)
    folder = own.agent.directory
    own.run("x = 1")
    for _ in range(2):
        shutil.rmtree(folder)
        until((folder / "agent.sock").exists)
        own.wait(lambda: "the log begins here" in (own.group["note"] or ""))
        seen = own.run("print('seen')")  # on the connection from before
        assert own.text(0, seen["id"]) == "seen\n"
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        found = own.agent.client()
        found.hello()
        found.request("follow", since=0)
        kept = found.run("print('x', x)")
        assert found.text(1, kept["id"]) == "x 1\n"
        assert found.text(1, seen["id"]) == "seen\n"  # in the log
        assert json.loads((folder / "group.json").read_text())["agent_pid"] == found.group["agent_pid"]
        own = found
