"""Signal handlers of cells that raise anywhere: output is whole, no signal is lost, and the rank still answers."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from rankclient import RankClient, Result
from waits import PATIENCE, until

# Python itself may end a `print` between the text and the line break: here they are one. IPython shows what derives from
# Exception where it formats a value, and continues.
TIME_LIMITS = """
import signal, sys
class Late({base}): pass
def late(*_): raise Late
_ = signal.signal(signal.SIGALRM, late)
n, cut = 0, []
for _ in range(500):
    try:
        signal.setitimer(signal.ITIMER_REAL, .0003)
        while True:
            n += 1
            {say}
    except Late:
        cut.append(n)
"""


def numbers(result: Result) -> list[int]:
    """What a cell said, in order."""
    text = "".join(
        f"{content['data']['text/plain']}\n" if kind == "display_data" else content.decode()
        for kind, content in result.events
    )
    return [int(line) for line in text.splitlines()]


def none_doubled_and_none_lost(said: list[int], last: int, cut: list[int]) -> None:
    assert said == sorted(set(said))
    assert set(range(1, last + 1)) - set(said) <= set(cut)


@pytest.mark.parametrize(
    ("base", "say"),
    [
        ("TimeoutError", "print(f'{n}\\n', end='', flush=True)"),
        ("TimeoutError", "print(f'{n}\\n', end='', file=sys.stderr)"),
        ("BaseException", "display(n)"),
    ],
)
def test_a_time_limit_ends_what_prints(shared: RankClient, base: str, say: str) -> None:
    result = shared.run(TIME_LIMITS.format(base=base, say=say))
    assert result.status == "ok"
    last, cut = json.loads(shared.run("print([n, cut])").text())
    assert len(cut) == 500
    none_doubled_and_none_lost(numbers(result), last, cut)
    assert shared.ask("ping")["ok"]


# Exactly where IPython has an IndexError take the place of what is raised, which it shows.
BETWEEN_GROUPS = """
import signal, sys
from IPython.lib import pretty
exec('''def len(one, signals=[{signum}]):
    caller = sys._getframe(1)
    if caller.f_code.co_name == "enq" and caller.f_locals["depth"] == 2 and signals:
        __import__("signal").raise_signal(signals.pop())
    return one.__len__()
''', vars(pretty))
class Late(BaseException): pass
def late(*_): raise Late
_ = signal.signal(signal.SIGALRM, late)
try: display(1); ended = "lost"
except (Late, KeyboardInterrupt) as error: ended = type(error).__name__
finally: del pretty.len
"""


@pytest.mark.parametrize(("signum", "error"), [(signal.SIGALRM, "Late"), (signal.SIGINT, "KeyboardInterrupt")])
def test_a_signal_while_ipython_formats_a_value(rank: RankClient, signum: int, error: str) -> None:
    result = rank.run(BETWEEN_GROUPS.format(signum=int(signum)))
    assert numbers(result) == [1]
    assert rank.run("print(ended)").text() == f"{error}\n"


def test_interrupts_of_a_cell_that_uses_pythons_own_handler(rank: RankClient) -> None:
    code = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\nn = 0\nwhile True: n += 1; print(f'{n}\\n', end='', flush=True)"
    for _ in range(30):
        execution_id = rank.start(code)
        until_it_prints(rank, execution_id)
        rank.interrupt(execution_id)
        result = rank.result(execution_id)
        assert result.status == "interrupted"
        result.events = [(kind, data) for kind, data in result.events if kind == "stdout"]
        last = int(rank.run("print(n)").text())
        none_doubled_and_none_lost(numbers(result), last, [last])
    assert rank.ask("ping")["ok"]


def until_it_prints(rank: RankClient, execution_id: str) -> None:
    rank._until(lambda: any(owner == execution_id for owner, _, _ in rank.events), PATIENCE)


def test_a_time_limit_that_nothing_catches_is_shown_without_our_frames(shared: RankClient) -> None:
    code = (
        "import signal\ndef late(*_): raise TimeoutError('too long')\n_ = signal.signal(signal.SIGALRM, late)\n"
        "_ = signal.setitimer(signal.ITIMER_REAL, .01)\nwhile True: print('on', flush=True)"
    )
    result = shared.run(code)
    assert (result.status, result.error["evalue"]) == ("error", "too long")
    assert "jupyter_dist" not in result.traceback


def test_a_handler_that_was_held_back_runs_though_nothing_is_printed(rank: RankClient) -> None:
    """Its signal comes in our code, which a fifo holds up; then the cell sleeps."""
    code = """
