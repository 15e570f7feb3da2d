"""Interrupts end the cell, keep the variables, and never hurt the rank."""

from __future__ import annotations

import pytest
from rankclient import RankClient, Result


def interrupted(rank: RankClient, code: str, wait_for: str = "go", times: int = 1) -> Result:
    execution_id = rank.start(code)
    rank.wait_text(wait_for)
    for _ in range(times):
        rank.interrupt(execution_id)
    return rank.result(execution_id)


@pytest.mark.parametrize(
    "code",
    [
        "print('go')\nwhile True: pass",
        "import time\nprint('go')\ntime.sleep(1000)",
        "import asyncio\nprint('go')\nawait asyncio.sleep(1000)",
        "import asyncio\nprint('go')\nawait asyncio.sleep(0)\nwhile True: pass",
        "import subprocess\nprint('go')\nsubprocess.run(['sleep', '1000'])",
        "!echo go; sleep 1000",
        "while True: print('go')",
        "import sys\nwhile True: print('go', file=sys.stderr); print('go'); display(1)",
        "import threading\nprint('go')\nthreading.Event().wait()",
        "def f():\n    print('go')\n    while True: pass\n%time f()",
    ],
)
def test_interrupt_ends_the_cell(rank: RankClient, code: str) -> None:
    rank.run("kept = 1")
    result = interrupted(rank, code)
    assert result.status == "interrupted"
    assert result.error["ename"] == "KeyboardInterrupt"
    assert "jupyter_dist" not in result.traceback
    assert rank.run("print(kept)").text() == "1\n"


def test_script_magic_is_interrupted(rank: RankClient) -> None:
    result = interrupted(rank, "%%bash\necho go; sleep 1000")
    assert result.status == "interrupted"
    # IPython before 8.7 lets the interrupt through.
    assert result.error["ename"] in ("CalledProcessError", "KeyboardInterrupt")


def test_os_system_is_interrupted(rank: RankClient) -> None:
    result = interrupted(rank, "import os\nos.system('echo go; sleep 1000')\nwhile True: pass")
    assert result.status == "interrupted"


def test_command_that_ignores_the_interrupt_breaks_no_group(rank: RankClient) -> None:
    execution_id = rank.start("import os\nos.system(\"trap '' INT; echo go; sleep 2\")")
    rank.wait_text("go")
    rank.interrupt(execution_id)
    assert rank.result(execution_id).reply["process_group"] == "ok"


def test_interrupt_that_is_ignored_is_forced(rank: RankClient) -> None:
    result = interrupted(
        rank, "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('go')\nwhile True: pass"
    )
    assert result.status == "interrupted"
    assert interrupted(rank, "print('gone')\nwhile True: pass", "gone").status == "interrupted"


def test_cell_may_end_gracefully(rank: RankClient) -> None:
    code = "import time\ntry:\n    print('go')\n    while True: pass\nexcept KeyboardInterrupt:\n    time.sleep(0.8)\n    print('saved')"
    result = interrupted(rank, code)
    assert (result.status, result.text()) == ("ok", "go\nsaved\n")


def test_interrupt_that_became_another_error(rank: RankClient) -> None:
    code = "try:\n    print('go')\n    while True: pass\nexcept KeyboardInterrupt:\n    raise SystemExit(1)"
    assert interrupted(rank, code).status == "interrupted"


def test_a_first_interrupt_lets_an_import_end_and_a_second_one_does_not(rank: RankClient, tmp_path) -> None:
    (tmp_path / "late").mkdir()
    (tmp_path / "late" / "__init__.py").write_text("print('go')\nfrom . import inner\nfrom .inner import end\n")
    (tmp_path / "late" / "inner.py").write_text("import time\ntime.sleep(0.5)\nend = 'whole'\n")
    (tmp_path / "endless.py").write_text("import time\nprint('go')\ntime.sleep(1000)\n")
    rank.run(f"import sys\nsys.path.insert(0, {str(tmp_path)!r})")
    assert interrupted(rank, "import late\nwhile True: pass").status == "interrupted"
    assert rank.run("print(late.end, late.inner.end)").text() == "whole whole\n"
    assert interrupted(rank, "import endless").status == "interrupted"
    assert interrupted(rank, "import endless", times=2).status == "interrupted"


def test_swallowed_interrupt_is_repeated(rank: RankClient) -> None:
    code = "import time\ntry:\n    print('go')\n    while True: pass\nexcept KeyboardInterrupt: pass\nwhile True: time.sleep(0.01)"
    result = interrupted(rank, code)
    assert result.status == "interrupted"


def test_many_interrupts_harm_nothing(rank: RankClient) -> None:
    for _ in range(3):
        assert interrupted(rank, "print('go')\nwhile True: pass", times=20).status == "interrupted"
        for _ in range(20):
            rank.interrupt("e1")
        assert rank.run("print('well')").text() == "well\n"


def test_interrupt_at_any_moment_never_loses_the_reply(rank: RankClient) -> None:
    statuses = set()
    for number in range(150):
        execution_id = rank.start("x = [i for i in range(200)]\nprint(len(x))\ndisplay(x[0])")
        if number % 3:
            rank.pump(0.0005 * (number % 7))
        rank.interrupt(execution_id)
        result = rank.result(execution_id)
        statuses.add(result.status)
        assert result.status != "error", result
    assert statuses <= {"ok", "interrupted"}
    assert rank.run("print(1)").text() == "1\n"


