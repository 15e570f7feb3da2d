"""The answers of the side thread while the main thread is busy; start and end."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rankclient import RankClient, ZygoteClient, make_spec
from waits import PATIENCE, until

import jupyter_dist.agent.boot as boot
from jupyter_dist.protocol.wire.specs import RankSpec
from jupyter_dist.transport.frames import Header, encode_frame

BUSY = "print('go')\nwhile True: pass"


@pytest.fixture
def busy(rank: RankClient) -> RankClient:
    rank.start(BUSY)
    rank.wait_text("go")
    return rank


def test_ready_tells_what_it_is(shared: RankClient) -> None:
    ready = shared.wait_for("ready")
    assert ready["device"] == "cpu"
    assert ready["backend"] == "gloo"
    assert ready["pid"] == shared.pid
    assert ready["torch_version"][0].isdigit()
    assert shared.wait_for("phase")["phase"] == "joining"


def test_ping_and_sample_while_busy(busy: RankClient) -> None:
    assert busy.ask("ping")["ok"]
    sample = busy.ask("sample")
    assert 10 << 20 < sample["resident_bytes"] < 4 << 30
    assert [sample[name] for name in ("allocated_bytes", "reserved_bytes", "peak_bytes", "device_used_bytes")] == [
        None
    ] * 4


def test_stack_of_a_busy_rank(rank: RankClient) -> None:
    execution_id = rank.start("def inner():\n    print('go')\n    while True: pass\ndef outer():\n    inner()\nouter()")
    rank.wait_text("go")
    stack = rank.ask("stack")["stack"]
    assert [(entry["function"], entry["line"], entry["code"]) for entry in stack] == [
        ("<module>", 6, "outer()"),
        ("outer", 5, "inner()"),
        ("inner", 3, "while True: pass"),
    ]
    rank.interrupt(execution_id)
    rank.result(execution_id)
    assert rank.ask("stack")["stack"] == []


def test_stack_while_a_collective_waits(make_group: Callable[..., list[RankClient]]) -> None:
    waiting, _ = make_group(2)
    waiting.start("print('go')\ndist.barrier()")
    waiting.wait_text("go")
    stack = waiting.ask("stack")["stack"]
    assert stack[0]["code"] == "dist.barrier()"


def test_empty_cache_waits_for_the_cell(rank: RankClient) -> None:
    execution_id = rank.start("print('go')\nwhile True: pass")
    rank.wait_text("go")
    number = rank.post("empty_cache")
    rank.interrupt(execution_id)
    rank.result(execution_id)
    assert rank.answer(number)["freed_bytes"] >= 0


def test_empty_cache_frees_memory(rank: RankClient) -> None:
    rank.run(
        "class Cycle: pass\nimport gc; gc.disable()\nc = Cycle(); c.me = c; c.data = bytearray(100_000_000); del c"
    )
    assert rank.ask("empty_cache")["freed_bytes"] > 90_000_000


def test_request_that_makes_no_sense(shared: RankClient) -> None:
    answer = shared.ask("nonsense")
    assert answer["ok"] is False
    assert answer["error"]["code"] == "internal"
    assert shared.run("1").status == "ok"


def test_idle_rank_sleeps(rank: RankClient) -> None:
    threads = rank.run("import threading\nprint(*[t.native_id for t in threading.enumerate()][1:])").text().split()
    rank.ask("ping")

    def sleeps() -> bool:
        before = _switches(rank, threads)
        rank.pump(0.5)
        return _switches(rank, threads) - before <= 4

    until(sleeps)  # what a cell leaves to do takes longer on a busy machine


def _switches(rank: RankClient, side_threads: list[str]) -> int:
    """How often the main and the side thread slept and woke (gloo's own thread wakes every 10 ms)."""
    total = 0
    for task in (str(rank.pid), *side_threads):
        for line in Path(f"/proc/{rank.pid}/task/{task}/status").read_text().splitlines():
            if line.startswith("voluntary_ctxt_switches"):
                total += int(line.split()[1])
    return total


def test_shutdown_when_idle_runs_atexit(rank: RankClient, tmp_path: Path) -> None:
    rank.run(
        f"import atexit\natexit.register(lambda: open('{tmp_path}/left', 'w').close())\natexit.register(print, 'bye')"
    )
    rank.send({"t": "shutdown", "seconds": 2.0})
    assert rank.exit()["code"] == 0
    assert (tmp_path / "left").exists()


@pytest.mark.parametrize(
    "code",
    [
        BUSY,
        "import time\nprint('go')\ntime.sleep(1000)",
        "import asyncio\nprint('go')\nawait asyncio.sleep(1000)",
        "print('go')\nwhile True:\n    try:\n        while True: pass\n    except BaseException: pass",
        "import atexit, time\natexit.register(time.sleep, 1000)\nprint('go')",
        "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,)).start()\nprint('go')",
        "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('go')\nwhile True: pass",
    ],
)
def test_a_busy_rank_ends_when_it_is_told_to(rank: RankClient, code: str) -> None:
    rank.start(code)
    rank.wait_text("go")
    rank.send({"t": "shutdown", "seconds": 2.0})
    rank.exit()


def test_rank_ends_when_its_agent_is_gone(rank: RankClient) -> None:
    rank.start("print('go')\nwhile True: pass")
    rank.wait_text("go")
    rank._sock.close()
    rank.exit()


@pytest.fixture
def starting(zygote: ZygoteClient, tmp_path: Path) -> Iterator[Callable[..., RankClient]]:
    clients: list[RankClient] = []

    def start(**changes: object) -> RankClient:
        clients.append(RankClient(zygote, make_spec(tmp_path / "store", **changes)))  # type: ignore[arg-type]
        return clients[-1]

    yield start
    for client in clients:
        client.close()


def test_failed_join_is_told(starting: Callable[..., RankClient]) -> None:
    rank = starting(world_size=2, join_timeout_seconds=1.0)
    failed = rank.wait_for("failed")
    assert failed["phase"] == "joining"
    assert failed["ename"]
    assert rank.exit()["code"] == 1


def test_joining_rank_answers_and_ends(starting: Callable[..., RankClient]) -> None:
    rank = starting(world_size=2)
    rank.wait_for("phase")
    assert rank.ask("ping")["ok"]
    rank.send({"t": "shutdown", "seconds": 2.0})
    rank.exit()


def test_cell_sent_before_ready_runs(starting: Callable[..., RankClient]) -> None:
    rank = starting()
    # gloo of torch 2.8 says by itself that it is connected.
    assert [line for line in rank.run("print('first')").text().splitlines() if "[Gloo]" not in line] == ["first"]


def test_environment_of_the_spec(starting: Callable[..., RankClient]) -> None:
    rank = starting(env={"MY_SETTING": "x", "OMP_NUM_THREADS": "2", "GLOO_SOCKET_IFNAME": "lo"}).ready()
    assert rank.run("import os\nprint(os.environ['MY_SETTING'], torch.get_num_threads())").text() == "x 2\n"


def test_result_cache_can_be_off(starting: Callable[..., RankClient]) -> None:
    rank = starting(env={"JUPYTER_DIST_CACHE_SIZE": "0", "GLOO_SOCKET_IFNAME": "lo"}).ready()
    code = "import gc, weakref\nclass Big: pass\nbig = Big(); ref = weakref.ref(big)\nbig"
    rank.run(code)
    rank.run("del big")
    assert rank.run("print(ref(), Out)").text() == "None {}\n"


WRAPPED = """
import warnings
from datetime import timedelta
from jupyter_dist.rank.collectives.torch_compat import set_group_timeout
dist.set_debug_level(dist.DebugLevel.DETAIL)
wrapped = dist.new_group([0])
with warnings.catch_warnings():
    warnings.simplefilter("error")
    set_group_timeout(timedelta(minutes=1), wrapped)
"""


def test_backends_that_torch_has_wrapped_cost_no_warning(rank: RankClient) -> None:
    """TORCH_DISTRIBUTED_DEBUG=DETAIL: where warnings are errors, no group would start."""
    result = rank.run(WRAPPED)
    assert result.status == "ok", result.reply


def test_crash_leaves_a_traceback(rank: RankClient) -> None:
    rank.run("import os; os.close(2)", silent=True)
    rank.start("import ctypes\nprint('before')\nctypes.string_at(0)")
    rank.wait_text("Segmentation fault", "stderr")
    assert rank.exit()["signal"] == signal.SIGSEGV


class FreshStarter:
    """Starts a rank as a Python of its own, as the agent does where forking is not safe."""

    def fork(self, spec: RankSpec, fds: list[int]) -> int:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            self.process = subprocess.Popen(
                [sys.executable, boot.__file__, "rank", str(theirs.fileno())],
                pass_fds=[theirs.fileno(), *fds],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "JUPYTER_DIST_AGENT_PID": str(os.getpid())},
            )
            ours.sendall(encode_frame({"t": "spec", "spec": spec.to_dict(), "fds": fds, "preload": ["json"]}))
        return self.process.pid


