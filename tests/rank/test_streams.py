"""Text: exact, in order, cheap, and never lost by what a cell does to its streams."""

from __future__ import annotations

import pytest
from rankclient import RankClient


@pytest.mark.parametrize(
    "text",
    [
        "  leading",
        "\n\n",
        "{}",
        "msg_id",
        "no newline",
        "a\rb",
        "\ttab",
        "emoji \U0001f600",
        "nul \0 nul",
        "<script>",
        "\x1b[31mred",
    ],
)
def test_text_is_exact(shared: RankClient, text: str) -> None:
    assert shared.run(f"print({text!r}, end='')").text() == text


def test_bytes_and_surrogates(shared: RankClient) -> None:
    assert shared.run("import sys\nn = sys.stdout.buffer.write(b'\\xff\\n')").events == [("stdout", b"\xff\n")]
    assert shared.run("print('\\ud800')").text() == "\\ud800\n"


def test_no_output_has_half_a_character(shared: RankClient) -> None:
    """UTF-8 has none, so a notebook with one could not be saved."""
    shown = shared.run(
        "from IPython.display import display\n"
        "for text in ('\\ud83d', '\\ude42', 'a\\ud83db', '\\\\ud83d', '\U0001f642', '\\udc80\U0001f642\\udc80'):\n"
        "    display({'text/html': text}, raw=True)"
    )
    html = [content["data"]["text/html"] for content in shown.outputs("display_data")]
    assert html == [r"\ud83d", r"\ude42", r"a\ud83db", r"\ud83d", "\U0001f642", "\\udc80\U0001f642\\udc80"]
    (error,) = shared.run("raise ValueError('x\\ud83d')").outputs("error")
    assert error["evalue"] == r"x\ud83d"
    assert "\n".join(error["traceback"]).encode()


def test_streams_look_like_a_pipe(shared: RankClient) -> None:
    code = "import sys\nprint(sys.stdout.isatty(), sys.stdout.fileno(), sys.stderr.fileno(), sys.stdout.encoding, sys.stdin.read())"
    assert shared.run(code).text() == "False 1 2 utf-8 \n"


def test_order_of_both_streams(shared: RankClient) -> None:
    code = "import sys\nfor i in range(200):\n    print(i, file=sys.stdout if i % 3 else sys.stderr)"
    events = shared.run(code).events
    lines = [(int(line), kind) for kind, data in events for line in data.decode().split()]
    assert lines == [(number, "stdout" if number % 3 else "stderr") for number in range(200)]


def test_other_writers_keep_their_place(shared: RankClient) -> None:
    code = """
import ctypes, os, subprocess, sys
print('1')
sys.stdout.flush()
os.system('echo 2')
print('3')
subprocess.run(['echo', '4'])
print('5')
subprocess.run(['echo', '6'], stdout=sys.stdout)
print('7')
pid = os.posix_spawn('/bin/echo', ['echo', '8'], os.environ); os.waitpid(pid, 0)
print('9')
pid = os.fork()
if pid == 0:
    os.write(1, b'10\\n'); os._exit(0)
_ = os.waitpid(pid, 0)
print('11')
"""
    assert shared.run(code).text().split() == [str(number) for number in range(1, 12)]


def test_text_of_c_code(shared: RankClient) -> None:
    result = shared.run("import ctypes\nlibc = ctypes.CDLL(None)\nn = libc.puts(b'from C')\nn = libc.fflush(None)")
    assert result.text() == "from C\n"


def test_unflushed_text_arrives_while_the_cell_runs(rank: RankClient) -> None:
    execution = rank.start("print('early', end='')\nimport time\nwhile True: time.sleep(0.01)")
    rank.wait_text("early")
    rank.interrupt(execution)
    assert rank.result(execution).status == "interrupted"


@pytest.mark.parametrize(
    ("code", "name", "text"),
    [
        ("print('last words', flush=True)\nos.kill(os.getpid(), signal.SIGKILL)", "stdout", "last words\n"),
        ("print('last words', file=sys.stderr)\nos.kill(os.getpid(), signal.SIGKILL)", "stderr", "last words\n"),
        ("for i in range(50): print(i, file=sys.stderr)\nos.kill(os.getpid(), signal.SIGKILL)", "stderr", "48\n49\n"),
        ("print('last words')\nos._exit(3)", "stdout", "last words\n"),
        ("print('last words')\nos.execv('/bin/echo', ['echo', 'more'])", "stdout", "last words\nmore\n"),
    ],
)
def test_last_words_arrive(rank: RankClient, code: str, name: str, text: str) -> None:
    rank.start(f"import os, signal, sys\n{code}")
    with pytest.raises(EOFError):
        rank.wait_for("reply")
    rank.exit()
    rank._drain_pipes()
    assert rank._text[name].decode().endswith(text)


