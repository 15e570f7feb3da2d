"""Faults 9 to 15: nothing waits forever, and slow ranks are not treated as dead."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path

import pytest
from clocks import jumping
from waits import HOLDS_THE_INTERPRETER, PATIENCE

from jupyter_dist.agent.watch.pulse import KILL_HINT, collective_of, is_compiling

SOURCES = sorted((Path(__file__).parents[2] / "jupyter_dist").rglob("*.py"))


def test_c_code_that_holds_the_interpreter_is_named(pair):
    pair.run("kept = rank")
    stuck = pair.submit(f"print('in', flush=True)\n{HOLDS_THE_INTERPRETER}", [1])
    pair.wait(lambda: pair.text(1, stuck) == "in\n")
    header, _ = pair.request("interrupt", ranks=[0, 1])
    assert (header["interrupted"], header["idle"], header["unresponsive"]) == ([1], [0], [1])
    pair.wait(lambda: pair.group["ranks"][1]["state"] == "unresponsive")
    pair.wait(lambda: "it holds the GIL in C code that waits for a lock, at line " in pair.group["ranks"][1]["message"])
    assert pair.run("print('fine')", [0])["state"] == "ok"
    pair.request("kill", rank=1)
    assert pair.ended(stuck)["state"] == "lost"
    pair.wait_group("degraded")
    pair.request("replace")
    pair.wait_group("ready")
    execution = pair.run("t = torch.ones(1); dist.all_reduce(t); print(t.item(), globals().get('kept'))")
    assert pair.text(0, execution["id"]) == "2.0 0\n"


@pytest.mark.parametrize("code", ["re.match(r'(a+)+$', 'a' * 60 + 'b')", "ctypes.PyDLL(None).sleep(1000)"])
def test_c_code_that_holds_the_interpreter_and_notices_signals_is_interrupted(pair, code):
    pair.run("kept = rank")
    stuck = pair.submit(f"import ctypes, re\nif rank == 0: dist.barrier()\nprint('in', flush=True)\n{code}", [0, 1])
    pair.wait(lambda: pair.text(1, stuck) == "in\n")
    pair.request("interrupt", ranks=[0, 1])
    assert {one["ranks"]: one["status"] for one in pair.ended(stuck)["statuses"]} == {"0-1": "interrupted"}
    execution = pair.run("t = torch.ones(1); dist.all_reduce(t); print(t.item(), kept)")
    assert pair.text(1, execution["id"]) == "2.0 1\n"


def test_a_stopped_rank_is_not_dead(pair, request, tmp_path):
    go = tmp_path / "go"
    code = f"""
import os, time
for i in range(60):
    while i == 59 and rank == 1 and not os.path.exists({str(go)!r}): time.sleep(0.02)
    print(i, flush=True); time.sleep(0.02)
