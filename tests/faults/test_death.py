"""Faults 1 to 8: the death of a rank is explained, does not affect others, and can be repaired."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from agent.harness import BOOT, AgentProcess
from waits import PATIENCE

from jupyter_dist.agent.processes.death import ZYGOTE_KILLED, Ending, OutOfMemory, describe
from jupyter_dist.agent.processes.rank_process import LOST_CHANNEL
from jupyter_dist.journal.reader import rank_page
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.operations import BY_NAME
from jupyter_dist.system.processes import is_exiting
from jupyter_dist.transport.frames import encode_frame


def test_an_idle_rank_that_is_killed_is_named(pair):
    pair.run("x = 5")
    pair.kill_rank(1)
    pair.wait(lambda: pair.group["ranks"][1]["state"] == "dead")
    assert pair.group["ranks"][1]["exit"]["reason"].startswith("was killed (SIGKILL")
    assert pair.group["ranks"][1]["exit"]["peak_bytes"] > 50_000_000
    with pytest.raises(JupyterDistError, match=r"Rank 1 was killed.*Run on the other ranks .*restart"):
        pair.submit("1", [0, 1])
    execution = pair.run("print(x)", [0])
    assert pair.text(0, execution["id"]) == "5\n"


def test_an_abort_in_cpp_code_is_named_with_its_cause_and_without_our_frames(pair):
    """gloo aborts the rank whose tensor is smaller, which may be the one that was right."""
    execution = pair.run("t = torch.ones(1000 if rank else 2000)\ndist.all_reduce(t)")
    assert execution["state"] == "lost"
    pair.wait(lambda: pair.group["ranks"][1]["state"] == "dead")
    told = pair.group["ranks"][1]["exit"]
    assert "2000 vs 1000" in told["reason"]
    assert told["reason"].startswith("was killed (SIGABRT: ")
    assert "terminate called after throwing an instance of 'gloo::EnforceNotMet'" in told["stderr"]
    assert re.search(r'File "<ipython-input-.*", line 2 in <module>', told["stderr"])
    assert "jupyter_dist/rank" not in told["stderr"]


@pytest.mark.parametrize("world_size", [3, 4])
def test_no_survivor_waits_for_a_dead_rank(own, world_size):
    """Neighbours in the ring see the broken connection; the others must be told."""
    own.start(world_size)
    ranks = range(world_size)
    own.run("kept = rank", ranks)
    code = "print('in', flush=True)\nif rank == 1:\n    import time; time.sleep(1000)\ndist.all_reduce(torch.ones(1))"
    hung = own.submit(code, ranks)
    own.wait(lambda: all(own.text(rank, hung) == "in\n" for rank in ranks))
    own.kill_rank(1)
    ended = own.ended(hung)
    assert ended["state"] == "lost"
    assert {s["ranks"]: s["status"] for s in ended["statuses"]}["1"] == "lost"
    errors = {h["rank"]: p for h, p in own.records if h["kind"] == "error" and h["execution_id"] == hung}
    assert set(errors) == set(ranks) - {1}
    assert all(b"Rank 1 was killed" in text for text in errors.values()), errors
    # The next one ends too, on any set of ranks, and does not wait for torch's half an hour.
    again = own.run("dist.all_reduce(torch.ones(1))", [0, 2])
    assert again["state"] == "error"
    own.request("replace")
    own.wait_group("ready")
    execution = own.run("t = torch.ones(1); dist.all_reduce(t); print(t.item(), globals().get('kept'))", ranks)
    assert [own.text(rank, execution["id"]) for rank in ranks] == [
        f"{world_size}.0 {None if rank == 1 else rank}\n" for rank in ranks
    ]


def test_a_rank_that_dies_while_the_group_forms_anew_holds_nobody_up(own):
    own.start(3)
    own.kill_rank(1)
    own.wait_group("degraded")
    own.request("replace")
    own.wait(lambda: own.group["ranks"][1]["state"] in ("starting", "joining"))
    own.kill_rank(2)
    own.wait_group("degraded", "ready")
    assert own.group["ranks"][2]["state"] == "dead"
    assert own.run("print('here')", [0])["state"] == "ok"
    own.wait(lambda: own.group["state"] == "degraded")
    own.request("replace")
    own.wait_group("ready")
    assert own.run("dist.barrier()", range(3))["state"] == "ok"


def test_all_ranks_at_once(pair):
    pair.run("print('before')")
    for rank in (0, 1):
        pair.kill_rank(rank)
    pair.wait_group("dead")
    with pytest.raises(JupyterDistError, match="Restart it"):
        pair.submit("1", [0])
    with pytest.raises(JupyterDistError, match=r"it is dead\. All of its ranks are dead: restart it"):
        pair.request("replace")
    of_parts = {"resize": {"num_ranks": 3}, "park": {"to": "host", "folder": None}}
    for request, fields in (*((name, of_parts[name]) for name in of_parts if name in BY_NAME), ("reform", {})):
        with pytest.raises(JupyterDistError, match=r"dead.*Restart it"):
            pair.request(request, **fields)
    page, _ = rank_page(pair.agent.directory / "journal", 0, None, 100_000)
    assert any(b"before" in record.frame for record in page)
    pair.request("restart")
    pair.wait_group("ready")
    assert pair.run("dist.barrier()")["state"] == "ok"


def test_one_rank_is_killed_on_request(pair):
    pair.run("kept = 1")
    stuck = pair.submit("import ctypes\nprint('in', flush=True)\nctypes.PyDLL(None).sleep(1000)", [1])
    pair.wait(lambda: pair.text(1, stuck) == "in\n")
    other = pair.submit("import time; time.sleep(0.5); print(kept)", [0])
    pair.request("kill", rank=1)
    assert pair.ended(stuck)["error"]["message"] == "Rank 1 was killed (on request)."
    assert pair.ended(other)["state"] == "ok"


def test_a_rank_that_became_another_program_is_ended(pair):
    execution = pair.run("import os\nif rank == 1: os.execv('/bin/sleep', ['sleep', '1000'])")
    assert execution["state"] == "lost"
    assert "lost its channel" in execution["error"]["message"]
    assert pair.run("1", [0])["state"] == "ok"


def test_what_the_ranks_of_a_killed_agent_started_ends_too(tmp_path):
    process = AgentProcess(tmp_path / "g")
    client = process.client()
    client.start(2)
    code = """