def test_fresh_process(tmp_path: Path) -> None:
    starter = FreshStarter()
    spec = make_spec(tmp_path / "store")
    client = RankClient(starter, spec).ready()  # type: ignore[arg-type]
    assert [header["phase"] for header, _ in client.frames if header["t"] == "phase"] == ["importing", "joining"]
    assert client.run("import sys\nprint(dist.get_world_size(), sys.argv)").text() == "1 ['']\n"
    client.run("import threading, time\nthreading.Thread(target=time.sleep, args=(1000,)).start()")
    client.send({"t": "shutdown", "seconds": 2.0})
    assert starter.process.wait(PATIENCE) == 0
    client.close()


@pytest.mark.parametrize(
    ("code", "call"),
    [
        ("import time\nprint('in 1', flush=True)\ntime.sleep(1000)", "time.sleep (cell line 3)"),
        (
            "def f():\n    print('in 2', flush=True)\n    threading.Event().wait()\nimport threading\nf()",
            "threading.Event().wait (cell line 3)",
        ),
        (
            "import subprocess\nprint('in 3', flush=True)\nsubprocess.run(['sleep', '1000'])",
            "subprocess.run (cell line 3)",
        ),
    ],
)
def test_the_call_in_which_a_cell_is_has_a_name(rank: RankClient, code: str, call: str) -> None:
    execution_id = rank.start(code)
    rank.wait_text("in ")
    shown = call if sys.version_info >= (3, 11) else call[call.index("(cell") :]  # before, only the line is known
    until(lambda: str(rank.ask("stack")["call"]).endswith(shown), lambda: rank.ask("stack"))
    rank.interrupt(execution_id)
    assert rank.result(execution_id).status == "interrupted"
    assert rank.ask("stack")["call"] is None