import os, signal, threading, time
from jupyter_dist.rank.guard.own import read_text
waiting = get_ipython().interrupter.handlers.waiting
os.mkfifo('fifo')
def late(*_): raise TimeoutError
_ = signal.signal(signal.SIGUSR1, late)
def hit():
    while not waiting:
        os.kill(os.getpid(), signal.SIGUSR1)
        time.sleep(.01)
    open('fifo', 'w').close()
try:
    threading.Timer(.1, hit).start()
    read_text('fifo')
    time.sleep(1000)
except TimeoutError:
    print('ended')
"""
    assert rank.run(code).text() == "ended\n"


def test_a_handler_runs_while_a_cell_awaits_and_between_cells(rank: RankClient) -> None:
    code = """
import asyncio, signal
loop, task = asyncio.get_running_loop(), asyncio.current_task()
_ = signal.signal(signal.SIGALRM, lambda *_: loop.call_soon_threadsafe(task.cancel))
_ = signal.signal(signal.SIGUSR1, lambda *_: print('between cells'))
_ = signal.setitimer(signal.ITIMER_REAL, .05)
try: await asyncio.sleep(1000)
except asyncio.CancelledError: print('cancelled')
"""
    assert rank.run(code).text() == "cancelled\n"
    os.kill(rank.pid, signal.SIGUSR1)
    rank.wait_text("between cells")


@pytest.mark.parametrize("ends", ["interrupt", "time limit"])
def test_a_cell_whose_output_nobody_reads_can_be_ended(rank: RankClient, tmp_path: Path, ends: str) -> None:
    waits, ended = tmp_path / "waits", tmp_path / "ended"
    code = f"""
import pathlib, signal, sys, threading
def late(*_): raise TimeoutError
_ = signal.signal(signal.SIGUSR1, late)
def look():
    names = []
    while 'wait_for_room' not in names:
        frame, names = sys._current_frames()[threading.main_thread().ident], []
        while frame: frame, names = frame.f_back, [*names, frame.f_code.co_name]
    pathlib.Path({str(waits)!r}).touch()
threading.Thread(target=look).start()
try:
    while True: print('x' * 100_000)
except (KeyboardInterrupt, TimeoutError): pathlib.Path({str(ended)!r}).touch()
"""
    execution_id = rank.start(code)
    until(waits.exists)
    if ends == "interrupt":
        rank.interrupt(execution_id)
    else:
        os.kill(rank.pid, signal.SIGUSR1)
    until(ended.exists)
    assert rank.result(execution_id).status == "ok"


def test_a_time_limit_is_not_lost_in_a_fork(rank: RankClient) -> None:
    """Python drops what is raised by what it calls before and after a fork, as ours, which sends what was printed."""
    code = """
import os, signal
def late(*_): raise TimeoutError
_ = signal.signal(signal.SIGALRM, late)
num = 0
for _ in range(20):
    try:
        signal.setitimer(signal.ITIMER_REAL, .003)
        while True:
            print('x')
            if not (pid := os.fork()): os._exit(0)
            os.waitpid(pid, 0)
    except TimeoutError:
        num += 1
while True:
    try: os.waitpid(-1, 0)
    except ChildProcessError: break