import multiprocessing, os, subprocess, time
subprocess.Popen(['sleep', '1000'], start_new_session=True)
os.system('sleep 1000 &')
multiprocessing.get_context('fork').Process(target=time.sleep, args=(1000,)).start()
ctypes = __import__('ctypes'); print('stuck', flush=True); ctypes.PyDLL(None).sleep(1000)
"""
    execution = client.submit(code, [0, 1])
    client.wait(lambda: all(client.text(rank, execution) == "stuck\n" for rank in (0, 1)))
    os.kill(process.process.pid, signal.SIGKILL)
    process.process.wait(PATIENCE)
    client.close()
    # That nothing is left is what the fixture of this folder checks; the journal can still be read.
    assert any((process.directory / "journal").iterdir())


def test_out_of_memory_is_said_only_when_the_kernel_says_so(tmp_path):
    counter = tmp_path / "memory.events"
    counter.write_text("low 0\noom 3\noom_kill 2\n")
    watch = OutOfMemory((counter,))
    ending = Ending(None, signal.SIGKILL, 3 << 30)
    assert not watch.explain("first", ending).out_of_memory
    counter.write_text("low 0\noom 4\noom_kill 3\n")
    assert not watch.explain("first", Ending(1, None)).out_of_memory
    assert watch.explain("first", ending).out_of_memory
    assert not watch.explain("second", ending).out_of_memory, "one kill, two dead"
    assert describe(ending, True, None) == "was killed (out of memory when it held 3.0 GiB: SIGKILL)"
    assert describe(ending, True, LOST_CHANNEL) == "was killed (out of memory when it held 3.0 GiB: SIGKILL)"
    other = "was killed (SIGKILL, by another process, not by the kernel, peak memory 3.0 GiB)"
    assert describe(ending, False, None) == other
    lost = Ending(None, signal.SIGKILL, because=ZYGOTE_KILLED)
    assert describe(lost, False, None) == f"was killed ({ZYGOTE_KILLED})"
    assert describe(lost, True, None) == f"was killed ({ZYGOTE_KILLED}, out of memory)"
    assert describe(Ending(None, 34), False, None) == "was killed (SIGRTMIN)"


def test_the_kernels_kills_explain_as_many_deaths_and_only_those_of_the_last_seconds(tmp_path):
    """Both files count a kill of ours; the machine's counts others, too: a worker of hours ago is no rank of now."""
    ours, machine = tmp_path / "memory.events", tmp_path / "vmstat"

    def count(kills, of_others):
        ours.write_text(f"oom_kill {kills}\n")
        machine.write_text(f"pgfree 7\noom_kill {kills + of_others}\n")

    count(0, 0)
    watch, now = OutOfMemory((machine, ours)), time.monotonic()
    killed = Ending(None, signal.SIGKILL)
    count(2, 0)
    watch.look(now)
    assert [watch.explain(rank, killed).out_of_memory for rank in "abc"] == [True, True, False]
    lost = Ending(None, signal.SIGKILL, because=ZYGOTE_KILLED)
    count(3, 0)
    assert [watch.explain(rank, lost).out_of_memory for rank in "def"] == [True] * 3, "one zygote, all of its ranks"
    count(3, 4)
    for second in range(1, 90):
        watch.look(now + second)
    assert not watch.explain("g", killed).out_of_memory