def test_flood_loses_nothing(shared: RankClient) -> None:
    result = shared.run("for i in range(200_000): print('line', i)")
    assert result.text() == "".join(f"line {number}\n" for number in range(200_000))
    assert max(len(data) for _, data in result.events) <= 1 << 20
    assert len(result.events) < 200


def test_one_long_line_is_cut_into_frames(shared: RankClient) -> None:
    result = shared.run("print('x' * 20_000_000)")
    assert sum(len(data) for _, data in result.events) == 20_000_001
    assert max(len(data) for _, data in result.events) <= 1 << 20


def test_memory_stays_bounded_in_a_flood(shared: RankClient) -> None:
    shared.run("print('x' * 5_000_000)")
    before = shared.ask("sample")["resident_bytes"]
    shared.run("for i in range(60): print('x' * 999_999)")
    assert shared.ask("sample")["resident_bytes"] - before < 30 << 20


def test_text_of_a_thread_after_the_cell(rank: RankClient) -> None:
    code = "import threading\ngo = threading.Event()\ndef talk():\n    go.wait()\n    print('late')\nthreading.Thread(target=talk).start()"
    execution_id = rank.run(code).reply["execution_id"]
    rank.run("go.set()", silent=True)
    rank.wait_text("late")
    assert rank.events[-1][0] in (execution_id, "e2")


def test_idle_late_text_carries_the_last_execution(rank: RankClient) -> None:
    rank.run("import threading\nthreading.Timer(0.1, lambda: print('late')).start()")
    rank.wait_text("late\n")
    # gloo writes that it is connected, before any cell.
    assert {owner for owner, kind, text in rank.events if kind == "stdout" and b"late" in text} == {"e1"}


@pytest.mark.parametrize(
    "damage",
    [
        "sys.stdout.close()",
        "sys.stdout = None",
        "sys.stderr = None; sys.stdout = None",
        "sys.stdout.detach()",
        "sys.stdin.close()",
        "os.close(0)",
        "os.close(1)",
        "os.close(2); os.close(1)",
        "os.dup2(os.open('/dev/null', os.O_WRONLY), 1)",
        "sys.stdout = object()",
        "sys.__stdout__ = None",
        "del print",
        "print = None",
    ],
)
def test_next_cell_has_its_streams_again(rank: RankClient, damage: str) -> None:
    rank.run(f"import os, sys\n{damage}")
    result = rank.run(
        "import builtins, os, sys\nbuiltins.print('out')\nbuiltins.print('err', file=sys.stderr)\nos.write(1, b'fd\\n')"
    )
    assert result.text("stderr") == "err\n"
    assert sorted(result.text().split()) == ["fd", "out"]


def test_a_stream_of_the_users_own_stays(shared: RankClient) -> None:
    shared.run("import io, sys\nkept = sys.stdout\nsys.stdout = io.StringIO()")
    assert shared.run("print('to the user')").events == []
    assert shared.run("text = sys.stdout.getvalue(); sys.stdout = kept\nprint(text, end='')").text() == "to the user\n"


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_stream_of_the_users_own_needs_no_more_than_write_and_flush(shared: RankClient, name: str) -> None:
    tee = (
        "import sys\nclass Tee:\n"
        "    def __init__(self, stream): self.stream, self.kept = stream, []\n"
        "    def write(self, text): self.kept.append(text); self.stream.write(text)\n"
        "    def flush(self): self.stream.flush()\n"
    )
    assert shared.run(f"{tee}sys.{name} = Tee(sys.{name})").status == "ok"
    assert shared.run(f"print('kept', file=sys.{name})").text(name) == "kept\n"
    ended = shared.run(f"tee, sys.{name} = sys.{name}, sys.{name}.stream\nprint(type(tee).__name__, tee.kept)")
    assert ended.text() == "Tee ['kept', '\\n']\n"


def test_ipython_keeps_no_text(shared: RankClient) -> None:
    shared.run("for i in range(100): print(i)")
    # IPython 9.1 and later have such a store; what was printed is not to be in it.
    kept = shared.run("print(len(getattr(get_ipython().history_manager, 'outputs', ())))")
    assert kept.text() == "0\n"
