"""Cells through the client, on real ranks."""

import asyncio
import io
import os
import re
import signal
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import pytest
from waits import PATIENCE, until

from jupyter_dist.client import AsyncClient, Group, JupyterDistError, RankError, TimedOutError, connect
from jupyter_dist.client.bundles.bundle import RANKS_MIME
from jupyter_dist.client.connection.channel import Channel
from jupyter_dist.client.displays.live import TextDisplay
from jupyter_dist.protocol.operations import BY_NAME


def test_outputs_values_and_text_by_rank(group):
    result = group.run("print('hello')\nprint('I am', rank)\nrank * 10")
    assert result.ok
    assert result.ranks == (0, 1)
    assert result.values == {0: "0", 1: "10"}
    assert list(result) == result.keys() == [0, 1]
    assert dict(result)[1] == result[1]
    assert result[1].text == "hello\nI am 1\n10"
    assert result[1].status == "ok"
    assert [output["output_type"] for output in result[0].outputs] == ["stream", "execute_result"]
    assert "[ranks 0-1]\nhello\n" in str(result)
    with pytest.raises(KeyError, match="not on rank 5"):
        result[5]


def test_who_waited_for_a_cell_finds_its_ranks_idle(group):
    for _ in range(3):
        group.run("import time; time.sleep(0.1 + rank * 0.005)")
        assert [rank.state for rank in group.status().ranks] == ["idle", "idle"]


def test_ranks_are_chosen_by_expression(group):
    assert group.run("rank", "!0").values == {1: "1"}
    with pytest.raises(JupyterDistError, match="no rank 7"):
        group.run("rank", "7")


def test_an_error_is_a_result_until_it_is_asked_for(group):
    result = group.run("kept = 1\nif rank == 1: raise ValueError('only here')")
    assert result.state == "error"
    assert str(result.errors[1]) == "ValueError: only here"
    assert set(result.errors) == {1}
    with pytest.raises(RankError, match=r"rank 1: ValueError: only here") as raised:
        result.raise_for_error()
    assert raised.value.errors == result.errors
    assert group.run("kept", check=True).values == {0: "1", 1: "1"}


def test_streaming_hands_out_what_is_there_so_far(group):
    seen = []
    code = "import time\nfor i in range(4):\n    print('step', i)\n    time.sleep(0.2)"
    result = group.run(code, stream=lambda result: seen.append((time.monotonic(), result.done, result[0].text)))
    assert result[0].text == "".join(f"step {i}\n" for i in range(4))
    assert [done for _, done, _ in seen] == [False] * (len(seen) - 1) + [True]
    texts = [text for _, _, text in seen]
    assert any(text and text in result[0].text and text != result[0].text for text in texts)
    assert len(seen) <= 8  # four times a second


def test_a_future_is_submitted_awaited_and_cancelled(group):
    running = group.submit("import time\ntime.sleep(1000)")
    queued = group.submit("'after'", stop_on_error=False)
    assert not running.done()
    with pytest.raises(TimeoutError) as raised:
        running.result(0.2)
    assert isinstance(raised.value, TimedOutError)
    assert isinstance(raised.value, JupyterDistError)
    queued.cancel()
    running.cancel()
    assert running.result(PATIENCE).state == "interrupted"
    assert queued.result(PATIENCE).state == "aborted"
    assert running.done()


def interrupt_the_wait():
    """Send Ctrl-C once the main thread waits for a cell: at any other moment it would end the test run."""
    until(lambda: {"wait", "result"} <= set(_main_functions()), lambda: "nobody waits")
    os.kill(os.getpid(), signal.SIGINT)


def _main_functions():
    main = sys._current_frames()[threading.main_thread().ident]
    return [frame.f_code.co_name for frame, _ in traceback.walk_stack(main)]