@pytest.fixture
def small_cgroup():
    """A control group with 1 GiB, where we may make one."""
    path = Path("/sys/fs/cgroup/memory") / f"jupyter-dist-test-{os.getpid()}"
    try:
        path.mkdir()
        (path / "memory.limit_in_bytes").write_text(str(1 << 30))
        if not (path / "memory.oom_control").read_text().count("oom_kill "):
            pytest.skip("this kernel does not count")
    except OSError:
        pytest.skip("needs a writable memory control group (v1)")
    yield path
    deadline = time.monotonic() + 5
    while path.exists() and time.monotonic() < deadline:
        subprocess.run(["rmdir", str(path)], check=False, stderr=subprocess.DEVNULL)


def test_the_real_out_of_memory_killer(small_cgroup, make_agent):
    process = make_agent(forked=False)  # so that the zygote is there, too
    client = process.client()
    (small_cgroup / "cgroup.procs").write_text(str(process.process.pid))
    client.start(2)
    client.run("x = 1")
    execution = client.run("hog = [bytearray(b'x') * (64 << 20) for _ in range(40)]", [1])
    if execution["state"] == "ok":
        pytest.skip("this kernel does not enforce the limit")
    assert "out of memory" in str(execution["error"]) or "MemoryError" in str(client.records)


@pytest.fixture
def counted(tmp_path):
    """An agent for which the file `vmstat` is the kernel's, whose count of kills the test can raise."""
    counter, boot = tmp_path / "vmstat", tmp_path / "boot.py"
    if subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True).returncode:
        pytest.skip("needs a mount namespace of its own")
    counter.write_text("oom_kill 0\n")
    mounted = f"mount --bind {counter} /proc/vmstat && exec {sys.executable} {BOOT} "
    boot.write_text(
        f"import os, sys\nos.execvp('unshare', ['unshare', '--mount', 'sh', '-c', {mounted!r} + ' '.join(sys.argv[1:])])"
    )
    with AgentProcess(tmp_path / "g", boot=boot) as client:
        yield client, counter


