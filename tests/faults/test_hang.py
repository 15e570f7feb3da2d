"""Faults 9 to 15: nothing of ours waits for ever, and nothing that only takes long is taken for dead."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path

from jupyter_dist.agent.pulse import collective_of

SOURCES = sorted((Path(__file__).parents[2] / "jupyter_dist").rglob("*.py"))


def test_c_code_that_holds_the_interpreter_is_named_after_two_seconds(own):
    own.start(2)
    own.run("kept = rank")
    stuck = own.submit("import ctypes\nprint('in', flush=True)\nctypes.PyDLL(None).sleep(100)", [1])
    own.wait(lambda: own.text(1, stuck) == "in\n")
    asked = time.monotonic()
    header, _ = own.request("interrupt", ranks=[0, 1])
    assert 1.5 < time.monotonic() - asked < 5
    assert (header["interrupted"], header["idle"], header["unresponsive"]) == ([1], [0], [1])
    own.wait(lambda: own.group["ranks"][1]["state"] == "unresponsive")
    assert "C code holds the interpreter" in own.group["ranks"][1]["message"]
    assert own.run("print('fine')", [0])["state"] == "ok"
    own.request("kill", rank=1)
    assert own.ended(stuck)["state"] == "lost"
    own.wait_group("degraded")
    own.request("replace")
    own.wait_group("ready")
    execution = own.run("t = torch.ones(1); dist.all_reduce(t); print(t.item(), globals().get('kept'))")
    assert own.text(0, execution["id"]) == "2.0 0\n"


def test_a_stopped_rank_is_not_dead(own):
    own.start(2)
    code = "import time\nfor i in range(60):\n    print(i, flush=True); time.sleep(0.02)"
    running = own.submit(code, [0, 1])
    own.wait(lambda: own.text(1, running) != "")
    own.kill_rank(1, signal.SIGSTOP)
    own.wait(lambda: own.group["ranks"][1]["state"] == "unresponsive", timeout=15)
    since = own.group["ranks"][1]["state_at"]
    own.wait(lambda: own.group["ranks"][0]["state"] == "idle")
    assert own.executions[running]["state"] == "running"
    assert own.group["ranks"][1]["state_at"] == since
    own.kill_rank(1, signal.SIGCONT)
    assert own.ended(running)["state"] == "ok"
    assert own.text(1, running) == "".join(f"{i}\n" for i in range(60))
    own.wait(lambda: own.group["ranks"][1]["state"] == "idle", timeout=15)
    assert own.run("dist.barrier()")["state"] == "ok"


def test_a_rank_that_waits_in_a_collective_says_so(own):
    own.start(2)
    own.run("kept = rank + 40")
    hung = own.submit("dist.all_reduce(torch.ones(1))", [0])
    own.wait(lambda: own.group["ranks"][0]["message"] is not None, timeout=15)
    assert own.group["ranks"][0]["message"].startswith("Waits in all_reduce")
    assert own.group["ranks"][0]["message"].endswith("idle: 1")
    asked = time.monotonic()
    own.request("interrupt", ranks=[0])
    assert own.ended(hung, timeout=8)["state"] == "interrupted"
    assert time.monotonic() - asked < 3 + 3
    execution = own.run("t = torch.ones(1) * kept; dist.all_reduce(t); print(t.item())")
    assert own.text(0, execution["id"]) == "81.0\n"
    assert own.group["ranks"][0]["message"] is None


def test_the_collective_is_the_outermost_of_torch():
    file = "/x/torch/distributed/distributed_c10d.py"
    stack = [{"file": "cell", "function": "f"}, {"file": file, "function": "all_gather_object"}]
    recorded = {"name": "all_reduce", "group": "0", "seq": 3}
    inner = {"file": file, "function": "all_gather"}
    assert collective_of({"stack": [*stack, inner], "collective": recorded}) == "all_gather_object"
    assert collective_of({"stack": stack[:1], "collective": recorded}) == "all_reduce"
    assert collective_of({"stack": stack[:1], "collective": None}) is None


def test_interrupts_at_the_worst_times(own):
    """While the group starts, with nothing running, and twenty times in a row."""
    own.start(2, wait=False)
    early = own.submit("print('early')", [0, 1])
    for _ in range(20):
        own.request("interrupt", ranks=[0, 1])
    own.wait_group("ready", timeout=40)
    assert own.ended(early)["state"] in ("ok", "interrupted")
    own.run("kept = 3")
    for _ in range(20):
        own.request("interrupt", ranks=[0, 1])
    running = own.submit("import time\nwhile True: time.sleep(0.01)", [0, 1])
    own.wait(lambda: own.executions[running]["state"] == "running")
    for _ in range(20):
        own.request("interrupt", ranks=[0, 1])
    assert own.ended(running, timeout=8)["state"] == "interrupted"
    execution = own.run("dist.barrier(); print(kept)")
    assert [own.text(rank, execution["id"]) for rank in (0, 1)] == ["3\n", "3\n"]
    own.wait(lambda: [rank["state"] for rank in own.group["ranks"]] == ["idle", "idle"])


def test_the_wall_clock_decides_nothing():
    """A clock that jumps by a day must not end, free or time out anything."""
    allowed = {"directories.py", "memory.py"}  # the ages of a file and of samples, which are wall clock's
    for path in SOURCES:
        for line in path.read_text().splitlines():
            if "time.time()" in line and path.name not in allowed:
                assert not re.search(r"time\.time\(\)\s*[-+<>]|[-+<>]\s*time\.time\(\)", line), (path, line)