"""
    running = pair.submit(code, [0, 1])
    pair.wait(lambda: pair.text(1, running) != "")
    pair.kill_rank(1, signal.SIGSTOP)
    pair.wait(lambda: pair.group["ranks"][1]["state"] == "unresponsive")
    assert pair.group["ranks"][1]["message"] == "Not responding: it is stopped, by a signal or a debugger."
    since = pair.group["ranks"][1]["state_at"]
    pair.wait(lambda: pair.group["ranks"][0]["state"] == "idle")
    time.sleep(request.config.getoption("--stop-seconds"))
    pair.request("ping")
    assert pair.executions[running]["state"] == "running"
    assert pair.group["ranks"][1]["state_at"] == since
    pair.kill_rank(1, signal.SIGCONT)
    go.touch()
    assert pair.ended(running)["state"] == "ok"
    assert pair.text(1, running) == "".join(f"{i}\n" for i in range(60))
    pair.wait(lambda: pair.group["ranks"][1]["state"] == "idle")
    assert pair.run("dist.barrier()")["state"] == "ok"


def test_a_rank_that_waits_in_a_collective_says_so(pair):
    pair.run("kept = rank + 40")
    hung = pair.submit("dist.all_reduce(torch.ones(1))", [0])
    pair.wait(lambda: pair.group["ranks"][0]["message"] is not None)
    assert pair.group["ranks"][0]["message"].startswith("Waits in all_reduce")
    assert pair.group["ranks"][0]["message"].endswith("idle: 1")
    pair.request("interrupt", ranks=[0])
    assert pair.ended(hung)["state"] == "interrupted"
    execution = pair.run("t = torch.ones(1) * kept; dist.all_reduce(t); print(t.item())")
    assert pair.text(0, execution["id"]) == "81.0\n"
    assert pair.group["ranks"][0]["message"] is None


def test_a_recv_waits_as_long_as_before_once_the_process_group_was_recreated(pair):
    hung = pair.submit("dist.all_reduce(torch.ones(1))", [0])
    pair.wait(lambda: pair.group["ranks"][0]["message"] is not None)
    pair.request("interrupt", ranks=[0])
    pair.ended(hung)
    # Longer than the time in which ranks must have joined (2 s), which gloo would use for connections.
    late = "import time\nif rank: dist.recv(torch.ones(1), 0)\nelse: time.sleep(3); dist.send(torch.ones(1), 1)"
    assert pair.run(late)["state"] == "ok"


def test_a_rank_that_compiles_says_so_and_ends(pair, tmp_path):
    """A backend of torch.compile that takes its time; what it compiles is a module in DistributedDataParallel."""
    go = tmp_path / "go"
    compiling = pair.submit(
        "import os, time, torch\n"
        "def slow(graph, inputs):\n"
        f"    while not os.path.exists({str(go)!r}): time.sleep(0.05)\n"
        "    return graph.forward\n"
        "class Own(torch.nn.Linear):\n"
        "    def forward(self, x): return super().forward(x) * 2\n"
        "model = torch.nn.parallel.DistributedDataParallel(Own(2, 1))\n"
        "compiled, x = torch.compile(model, backend=slow), torch.ones(1, 2)\n"
        "compiled(x).sum().backward()\n"
        "print(torch.equal(compiled(x), model.module(x)), model.module.weight.grad.tolist())",
        [0, 1],
    )
    messages = lambda: [rank["message"] or "" for rank in pair.group["ranks"]]  # noqa: E731
    pair.wait(lambda: all(text.startswith("Compiles with torch.compile (") for text in messages()))
    go.touch()
    assert pair.ended(compiling)["state"] == "ok"
    assert pair.text(1, compiling) == "True [[2.0, 2.0]]\n"


def test_what_was_compiled_is_not_the_compiler():
    assert is_compiling({"stack": [{"file": "cell"}, {"file": "/x/torch/_inductor/graph.py"}]})
    assert not is_compiling(
        {"stack": [{"file": "/x/torch/_dynamo/eval_frame.py"}, {"file": "/tmp/torchinductor/c.py"}]}
    )
    assert not is_compiling({})


def test_the_collective_is_the_outermost_of_torch():
    file = "/x/torch/distributed/distributed_c10d.py"
    stack = [{"file": "cell", "function": "f"}, {"file": file, "function": "all_gather_object"}]
    recorded = {"name": "all_reduce", "group": "0", "seq": 3}
    inner = {"file": file, "function": "all_gather"}
    assert collective_of({"stack": [*stack, inner], "collective": recorded}) == "all_gather_object"
    assert collective_of({"stack": stack[:1], "collective": recorded}) == "all_reduce"
    assert collective_of({"stack": stack[:1], "collective": None}) is None


def test_interrupts_at_the_worst_times(make_agent):
    """While the group starts, with nothing running, and twenty times in a row."""
    own = make_agent(forked=False).client()  # its zygote still imports
    own.start(2, wait=False)
    early = own.submit("print('early')", [0, 1])
    for _ in range(20):
        own.request("interrupt", ranks=[0, 1])
    own.wait_group("ready")
    assert own.ended(early)["state"] in ("ok", "interrupted")
    own.run("kept = 3")
    for _ in range(20):
        own.request("interrupt", ranks=[0, 1])
    running = own.submit("import time\nwhile True: time.sleep(0.01)", [0, 1])
    own.wait(lambda: own.executions[running]["state"] == "running")
    for _ in range(20):
        own.request("interrupt", ranks=[0, 1])
    assert own.ended(running)["state"] == "interrupted"
    execution = own.run("dist.barrier(); print(kept)")
    assert [own.text(rank, execution["id"]) for rank in (0, 1)] == ["3\n", "3\n"]
    own.wait(lambda: [rank["state"] for rank in own.group["ranks"]] == ["idle", "idle"])


@pytest.mark.timeout(900)
def test_a_cell_that_says_nothing_is_left_alone(pair, request):
    seconds = request.config.getoption("--silent-seconds")
    execution = pair.run(f"import time; time.sleep({seconds}); dist.barrier()", timeout=seconds + PATIENCE)
    assert execution["state"] == "ok"
    assert pair.group["note"] is None


@pytest.fixture
def jumping_clock(tmp_path):
    return jumping(tmp_path)


def test_a_clock_that_jumps_a_day_ends_frees_and_times_out_nothing(make_agent, jumping_clock, tmp_path):
    """Fault 15: agent, zygote and ranks see their wall clock go forward a day, and back two, in the middle of a cell."""
    offset, env = jumping_clock
    client = make_agent(env=env).client()
    client.start(2, lease_seconds=PATIENCE)
    code = """