"""
    result = rank.run(code)
    assert (result.status, result.text("stderr")) == ("ok", "")
    assert rank.run("print(num)").text() == "20\n"


def test_a_time_limit_is_not_taken_for_an_error_of_a_collective(rank: RankClient) -> None:
    """gloo's own errors are RuntimeErrors, too; some of them only end a slice of the wait."""
    code = """
import signal
class Late(RuntimeError): pass
def late(*_): raise Late
_ = signal.signal(signal.SIGALRM, late)
num, ones = 0, torch.ones(1_000_000)
for _ in range(200):
    try:
        signal.setitimer(signal.ITIMER_REAL, .001)
        while True: dist.all_reduce(ones)
    except Late:
        num += 1
print(num)
"""
    assert rank.run(code).text() == "200\n"


def test_a_handler_in_a_forked_child_runs_at_once(rank: RankClient) -> None:
    code = """
import os, signal
def late(*_): raise TimeoutError
if not (pid := os.fork()):
    _ = signal.signal(signal.SIGALRM, late)
    _ = signal.setitimer(signal.ITIMER_REAL, .05)
    try:
        while True: print('.', end='', flush=True)
    except TimeoutError: os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    assert rank.run(code).text().endswith("7\n")


def test_cells_see_the_handlers_that_they_set(shared: RankClient) -> None:
    code = """
import signal
def mine(*_): pass
before = signal.getsignal(signal.SIGINT)
print(signal.signal(signal.SIGUSR1, mine) is signal.SIG_DFL, signal.getsignal(signal.SIGUSR1) is mine)
print(signal.signal(signal.SIGUSR1, signal.SIG_IGN) is mine, signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN)
print(signal.signal(signal.SIGINT, mine) == before, signal.signal(signal.SIGINT, before) is mine, signal.getsignal(signal.SIGINT) == before)
try: signal.signal(signal.SIGUSR1, 'no handler')
except TypeError as err: print(err)
_ = signal.signal(signal.SIGUSR1, signal.SIG_DFL)
"""
    said = shared.run(code).text().splitlines()
    assert said[:3] == ["True True", "True True", "True True True"]
    assert "signal handler must be" in said[3]


def test_an_interrupt_leaves_no_output_with_a_widget(rank: RankClient) -> None:
    """It comes while a widget gives the output back: a trace function raises there."""
    code = """
import sys, ipywidgets
outer, inner = ipywidgets.Output(), ipywidgets.Output()
def hit(frame, event, _):
    if (frame.f_code.co_name, frame.f_back.f_code.co_name) == ('_flush', 'leave'): raise KeyboardInterrupt
with outer:
    try:
        with inner:
            print('inner')
            sys.settrace(hit)
    except KeyboardInterrupt: pass
    print('outer')
print('cell', [each['text'] for each in outer.outputs])
"""
    assert rank.run(code).text() == "cell ['outer\\n']\n"


def test_a_widget_has_no_output_of_later_cells(rank: RankClient) -> None:
    rank.run("import ipywidgets\nout = ipywidgets.Output()\n_ = out.__enter__()\nprint('in the widget')")
    assert rank.run("print('in the cell')").text() == "in the cell\n"


def test_a_callback_of_a_library_is_interrupted(rank: RankClient) -> None:
    code = """
import pathlib, sys, comm
pathlib.Path('of_a_library.py').write_text("def call(_):\\n    print('called', flush=True)\\n    while True: pass")
sys.path.append('')
import of_a_library
made = comm.create_comm(target_name='t')
made.on_msg(of_a_library.call)
print(made.comm_id)
"""
    comm_id = rank.run(code).text().strip()
    content = {"comm_id": comm_id, "data": {}, "msg_id": "m"}
    rank.send({"t": "to_rank", "kind": "comm_msg", "number": 0}, json.dumps(content).encode())
    rank.wait_text("called")
    rank.interrupt("callback")
    rank._until(lambda: any(header.get("kind") == "comm_done" for header, _ in rank.frames), PATIENCE)
    assert rank.run("print('well')").text() == "well\n"
