"""The prompt, as a person at a terminal has it: a real pty, real ranks."""

import re
import sys

import pexpect
import pytest
from waits import PATIENCE

MAIN = "from jupyter_dist.cli.main import main; main()"

_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[>=]|\r")


class Terminal:
    """A terminal of 100 columns with the command in it."""

    def __init__(self, *arguments, code=MAIN):
        command = ["-c", code, *arguments]
        self.process = pexpect.spawn(sys.executable, command, encoding="utf-8", dimensions=(40, 100))

    def until(self, text):
        """Wait for this and return what came before."""
        self.process.expect_exact(text, timeout=PATIENCE)
        return _CONTROLS.sub("", self.process.before)

    def type(self, text):
        self.process.send(text)

    def end(self):
        self.process.expect(pexpect.EOF, timeout=PATIENCE)
        self.process.close()
        return self.process.exitstatus


@pytest.fixture(autouse=True)
def own_history(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("PROMPT_TOOLKIT_NO_CPR", "1")  # it would ask the terminal where the cursor is, and wait


def test_cells_are_typed_and_run_on_the_ranks(group, own_runtime, tmp_path):
    terminal = Terminal("attach", "from-shell")
    assert "Group 'from-shell': 2 ranks, ready" in terminal.until("from-shell 0-1>")
    terminal.type("typed_here = 6 * 7; print('all', typed_here)\r")
    terminal.until("[ranks 0-1]")
    terminal.until("all 42")
    terminal.type("print('is', typed_h\t")
    terminal.until("ere")  # a rank completes it
    terminal.type(")\r")
    terminal.until("is 42")
    terminal.type("for i in range(2):\r")
    terminal.until("...")
    terminal.type("print('row', i, rank)\r\r")
    terminal.until("row 1 1")
    terminal.type("1/0\r")
    terminal.until("ZeroDivisionError: division by zero")
    terminal.type("print('now' ' on', flush=True); import time; time.sleep(1000)\r")
    terminal.until("now on")
    terminal.process.sendintr()
    terminal.until("KeyboardInterrupt")
    terminal.until("from-shell 0-1>")
    terminal.type("half a line")
    terminal.process.sendintr()
    terminal.type("told = input('what? ')\r")
    terminal.until("[ranks 0-1] what? ")
    terminal.type("this\r")
    terminal.until("what? this")  # the ranks' own text
    terminal.until("from-shell 0-1>")
    terminal.type("typed_here + rank\r")
    terminal.until("[rank 1]")
    terminal.until("43")
    terminal.until("from-shell 0-1>")
    terminal.process.sendeof()
    assert "Group 'from-shell' keeps running" in terminal.until("jupyter dist attach from-shell")
    assert terminal.end() == 0
    assert group.status().state == "ready"
    history = tmp_path / "data" / "jupyter_dist" / "history"
    assert "typed_here = 6 * 7" in history.read_text()
    assert history.stat().st_mode & 0o777 == 0o600


def test_the_up_arrow_shows_what_ran_on_the_group_whoever_ran_it(group, own_runtime):
    up = "\x1b[A"
    group.run("'a' + ' notebook'", notebook="n.ipynb", cell_id="a")
    group.run("# launch of f")  # as clients describe their calls
    steps = ((f"{up}\r", "'a notebook'"), ("'once' + ' upon'\r", "'once upon'"), (f"{up}{up}\r", "'a notebook'"))
    for typed, expected in steps:
        terminal = Terminal("attach", "--ranks", "0", "--per-rank")
        terminal.until("from-shell 0>")
        terminal.type(typed)
        terminal.until(f"0| {expected}")
        terminal.until("from-shell 0>")
        terminal.process.sendeof()
        assert terminal.end() == 0


def test_without_prompt_toolkit_there_is_a_plain_prompt(group, own_runtime):
    terminal = Terminal("attach", "-r", "1", code=f"import sys; sys.modules['prompt_toolkit'] = None; {MAIN}")
    terminal.until("from-shell 1>")
    terminal.type("def f():\n")
    terminal.until("... ")
    terminal.type("    return rank + 5\n")
    terminal.until("... ")
    terminal.type("\n")
    terminal.until("from-shell 1>")
    terminal.type("f()\n")
    terminal.until("[rank 1]")
    terminal.until("6")
    terminal.until("from-shell 1>")
    terminal.process.sendeof()
    assert terminal.end() == 0


def test_input_that_is_no_terminal(dist, group):
    said = dist("attach", input="x = 2\nfor i in range(2):\n    print(x + i)\n\nx / 0\nx * 21")
    assert said.stdout.startswith("[ranks 0-1]\n2\n3\n")
    assert said.stdout.endswith("[ranks 0-1]\n42\n")
    assert "ZeroDivisionError" in said.stdout
    assert "There is no rank 7" in dist("attach", "-r", "7", status=1, input="").stderr


def test_a_group_that_ends_ends_the_prompt(client, own_runtime):
    short = client.start("short", num_ranks=1, accelerator="cpu")
    terminal = Terminal("attach", "short")
    terminal.until("short 0>")
    short.shutdown()
    terminal.type("1\r")
    terminal.until("short")
    assert terminal.end() == 1