def test_ctrl_c_interrupts_the_ranks_and_keeps_them(group):
    group.run("kept = 'still here'")

    def interrupt():
        until(lambda: group.status().running)
        interrupt_the_wait()

    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        group.run("import time\ntime.sleep(1000)", stream=lambda result: None)
    thread.join(PATIENCE)
    assert group.run("kept").values == {0: "'still here'", 1: "'still here'"}
    assert group.status().state == "ready"


def test_ctrl_c_while_output_is_shown_leaves_nothing_half_shown(group):
    begun, ended = [], []

    def show(result):
        begun.append(result.text)
        if len(begun) == 1:
            os.kill(os.getpid(), signal.SIGINT)
        ended.append(result.text)

    with pytest.raises(KeyboardInterrupt):
        group.run("import time\nprint('in', flush=True)\ntime.sleep(1000)", stream=show)
    assert ended == begun
    assert len(begun) > 1  # and the last state is shown
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


# Also what arrives right after the output, or between two turns of the loop.
SWALLOWS = """
import time
while True:
    try:
        while True:
            try:
                print("in", flush=True)
                time.sleep(1000)
            except BaseException:
                pass
    except BaseException:
        pass
"""


def test_ranks_that_swallow_an_interrupt_are_named_and_a_second_one_ends_the_wait(group):
    stuck = group.submit(SWALLOWS, "1")

    def interrupt():
        # The rank's own text: that of all ranks has the cell's state, and is never empty.
        until(lambda: stuck.peek()[1].text.startswith("in"), lambda: "the cell does not run")
        interrupt_the_wait()
        until(lambda: "Rank 1 has not stopped yet. Interrupt again" in "".join(said), lambda: said)
        os.kill(os.getpid(), signal.SIGINT)

    said = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", io.StringIO())
        patch.setattr(sys.stderr, "write", said.append)
        threading.Thread(target=interrupt, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            stuck.wait()
    assert not stuck.done()
    assert "group.kill(1)" in "".join(said)
    group.kill(1)
    assert stuck.result().state == "lost"
    group.replace()


def test_status_memory_and_logs(group):
    group.run("print('in the log')")
    assert group.status().world_size == 2
    assert {sample.rank for sample in group.memory().ranks} == {0, 1}
    samples = group.samples()
    assert list(samples) == [0, 1]
    assert samples[1].resident_bytes[-1] > 1e6
    assert len(samples.times) == len(samples[0].cpu_percent)
    assert "  rank 1: resident" in repr(samples)
    assert any(record.text == "in the log\n" for record in group.logs(1))
    assert set(group.empty_cache()) == {0, 1}
    assert group.interrupt().model == {"interrupted": "", "idle": "0-1"}


def test_logs_are_followed(group):
    group.run("print('before')")
    pages = group.follow_logs(0)
    assert any(record.text == "before\n" for record in next(pages))
    group.submit("print('since then')")
    found = []
    while not any(record.text == "since then\n" for record in found):
        found += next(pages)
    assert not any(record.text == "before\n" for record in found)
    pages.close()


def test_a_dead_rank_is_replaced_and_the_others_keep_their_variables(group):
    group.run("mine = rank")
    result = group.run("import os\nif rank == 1: os._exit(3)\ndist.barrier()")
    assert result.state == "lost"
    # The other ranks say the same, so that it is shown once: no port of a connection.
    assert "torch said" in str(result.errors[0])
    assert not re.search(r"\]:\d", str(result.errors[0]))
    with pytest.raises(RankError, match="exited with code 3"):
        result.raise_for_error()
    group.replace()
    assert group.run("globals().get('mine')").values == {0: "0", 1: None}
    group.restart()
    assert group.run("'mine' in globals()").values == {0: "False", 1: "False"}


def test_a_rank_that_nothing_frees_is_killed_alone(group):
    group.run("mine = rank")
    stuck = group.submit("import ctypes\nctypes.PyDLL(None).sleep(100)", "1")
    model = group.kill(-1).model
    assert [rank["state"] for rank in model["ranks"]] == ["idle", "dead"]
    assert model["ranks"][1]["exit"]["reason"] == "was killed (on request)"
    assert stuck.wait().state == "lost"
    with pytest.raises(JupyterDistError, match="no rank 7"):
        group.kill(7)
    group.replace()
    assert group.run("globals().get('mine')").values == {0: "0", 1: None}


def test_a_replacement_that_dies_is_not_called_replaced(group):
    first, second = (rank.pid for rank in group.status().ranks)
    group.kill(1)
    os.kill(first, signal.SIGSTOP)  # so that the new rank waits for it
    with ThreadPoolExecutor() as pool:
        replacing = pool.submit(group.replace)
        try:
            until(lambda: group.status().ranks[1].pid not in (None, second), group.status)
            os.kill(group.status().ranks[1].pid, signal.SIGKILL)
        finally:
            os.kill(first, signal.SIGCONT)
        with pytest.raises(JupyterDistError, match="Not all dead ranks") as error:
            replacing.result()
    assert "Rank 1 could not be replaced" in error.value.hint
    group.replace()
    assert group.run("dist.barrier()").state == "ok"


def test_a_process_group_that_a_cell_destroyed_is_formed_anew(group):
    group.run("mine = rank\ndist.destroy_process_group()", check=True)
    deadline = time.monotonic() + PATIENCE
    while "destroyed the process group" not in (group.status().note or ""):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    running = group.submit("import time\ntime.sleep(1000)")
    with pytest.raises(JupyterDistError, match="A cell is running"):
        group.reform()
    running.cancel()
    running.result(PATIENCE)
    group.run("__import__ = None")  # in the way of code of ours that ran among the user's names
    assert group.reform() is group
    assert group.run("del __import__\nt = torch.ones(1)\ndist.all_reduce(t)\n(mine, t.item())").values == {
        0: "(0, 2.0)",
        1: "(1, 2.0)",
    }


@pytest.mark.part("resizing")
def test_a_group_changes_its_size(group):
    group.run("mine = rank\nprint('before')", check=True)
    assert group.resize(3, others="keep") is group
    assert (group.world_size, group.model["resized"]["error"]) == (3, None)
    assert group.run("(rank, world_size, globals().get('mine'))").values == {
        0: "(0, 3, 0)",
        1: "(1, 3, 1)",
        2: "(2, 3, None)",
    }
    assert group.drift().offered == []  # what ran before is not missed by the new rank
    group.run("print('of three')", "2")
    group.resize(2, others="keep")
    if "script" in BY_NAME:
        script = group.script().script  # the cells have the ranks that they had
        assert "\nmine = rank\n" in script
        assert "if rank in (2,):\n    print('of three')" in script
    assert "of three" in "".join(record.text for record in group.logs(2) if record.kind == "stream")
    with pytest.raises(JupyterDistError, match="has 2 ranks already"):
        group.resize(2)
    assert group.run("t = torch.ones(1)\ndist.all_reduce(t)\n(mine, t.item())").values == {0: "(0, 2.0)", 1: "(1, 2.0)"}


def test_a_result_is_the_bundle_of_a_rank_cell(group):
    result = group.run("print('x')")
    data = result._repr_mimebundle_()
    bundle = data[RANKS_MIME]
    assert bundle["group"] == {"id": group.id, "name": "shared", "world_size": 2}
    assert bundle["items"] == [
        {"ranks": "0-1", "output": {"output_type": "stream", "name": "stdout", "text": "x\n"}},
    ]
    assert data["text/plain"] == "[ranks 0-1]\nx"
    assert group.run("y = 1")._repr_mimebundle_()["text/plain"] == "[ranks 0-1] ok"


def test_text_streams_whole_lines_once_under_those_who_said_them(group):
    out = io.StringIO()
    code = "import time\nprint('same')\nfor i in range(3):\n    print(f'\\r{i}', end='', flush=True)\n    time.sleep(0.1)\nprint()\nrank"
    group.run(code, stream=TextDisplay(out))
    text = out.getvalue()
    assert text.count("same\n") == 1
    assert text.startswith("[ranks 0-1]\nsame\n")
    assert "2\n" in text
    assert "[rank 0]" in text
    assert text.rstrip().endswith("1")


def test_asyncio_programs_await_the_same(client, group):
    async def program():
        twin = await AsyncClient.connect(client.url)
        try:
            found = await twin.attach("shared")
            many = await asyncio.gather(*(found.run(f"rank + {n}", "0") for n in range(3)))
            streamed = [result async for result in found.stream("print('x')")]
            return [result.values[0] for result in many], streamed[-1]
        finally:
            await twin.close()

    values, last = asyncio.run(program())
    assert values == ["0", "1", "2"]
    assert last.done
    assert last[0].text == "x\n"


def test_names_that_do_not_exist_are_answered_with_those_that_do(client, group):
    with pytest.raises(JupyterDistError, match="Did you mean 'shared'"):
        client.attach("sharde")
    assert client.attach().id == group.id
    other = Group.start("other", client=client, num_ranks=1, accelerator="cpu")
    with pytest.raises(JupyterDistError, match=r"2 groups are running.*'shared', 'other'"):
        client.attach()
    assert other.shutdown() == []
    with pytest.raises(JupyterDistError, match="1 to"):
        client.start(num_ranks=0)


def test_a_server_that_is_gone_is_named(client):
    with pytest.raises(JupyterDistError, match=r"http://127.0.0.1:9 does not respond"):
        connect("http://127.0.0.1:9", "token")
    with pytest.raises(JupyterDistError, match="do not have permission"):
        connect(client.url, "wrong")


def test_cells_too_long_for_a_message_and_cells_nobody_waits_for(group, monkeypatch):
    ended, send = [], Channel._send

    def sent(channel, message):
        if message["type"] == "unsubscribe" and "execution" in message:
            ended.append(message["execution"])
        send(channel, message)

    monkeypatch.setattr(Channel, "_send", sent)
    text = "a" * 100_000
    assert group.run(f"len('{text}')").values == {0: "100000", 1: "100000"}
    code = "import time; unseen = {}; print('x' * 1000, flush=True); time.sleep(0.05)"
    unseen = {group.submit(code.format(number)).id for number in range(20)}  # dropped at once
    last = group.submit("unseen")
    assert last.result(PATIENCE).values == {0: "19", 1: "19"}
    assert [result.done for result in last.stream()] == [True]
    assert not group.client._client.channel._unclaimed
    until(lambda: unseen <= set(ended), lambda: unseen - set(ended))  # the server limits how many are followed


def test_questions_of_ranks_are_answered_by_the_program(client, group):
    asked = []

    def answer(question):
        asked.append((question.ranks, question.prompt, question.password))
        return None if question.prompt == "more? " else f"to {question.ranks}"

    code = """
name = input("name? ")
secret = __import__("getpass").getpass("token: ")
try:
    input("more? ")
except EOFError:
    print(name, len(secret))
"""
    result = group.run(code, ask=answer)
    assert result.ok
    assert asked == [("0-1", "name? ", False), ("0-1", "token: ", True), ("0-1", "more? ", False)]
    assert "to 0-1 6" in result.text

    cell = group.submit("print(rank, input('who? '))", allow_stdin=True)
    until(lambda: [entry.ranks for entry in cell.peek().asking] == ["0-1"])
    (question,) = cell.peek().asking
    assert cell.answer("one", "1", question.seq).model == {"answered": "1", "not_asking": ""}
    with pytest.raises(JupyterDistError) as raised:
        cell.answer("again", "1", question.seq)
    assert raised.value.code == "not_asking"
    cell.answer("zero")
    assert [found.text for _, found in cell.result().items()] == ["who? zero\n0 zero\n", "who? one\n1 one\n"]

    # Nobody is there: this program has no terminal.
    result = group.run("input()", "0")
    assert result[0].error.ename == "StdinNotImplementedError"
