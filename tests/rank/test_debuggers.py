"""pdb, `%debug` and `%pdb` on a rank: they stop in the user's code, show nothing else, and end with the cell."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from rankclient import RankClient, Result

MODULE = "def halve(x):\n    breakpoint()\n    y = x / 2\n    return y\n\ndef inverse(z):\n    return 1 / z\n"
STOPS_AT_CALL = sys.version_info >= (3, 13)  # `breakpoint()` in a function: at its own line, before that at the next
OURS = ("jupyter_dist/rank", "jupyter_dist/agent", "/IPython/", "asyncio/")


@pytest.fixture(scope="module")
def rank(shared: RankClient, tmp_path_factory: pytest.TempPathFactory) -> RankClient:
    folder = tmp_path_factory.mktemp("modules")
    (folder / "debugged.py").write_text(MODULE)
    shared.run(f"import sys; sys.path.insert(0, {str(folder)!r}); import debugged")
    return shared


def debug(rank: RankClient, code: str, *commands: str, in_function: bool = False) -> tuple[Result, list[str]]:
    """Run a cell and answer its debugger; return where it stopped, as "cell 3", "debugged.py 3".

    Args:
        in_function: `breakpoint()` is called in a function; begin after it.
    """
    cell = rank.start(code, allow_stdin=True)
    is_at_call = in_function and STOPS_AT_CALL
    if is_at_call:
        commands = ("n", *commands)
    for number, command in enumerate(commands, 1):
        rank.reply_to(rank.asked(cell, number), command)
    result = rank.result(cell)
    text = re.sub(r"\x1b\[[0-9;]*m", "", result.text())
    assert not any(part in text for part in OURS), text
    stops = re.findall(r"^> (Cell In\[\d+\]|\S+?)\((\d+)\)", text, re.MULTILINE)[is_at_call:]
    return result, [f"{'cell' if name.startswith('Cell In[') else Path(name).name} {line}" for name, line in stops]


def test_stepping_goes_from_statement_to_statement_and_ends_with_the_cell(rank: RankClient) -> None:
    result, stops = debug(rank, "a = 1\nbreakpoint()\nb = a\nc = b", "n", "p b", "s", "w", "u", "n")
    assert stops == ["cell 2", "cell 3", "cell 4", "cell 4"]
    assert result.status == "ok"
    assert "Oldest frame" in result.text()
    assert "--Return--" not in result.text()
    assert rank.run("import sys; assert sys.gettrace() is None\n'__return__' in globals()").text() == ""

    code = "debugged.halve(4)\na = 1\nfor i in range(2):\n    a += i\nd = 1"
    _, stops = debug(rank, code, "w", "n", "r", "n", "until 5", "c", in_function=True)
    assert stops == ["debugged.py 3", "debugged.py 3", "debugged.py 4", "debugged.py 4", "cell 2", "cell 5"]
    result, stops = debug(rank, "debugged.halve(4)", "u", "u", "s", "s", "s", in_function=True)
    assert stops == ["debugged.py 3", "cell 1", "debugged.py 4", "debugged.py 4"]
    assert result.outputs("execute_result")[0]["data"]["text/plain"] == "2.0"


def test_cells_that_await_threads_and_magics_are_stepped(rank: RankClient) -> None:
    code = "import asyncio\nasync def f():\n    breakpoint()\n    await asyncio.sleep(0.01)\n    return 3\n"
    _, stops = debug(rank, code + "await f()\nb = 1", "n", "n", "n", "n", in_function=True)
    assert stops == ["cell 4", "cell 5", "cell 6", "cell 7"]
    _, stops = debug(rank, code + "await asyncio.create_task(f())", "n", "c", in_function=True)
    assert stops == ["cell 4", "cell 5"]
    code = "import threading\nt = threading.Thread(target=debugged.halve, args=[2])\nt.start(); t.join()"
    _, stops = debug(rank, code, "n", "c", in_function=True)
    assert stops == ["debugged.py 3", "debugged.py 4"]
    result, _ = debug(rank, "%%time\nbreakpoint()\na = 1\nb = 1", "w", "c")
    assert "run_cell_magic" in result.text()  # Python 3.14 colours what is around it


def test_post_mortem_shows_the_users_frames_only(rank: RankClient) -> None:
    rank.run("debugged.inverse(0)")
    for code in ("%debug", "import pdb; pdb.pm()"):
        result, stops = debug(rank, code, "p z", "w", "u", "u", "q")
        assert stops == ["debugged.py 7", "debugged.py 7", "cell 1"]
        assert "Oldest frame" in result.text()
        assert result.status == "ok"
    rank.run("%pdb on")
    result, stops = debug(rank, "debugged.inverse(0)", "p z", "q")
    assert (stops, result.error["ename"]) == (["debugged.py 7"], "ZeroDivisionError")
    alone = rank.run("debugged.inverse(0)")
    assert alone.error["ename"] == "ZeroDivisionError"
    assert "nobody can answer the debugger" in alone.text("stderr")
    rank.run("%pdb off")


def test_where_nobody_answers_a_debugger_is_one_sentence(rank: RankClient) -> None:
    rank.run("debugged.inverse(0)")
    for code in ("breakpoint()", "debugged.halve(1)", "%debug"):
        (line,) = rank.run(code).error["traceback"]
        assert line.startswith("StdinNotImplementedError: Nobody can answer the debugger here"), code
    assert rank.run("1").status == "ok"


def test_a_breakpoint_stops_until_the_cell_ends(rank: RankClient) -> None:
    _, stops = debug(
        rank, "breakpoint()\ndebugged.inverse(1)\ndebugged.inverse(1)", "b debugged.inverse", "c", "c", "c"
    )
    assert stops[1:] == ["debugged.py 7", "debugged.py 7"]
    assert rank.run("print(debugged.inverse(1))").text() == "1.0\n"


def test_quitting_ends_the_cell_with_a_line(rank: RankClient) -> None:
    result, _ = debug(rank, "debugged.halve(1)\nprint('after')", "q")
    (line,) = result.error["traceback"]
    assert "the debugger was quit, and the cell with it" in line
    assert "after\n" not in result.text()
