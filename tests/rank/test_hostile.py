"""Cells that damage the process: the next cell still runs, fails and can be interrupted as usual."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from rankclient import RankClient, ZygoteClient, make_spec


def double(module: str, *names: str, value: str = "None") -> tuple[str, str]:
    """A cell that replaces functions of a module permanently, and one that restores them."""
    replaced = ", ".join(f"{name}={value}" for name in names)
    return (
        f"import {module} as victim\nreal = dict(vars(victim))\nvars(victim).update({replaced})",
        "vars(victim).update(real)",
    )


FROZEN = """
import time, sys
real = {id(getattr(time, name)) for name in ('time', 'monotonic', 'perf_counter', 'sleep')}
replaced = [(module, name, value) for module in list(sys.modules.values())
            for name, value in list(vars(module).items()) if id(value) in real]
for module, name, _ in replaced: setattr(module, name, lambda *_: 0.0)
"""

# What a cell does, and what must be undone so that the next test is about its own cell.
NASTY = {
    "sys.modules cleared": ("import sys\nsys.modules.clear()", ""),
    "sys.modules cleared, then an error": ("import sys\nsys.modules.clear()\n1/0", ""),
    "sys.modules replaced": ("import sys\nsys.modules = {}", ""),
    "print deleted": ("import builtins\ndel builtins.print", ""),
    "what every thread needs deleted": (
        "import builtins\nfor name in ('print', 'len', 'min', 'isinstance', 'Exception', '__import__'): delattr(builtins, name)",
        "",
    ),
    "namespace cleared": ("globals().clear()", ""),
    "history deleted": ("del In, Out, _oh, _ih, _dh", ""),
    "streams replaced": (
        "import sys, io\nkept = sys.stdout\nsys.stdout, sys.stderr = io.StringIO(), None",
        "sys.stdout = kept",
    ),
    "streams deleted": ("import sys\ndel sys.stdout, sys.stderr, sys.__stdout__", ""),
    "getpid": double("os", "getpid", value="lambda: 1"),
    "clocks": double("time", "time", "monotonic", "perf_counter", "sleep", value="lambda *_: 0.0"),
    "clocks frozen in all modules": (FROZEN, "for module, name, value in replaced: setattr(module, name, value)"),
    "threading": double("threading", "current_thread", "get_ident", "main_thread", "Event", "Lock", "RLock"),
    "json": double("json", "dumps", "loads"),
    "open": double("builtins", "open"),
    "io.open": double("io", "open"),
    "os": double(
        "os", "listdir", "readlink", "write", "read", "fstat", "close", "dup", "getpgrp", "killpg", "eventfd_write"
    ),
    "signal": double("signal", "signal", "getsignal", "pthread_kill", "pthread_sigmask"),
    "asyncio": double("asyncio", "Task", "CancelledError", "get_event_loop"),
    "linecache": double("linecache", "getline", "getlines"),
    "a folder that is gone": (
        "import os, tempfile\nhere = os.getcwd()\ngone = tempfile.mkdtemp()\nos.chdir(gone)\nos.rmdir(gone)",
        "os.chdir(here)",
    ),
    "environment": ("import os\nkept = dict(os.environ)\nos.environ.clear()", "os.environ.update(kept)"),
    "no garbage collection": ("import gc\ngc.disable()", "gc.enable()"),
    "recursion": ("import sys\ndef shrink(): sys.setrecursionlimit(50)\nshrink()", ""),
    "warnings": ("import warnings\nwarnings.simplefilter('error')", "warnings.resetwarnings()"),
    "alarm": (
        "import signal\ndef late(*_): raise RuntimeError('alarm')\nsignal.signal(signal.SIGALRM, late)\nsignal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)",
        "",
    ),
    "no faulthandler": ("import faulthandler\nfaulthandler.disable()", ""),
    "no descriptors": (
        "import resource\nlimits = resource.getrlimit(resource.RLIMIT_NOFILE)\nresource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))",
        "resource.setrlimit(resource.RLIMIT_NOFILE, limits)",
    ),
    "trace": ("import sys\ndef broken(*_): raise ValueError('trace')\nsys.settrace(broken)", ""),
    "profile": ("import sys\ndef broken(*_): raise ValueError('profile')\nsys.setprofile(broken)", ""),
    "hooks": ("import sys\nsys.excepthook = sys.unraisablehook = None", "sys.excepthook = sys.__excepthook__"),
    "import system": (
        "import sys\nkept = sys.path[:], sys.meta_path[:]\nsys.path.clear()\nsys.meta_path.clear()",
        "sys.path[:], sys.meta_path[:] = kept",
    ),
    "all descriptors closed": ("import os\nos.closerange(3, 100_000)", ""),
    "all descriptors closed, one by one": (
        "import os\nfor fd in range(3, 2000):\n    try: os.close(fd)\n    except OSError: pass",
        "",
    ),
}

NORMAL = """
t = torch.ones(1)
dist.all_reduce(t)
from IPython.display import display
display({'rank': rank})
import sys
sys.__stdout__.write('well\\n')
t.item()
"""


@pytest.fixture(scope="module")
def group(zygote: ZygoteClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RankClient]]:
    """The ranks that take it all."""
    store = tmp_path_factory.mktemp("hostile") / "store"
    ranks = [RankClient(zygote, make_spec(store, rank, 2)) for rank in range(2)]
    yield [rank.ready() for rank in ranks]
    for rank in ranks:
        rank.close()


@pytest.mark.parametrize("what", NASTY)
def test_after_a_hostile_cell_the_next_one_works(group: list[RankClient], what: str) -> None:
    code, undo = NASTY[what]
    for rank, execution_id in [(rank, rank.start(code)) for rank in group]:
        rank.result(execution_id)  # with any outcome, there is a reply
    cells = [(rank, rank.start(NORMAL)) for rank in group]
    for rank, execution_id in cells:
        result = rank.result(execution_id)
        assert (result.status, result.text()) == ("ok", "well\n"), result
        assert [output["data"]["text/plain"] for output in result.outputs("execute_result")] == ["2.0"]
    rank = group[0]
    failed = rank.run("1/0")
    assert (failed.status, failed.error["ename"]) == ("error", "ZeroDivisionError")
    looping = rank.start("while True: pass")
    rank.interrupt(looping)
    assert rank.result(looping).status == "interrupted"
    for question in ("stack", "sample", "ping"):
        assert rank.ask(question)["ok"]
    assert all(other.run(undo).status == "ok" for other in group)


def test_a_timer_that_a_cell_leaves_is_stopped_and_named(group: list[RankClient]) -> None:
    rank = group[0]
    code = (
        "import signal\nfired = []\n_ = signal.signal(signal.SIGALRM, lambda *_: fired.append(1))\n_ = signal.alarm(1)"
    )
    assert "left a timer running (SIGALRM)" in rank.run(code).text("stderr")
    assert rank.run("import time\ntime.sleep(1.2)\nprint(fired)").text() == "[]\n"
    # One that ends with its cell is the cell's own business.
    assert rank.run("_ = signal.alarm(1)\ntime.sleep(1.2)\nprint(fired)").text() == "[1]\n"


def test_closing_by_number_closes_what_a_cell_opened(group: list[RankClient]) -> None:
    rank = group[0]
    code = "import os\nfd = os.open('/dev/null', os.O_RDONLY)\nother = os.open('/dev/null', os.O_RDONLY)\nos.close(fd)\nos.closerange(3, 1000)"
    assert rank.run(code).status == "ok"
    assert rank.run("print([os.path.exists(f'/proc/self/fd/{n}') for n in (fd, other)])").text() == "[False, False]\n"


def test_a_display_that_is_too_large_is_an_error_in_words(group: list[RankClient]) -> None:
    """With a limit of 1 MiB: at 256 MiB a busy machine takes half a minute."""
    limit = "from jupyter_dist.rank.ipython import displays\nreal, displays.MAX_PAYLOAD_BYTES = displays.MAX_PAYLOAD_BYTES, 1 << 20"
    assert group[0].run(limit).status == "ok"
    result = group[0].run("display({'text/plain': 'x' * 5_000_000}, raw=True)")
    assert result.error["evalue"].startswith("This output is 4 MiB; the limit is 1 MiB.")
    assert group[0].run("displays.MAX_PAYLOAD_BYTES = real\nprint('well')").text() == "well\n"


def test_displays_with_an_id_that_is_no_text_lose_no_output(group: list[RankClient]) -> None:
    code = (
        "publish = get_ipython().display_pub.publish\nfor i in range(20):\n    print(i)\n"
        "    publish({'text/plain': str(i)}, transient={'display_id': [i]}, update=True)"
    )
    result = group[0].run(code)
    assert result.text() == "".join(f"{i}\n" for i in range(20))
    assert len(result.outputs("update_display_data")) == 20
    assert "must be a dict" in group[0].run("publish({'text/plain': 'x'}, transient='id')").error["evalue"]


def test_a_long_chain_of_exceptions_is_cut(group: list[RankClient]) -> None:
    code = "error = None\nfor i in range(5000):\n    new = ValueError(i)\n    new.__context__ = error\n    error = new\nraise error"
    result = group[0].run(code)
    assert "(4984 more exceptions in between are not shown)" in result.traceback
    assert "4999" in result.traceback
    assert len(json.dumps(result.error)) < 100_000
    count = "n = 0\nwhile error: n, error = n + 1, error.__context__\nprint(n)"
    assert group[0].run(count).text() == "5000\n"  # the user's exceptions are as they were


def test_floods_of_updates_and_cleared_output_arrive_as_what_stays(group: list[RankClient]) -> None:
    code = (
        "from IPython.display import clear_output\npublish = get_ipython().display_pub.publish\n"
        "handle = display('first', display_id='one')\n"
        "for i in range(5000): publish({'text/plain': str(i)}, transient={'display_id': 'one'}, update=True)\n"
        "print('between')\n"
        "for i in range(5000):\n    clear_output(wait=True)\n    publish({'text/plain': str(i)})\nprint('after')"
    )
    result = group[0].run(code)
    assert result.text() == "between\nafter\n"
    updates = [output["data"]["text/plain"] for output in result.outputs("update_display_data")]
    shown = [output["data"]["text/plain"] for output in result.outputs("display_data")]
    assert (updates[-1], shown[-1]) == ("4999", "4999")
    assert len(updates) < 5000
    assert len(shown) < 5000
    kinds = [kind for kind, _ in result.events]
    assert kinds[-3:] == ["clear_output", "display_data", "stdout"]
    assert kinds.index("stdout") > max(i for i, kind in enumerate(kinds) if kind == "update_display_data")


def test_displays_that_nothing_replaces_are_all_there_in_order(group: list[RankClient]) -> None:
    result = group[0].run("for i in range(1000):\n    display(i)\n    print(i)")
    said = [
        content["data"]["text/plain"] if kind == "display_data" else content.decode().strip()
        for kind, content in result.events
    ]
    assert said == [str(i) for i in range(1000) for _ in (0, 1)]