def test_interrupt_before_the_cell_began(rank: RankClient) -> None:
    execution_id = rank.start("# " + "filler " * 200_000 + "\nwhile True: pass")
    rank.interrupt(execution_id)
    assert rank.result(execution_id).status == "interrupted"


def test_interrupt_of_another_execution_is_ignored(rank: RankClient) -> None:
    execution_id = rank.start("print('go')\nfor i in range(30): __import__('time').sleep(0.01)")
    rank.wait_text("go")
    rank.interrupt("e99")
    assert rank.result(execution_id).status == "ok"


def test_background_task_is_not_the_cell(rank: RankClient) -> None:
    rank.run(
        "import asyncio\nasync def tick():\n    while True: await asyncio.sleep(0.001)\ntask = asyncio.create_task(tick())"
    )
    assert interrupted(rank, "print('go')\nawait asyncio.sleep(1000)").status == "interrupted"
    assert rank.run("await asyncio.sleep(0.01)\nprint(task.done())").text() == "False\n"


def test_stray_signal_while_idle(rank: RankClient) -> None:
    rank.run("import os, signal, threading\nthreading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()")
    rank.run("import time; time.sleep(0)")
    assert rank.run("print('well')").text() == "well\n"


@pytest.mark.part("debugging", "frameworks")
def test_modules_are_guarded_by_what_they_say_and_not_by_their_place(rank: RankClient) -> None:
    """Move a file, and nothing changes: those that wrap what a cell calls and waits for say so themselves."""
    code = (
        "import sys\nfrom jupyter_dist.rank.cells import interrupt\n"
        "ours = [m for n, m in sys.modules.items() if n.startswith(('jupyter_dist.rank.', 'jupyter_dist.parts.'))]\n"
        "print(*sorted(m.__name__.rpartition('.')[2] for m in ours if not interrupt._is_guarded(vars(m))))\n"
        "print(all(interrupt._is_guarded(vars(sys.modules[f'jupyter_dist.rank.{n}'])) for n in"
        " ('cells.runner', 'output.outbox', 'output.streams', 'output.wire', 'ipython.displays', 'ipython.tracebacks',"
        " 'collectives.aborting.gloo_sockets', 'main')))"
    )
    text = rank.run(code).text()
    says_so = (
        "accelerate calls comms context debuggers farfiles fastai fix groups hook libraries lightning linkstore loaders meeting"
        " peers scripts shell spawning stdin storewaits tcpstores torch track waits"
    )
    assert text == f"{says_so}\nTrue\n"


def test_an_interrupt_that_is_masked_is_forced(rank: RankClient) -> None:
    mask = "import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})\n"
    for number, wait in enumerate(("time.sleep(1000)", "while True: pass", "while True: time.sleep(0.01)")):
        assert interrupted(rank, f"{mask}print('go {number}')\n{wait}", f"go {number}").status == "interrupted"
    assert interrupted(rank, "print('unmasked')\nwhile True: pass", "unmasked").status == "interrupted"
    assert rank.run("dist.barrier()\nprint('well')").text() == "well\n"


@pytest.mark.parametrize("wait", ["time.sleep(1000)", "while True: pass"])
@pytest.mark.parametrize("handler", ["signal.SIG_IGN", "signal.SIG_DFL", "lambda *_: None"])
def test_a_sleep_whose_cell_took_the_signal_is_forced(rank: RankClient, handler: str, wait: str) -> None:
    rank.run("kept = 1")
    code = f"import signal, time\nsignal.signal(signal.SIGINT, {handler})\nprint('go')\n{wait}"
    assert interrupted(rank, code).status == "interrupted"
    assert rank.run("print(kept)").text() == "1\n"


@pytest.mark.parametrize("wait", ["os.system('sleep 1000')", "os.waitpid(subprocess.Popen(['sleep', '1000']).pid, 0)"])
def test_a_child_is_interrupted_though_the_cell_lets_the_signal_end_its_process(rank: RankClient, wait: str) -> None:
    rank.run("kept = 1")
    code = f"import os, signal, subprocess\nsignal.signal(signal.SIGINT, signal.SIG_DFL)\nprint('go')\n{wait}"
    assert interrupted(rank, code).status == "interrupted"
    assert rank.run("print(kept)").text() == "1\n"


def test_an_interrupt_that_waits_behind_a_mask_does_not_end_the_rank_of_the_next_cell(rank: RankClient) -> None:
    code = (
        "import signal\nkept = 1\nsignal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})\n"
        "try:\n    print('go')\n    while True: pass\nfinally: signal.signal(signal.SIGINT, signal.SIG_DFL)"
    )
    assert interrupted(rank, code).status == "interrupted"
    assert rank.run("print(kept)").text() == "1\n"


def test_an_interrupt_of_a_cell_that_took_all_signals_back_does_not_end_the_rank(rank: RankClient) -> None:
    """Also those that only we use: then Python code is ended without a signal."""
    code = (
        "import signal\nkept = 1\nfor number in (signal.SIGINT, *range(signal.SIGRTMIN, signal.SIGRTMAX + 1)):\n"
        "    signal.signal(number, signal.SIG_DFL)\nprint('go')\nwhile True: pass"
    )
    assert interrupted(rank, code).status == "interrupted"
    assert rank.run("print(kept)").text() == "1\n"