@pytest.mark.part("debugging")
def test_an_answer_that_the_agent_could_not_read_is_refused(rank: RankClient) -> None:
    """The agent ends a rank whose messages it cannot read, and a cell may have lifted Python's limits here."""
    code = """
import sys
sys.setrecursionlimit(20_000)
class Deep:
    def _repr_json_(self):
        found = []
        for _ in range(3000): found = [found]
        return found
class Picture:
    def _repr_png_(self): return b"png"
deep, picture = Deep(), Picture()
"""
    assert rank.run(code).status == "ok"

    def look(name: str) -> Header:
        asked = {"seq": 1, "command": "richInspectVariables", "arguments": {"variableName": name}}
        return rank.answer(rank.post("debug", json.dumps(asked).encode()))

    refused = look("deep")
    assert not refused["ok"]
    assert "more than 200 lists" in refused["error"]["message"]
    assert look("picture")["reply"]["body"]["data"]["image/png"] == "cG5n"
    assert rank.run("print(1)").text() == "1\n"


def test_a_cell_that_cannot_be_handed_on_ends_with_the_reason(rank: RankClient) -> None:
    """The agent waits for its end, and other cells behind it."""
    header = {"t": "call", "execution_id": "e-junk", "execution_count": 1, "silent": True, "empty_cache": False}
    for number in range(2):
        rank.send({**header, "execution_id": f"e-junk-{number}", "allow_stdin": False}, b"junk")
        reply = rank.wait_for("reply", execution_id=f"e-junk-{number}")
        assert reply["status"] == "error"
        assert "could not begin on this rank: JSONDecodeError" in reply["evalue"]
    assert rank.run("1").status == "ok"
