"""`input`, `getpass` and debuggers on a rank ask whoever follows the cell."""

from __future__ import annotations

from pathlib import Path

from rankclient import RankClient
from waits import PATIENCE

CAUGHT = """
try:
    input("name? ")
except KeyboardInterrupt:
    print("caught")
"""
IN_A_THREAD = """
import threading
def ask():
    try:
        input("late? ")
    except EOFError as err:
        print(err)
thread = threading.Thread(target=ask)
thread.start()
"""


def test_nobody_to_answer_is_an_error_at_once(shared: RankClient) -> None:
    for code in ("input('name? ')", "import getpass; getpass.getpass()", "breakpoint()"):
        result = shared.run(code)
        assert "Nobody can answer" in result.error["evalue"], code
        assert "allow_stdin" in result.error["evalue"]


def test_a_cell_asks_and_the_answer_is_in_its_output(shared: RankClient) -> None:
    cell = shared.start("print('before')\nname = input('name? ')\nprint(repr(name))", allow_stdin=True)
    question = shared.asked(cell)
    assert (question["prompt"], question["password"]) == ("name? ", False)
    shared.reply_to({**question, "number": question["number"] - 1}, "an earlier question")
    shared.reply_to(question, "Ada \U0001f600")
    result = shared.result(cell)
    assert result.text() == "before\nname? Ada \U0001f600\n'Ada \U0001f600'\n"


def test_a_password_is_in_no_output(shared: RankClient) -> None:
    cell = shared.start("import getpass\nsecret = getpass.getpass('token: ')\nlen(secret)", allow_stdin=True)
    question = shared.asked(cell)
    assert question["password"]
    shared.reply_to(question, "hunter2")
    result = shared.result(cell)
    assert result.text() == "token: \u00b7\u00b7\u00b7\u00b7\u00b7\u00b7\u00b7\u00b7\n"
    assert result.outputs("execute_result")[0]["data"]["text/plain"] == "7"
    assert "hunter2" not in str(result.events)


def test_the_end_of_input_is_an_eoferror(shared: RankClient) -> None:
    cell = shared.start("input()", allow_stdin=True)
    shared.reply_to(shared.asked(cell), None)
    assert shared.result(cell).error["ename"] == "EOFError"


def test_a_long_prompt_is_asked_by_its_end(shared: RankClient) -> None:
    cell = shared.start("_ = input('x' * 100_000 + 'name? ')", allow_stdin=True)
    question = shared.asked(cell)
    assert question["prompt"].endswith("xname? ")
    assert len(question["prompt"]) <= 4000
    shared.reply_to(question, "y")
    assert shared.result(cell).text() == "x" * 100_000 + "name? y\n"


def test_an_interrupt_ends_the_wait(shared: RankClient) -> None:
    cell = shared.start("input('name? ')", allow_stdin=True)
    shared.asked(cell)
    shared.interrupt(cell)
    assert shared.result(cell).status == "interrupted"
    assert [h["kind"] for h, _ in shared.frames if h.get("execution_id") == cell and h["t"] == "from_rank"] == [
        "input",
        "input_over",
    ]
    cell = shared.start(CAUGHT + "print(repr(input('again? ')))", allow_stdin=True)
    shared.asked(cell)
    shared.interrupt(cell)
    result = shared.result(cell)
    assert (result.text(), result.error["ename"]) == ("caught\n", "EOFError")
    assert shared.run("1").status == "ok"


def test_a_thread_that_a_cell_leaves_asking_is_freed(shared: RankClient, tmp_path: Path) -> None:
    go = tmp_path / "go"
    wait = f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)"
    cell = shared.start(IN_A_THREAD + wait, allow_stdin=True)
    shared.asked(cell)
    go.touch()
    shared.result(cell)
    assert shared.run(f"thread.join({PATIENCE}); print(thread.is_alive())").text().endswith("False\n")


def test_a_child_process_cannot_ask(shared: RankClient) -> None:
    code = "import os\nif not os.fork():\n    try:\n        input()\n    except Exception as err:\n        print(err, flush=True)\n    os._exit(0)\n_ = os.wait()"
    cell = shared.start(code, allow_stdin=True)
    assert "child process" in shared.result(cell).text()


def test_a_debugger_takes_commands_and_an_interrupt_ends_it(shared: RankClient) -> None:
    shared.run("def f(x):\n    breakpoint()\n    return x + 1")
    cell = shared.start("f(41)", allow_stdin=True)
    for number, command in enumerate(("p x", "c"), 1):
        question = shared.asked(cell, number)
        assert question["prompt"] == "(Pdb) "
        shared.reply_to(question, command)
    result = shared.result(cell)
    assert result.outputs("execute_result")[0]["data"]["text/plain"] == "42"
    assert "(Pdb) p x\n41\n" in result.text()

    cell = shared.start("f(41)", allow_stdin=True)
    shared.asked(cell)
    shared.interrupt(cell)
    result = shared.result(cell)
    assert (result.status, result.error["ename"]) == ("interrupted", "KeyboardInterrupt")

    # After `c`, pdb handles SIGINT itself, and would ask instead of ending the cell.
    cell = shared.start("import time\nf(1)\nprint('sleeps')\nfor _ in range(10_000): time.sleep(0.1)", allow_stdin=True)
    shared.reply_to(shared.asked(cell), "c")
    shared.wait_text("sleeps")
    shared.interrupt(cell)
    result = shared.result(cell)
    assert (result.status, result.error["ename"]) == ("interrupted", "KeyboardInterrupt")
    assert "Program interrupted" not in result.text()


def test_quitting_a_debugger_is_said_in_a_line(shared: RankClient) -> None:
    cell = shared.start("f(41)", allow_stdin=True)
    shared.reply_to(shared.asked(cell), "q")
    result = shared.result(cell)
    assert (result.status, result.error["ename"]) == ("error", "BdbQuit")
    assert "bdb.py" not in result.traceback