def test_an_old_kill_for_memory_does_not_explain_what_we_kill(counted):
    """A worker that a rank survived, or another program: the count stays up."""
    client, counter = counted
    client.start(2)
    counter.write_text("oom_kill 1\n")
    client.request("kill", rank=1)
    client.wait_group("degraded")
    client.request("restart")
    client.wait_group("ready")
    notes = [data.decode() for header, data in client.records if header["kind"] == "note"]
    assert "Rank 1 was killed (on request)." in notes
    assert "Rank 0 ended (the group was restarted)." in notes
    assert not [note for note in notes if "memory" in note or "by another process" in note]


def test_a_kill_for_memory_is_reported_over_all_ranks(counted):
    """The kill is real, but not by the kernel: it would choose from all of the machine. Only its count is the test's."""
    client, counter = counted
    client.start(3)
    client.run("net = torch.nn.Linear(4096, 4096, bias=False)", range(3))
    hung = client.submit("import time\nprint('in', flush=True)\ntime.sleep(1000 * (rank == 1))", range(3))
    client.wait(lambda: all(client.text(rank, hung) == "in\n" for rank in range(3)))
    counter.write_text("oom_kill 1\n")
    client.kill_rank(1)
    assert "(out of memory when it held" in client.ended(hung)["error"]["message"]
    said = re.compile(
        r"When the kernel killed rank 1, the other ranks on its machine held: rank [02] 0\.\d GiB, rank [02] 0"
    )
    client.wait(lambda: any(h["kind"] == "note" and said.match(data.decode()) for h, data in client.records))
    for rank in (0, 2):
        client.wait(lambda rank=rank: "del net  (64.0 MiB)" in client.text(rank, hung, "stderr"))
        assert client.text(rank, hung, "stderr").startswith("Memory was short on this machine: Variables, results and")
    assert client.run("print(1)", [0, 2])["state"] == "ok"


@pytest.mark.parametrize(
    "said",
    [
        b"junk" * 1000,
        encode_frame({"t": "stream", "name": "nonsense", "execution_id": None}, b"x"),
        encode_frame({"t": "output", "msg_type": "display_data", "execution_id": 10**9}, b"{}"),
        encode_frame({"t": "nonsense"}),
    ],
    ids=["bytes", "stream", "output", "message"],
)
def test_a_rank_that_speaks_junk_is_ended_and_named(pair, said):
    code = (
        f"said = {said!r}"
        + """
import os, stat
for name in os.listdir('/proc/self/fd') if rank == 1 else ():
    try:
        if int(name) >= 100 and stat.S_ISSOCK(os.fstat(int(name)).st_mode): os.write(int(name), said)
    except OSError: pass
import time; time.sleep(1000 * (rank == 1))
"""
    )
    execution = pair.run(code)
    assert execution["state"] == "lost"
    assert execution["error"]["message"].startswith("Rank 1 ")
    assert pair.run("1", [0])["state"] == "ok"


@pytest.mark.parametrize(
    "code",
    [
        "a = []\nfor _ in range(1_000_000): a = [a]\nimport sys; sys.setrecursionlimit(10**9)\nprint(repr(a)[:1])",
        "import faulthandler, os; os.abort()",
        "import ctypes\nclose = ctypes.CDLL(None).close\nfor fd in range(3, 1000): close(fd)",
    ],
    ids=["stack overflow", "abort", "all descriptors closed"],
)
def test_other_ways_to_die_are_named(pair, code):
    execution = pair.run("if rank == 1:\n    " + code.replace("\n", "\n    "))
    assert execution["state"] == "lost"
    assert execution["error"]["message"].startswith("Rank 1 ")
    assert pair.run("print(1)", [0])["state"] == "ok"


def test_a_process_that_exits_by_itself_is_not_one_that_was_killed():
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert is_exiting(child.pid)
    assert not is_exiting(os.getpid())
    child.wait()
    assert is_exiting(child.pid)