import os, time
began = time.time()
print("began", flush=True)
while not os.path.exists({jumped!r}): time.sleep(0.03)
for i in range(40): time.sleep(0.03)
print(int(time.time() - began) // 1000)
"""
    for days, said in ((1, "86"), (-1, "-173"), (0, "86")):
        jumped = tmp_path / f"jumped to {days}"
        running = client.submit(code.format(jumped=str(jumped)), [0, 1])
        client.wait(lambda r=running: all(client.text(rank, r) == "began\n" for rank in (0, 1)))
        offset.write_text(str(days * 86_400))
        jumped.touch()
        assert client.ended(running)["state"] == "ok"
        text = client.text(0, running)
        assert text.startswith(f"began\n{said}"), text  # the clock did jump for them
        looping = client.submit("while True: pass", [0, 1])
        client.wait(lambda r=looping: client.executions[r]["state"] == "running")
        client.request("interrupt", ranks=[0, 1])
        assert client.ended(looping)["state"] == "interrupted"
    client.close()
    offset.write_text(str(86_400))  # longer than the lease, by the wall clock
    time.sleep(2.5)
    again = client.agent.client()
    again.hello()
    again.request("follow", since=0)
    assert again.run("dist.barrier()")["state"] == "ok"


def test_the_wall_clock_decides_nothing():
    """A clock that jumps by a day must not end, free or time out anything."""
    # The ages of files, saves and samples, which are wall clock's; ages and ends that are only shown or told.
    allowed = {
        "directories.py",
        "copies.py",
        "status.py",
        "owners.py",
        "answers.py",
        "samples.py",
        "notices.py",
        "removal.py",
        "beforeend.py",
        "lsf.py",
    }
    for path in SOURCES:
        for line in path.read_text().splitlines():
            if "time.time()" in line and path.name not in allowed:
                assert not re.search(r"time\.time\(\)\s*[-+<>]|[-+<>]\s*time\.time\(\)", line), (path, line)


# Within `try`, as the interrupt may come at once.
SAYS_IN_ONCE = "said = iter(['in\\n']); say = lambda: print(next(said, ''), end='', flush=True)"
STUBBORN = {
    "swallows": (
        f"import time; {SAYS_IN_ONCE}\nwhile True:\n    try:\n        say(); time.sleep(1000)\n    except: pass",
        "Still in time.sleep (cell line 4)",
    ),
    "computes": (
        f"a = torch.rand(9000, 9000); {SAYS_IN_ONCE}\nwhile True:\n    try:\n        say(); a @ a\n    except BaseException: pass",
        "Still in a @ a (cell line 4)",
    ),
    "holds": (
        f"print('in', flush=True)\n{HOLDS_THE_INTERPRETER}",
        "Not responding: it holds the GIL in C code that waits for a lock",
    ),
    "releases": (
        "import ctypes\nsleep = ctypes.CDLL(None).pause\nprint('in', flush=True)\nwhile True: sleep()",
        "Still in sleep (cell line 4)",
    ),
}


@pytest.mark.parametrize("how", STUBBORN)
def test_what_an_interrupt_does_not_end_is_named_with_the_way_to_kill(pair, how):
    code, names = STUBBORN[how]
    if how == "releases":  # every signal masked, and C code that waits
        code = f"import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\n{code}".replace(
            "sleep (cell line 4)", "sleep (cell line 6)"
        )
        names = "Still in sleep (cell line 6)"
    stuck = pair.submit(code, [1])
    pair.wait(lambda: pair.text(1, stuck) == "in\n")
    pair.request("interrupt", ranks=[1])
    pair.wait(lambda: pair.group["ranks"][1]["ignores_interrupt"])
    message, said = (pair.group["ranks"][1][name] for name in ("message", "message_words"))
    assert re.match(r"Interrupted \d+ s ago\. ", message)
    assert [said[0]["text"], said[-1]["text"]] == ["Interrupted %1 s ago.", KILL_HINT]
    assert names in message
    assert "kill this rank" in message
    assert pair.run("print('fine')", [0])["state"] == "ok"
    pair.request("kill", rank=1)
    assert pair.ended(stuck)["state"] == "lost"
    assert pair.group["ranks"][0]["ignores_interrupt"] is False
