"""Widgets of ranks: real ranks with ipywidgets, and what a server sees of them through the agent."""

from __future__ import annotations

import base64
import itertools
import json

import pytest
from waits import until

from jupyter_dist.agent.group import comms as limits
from jupyter_dist.protocol.errors import JupyterDistError

SLIDER = """
import ipywidgets
slider = ipywidgets.IntSlider(description="lr")
def moved(change): print(f"rank {rank} has {change.new}")
slider.observe(moved, "value")
slider
"""


@pytest.fixture
def agent(process):
    """The shared agent, with a new server for each test, which asks for the widgets."""
    client = process.client()
    client.request("follow", since=client.hello()["seq"])
    client.request("comms")
    yield client
    client.close()


numbers = itertools.count(1)


def send(agent, rank, comm_id, data, buffers=(), **fields):
    """Send a message as a page does; return its number, and whether it waits for a cell."""
    msg_id = f"m{next(numbers)}"
    content = {"comm_id": comm_id, "data": data, "buffers": list(buffers), "msg_id": msg_id}
    header, _ = agent.request("to_rank", json.dumps(content).encode(), kind="comm_msg", ranks=[rank], **fields)
    return msg_id, header["waits"]


def move(agent, rank, comm_id, value):
    return send(agent, rank, comm_id, {"method": "update", "state": {"value": value}})


def news(agent):
    """What has happened to widgets, as the agent says."""
    return [message for header, _ in agent.inbox if header["t"] == "comms" for message in header["messages"]]


def wait_done(agent, msg_id):
    agent.wait(lambda: any(message["kind"] == "comm_done" and message["msg_id"] == msg_id for message in news(agent)))


def view_of(agent, execution_id, rank=0):
    """The id of the widget that a rank displays in a cell."""
    shown = (
        json.loads(payload)["data"]
        for header, payload in agent.records
        if header["kind"] in ("execute_result", "display_data")
        and (header["execution_id"], header["rank"]) == (execution_id, rank)
    )
    found = [data["application/vnd.jupyter.widget-view+json"]["model_id"] for data in shown if len(data) > 1]
    return found[-1]


def states(agent):
    """The state of all widgets, by id, as a page that comes later gets it."""
    answer, _ = agent.request("comms")
    return {comm["comm_id"]: comm for comm in answer["comms"]}


def test_a_callback_prints_in_the_cell_that_made_the_widget_and_is_no_cell(agent):
    cell = agent.submit(SLIDER, (0, 1))
    agent.ended(cell)
    first, second = view_of(agent, cell, 0), view_of(agent, cell, 1)
    assert first != second
    count = agent.executions[cell]["execution_count"]
    other = agent.run("print('another cell')")

    done, waits = move(agent, 1, second, 7)
    wait_done(agent, done)
    assert not waits
    assert agent.text(1, cell) == "rank 1 has 7\n"
    assert agent.text(0, cell) == ""
    assert states(agent)[second]["data"]["state"]["value"] == 7
    assert states(agent)[first]["data"]["state"]["value"] == 0

    # The echo names the message, so that the page that sent it does not take its own value for news.
    assert ("echo_update", done) in [(m["data"].get("method"), m["parent"]) for m in news(agent) if "parent" in m]

    after = agent.run("import torch\nprint(slider.value, float(dist.all_reduce(x := torch.ones(1)) or x))")
    assert after["state"] == "ok", after
    assert after["execution_count"] == other["execution_count"] + 1 == count + 2
    assert agent.text(1, after["id"]) == "7 2.0\n"


def test_an_error_and_an_interrupt_of_a_callback_are_shown_in_its_cell(agent):
    code = """
import ipywidgets, time
box = ipywidgets.Text()
def typed(change):
    print("handling", change.new, flush=True)
    if change.new == "wait": time.sleep(600)
    raise ValueError("no such thing as " + change.new)
box.observe(typed, "value")
box
"""
    cell = agent.submit(code, (0,))
    agent.ended(cell)
    wait_done(agent, move(agent, 0, view_of(agent, cell), "cheese")[0])

    def errors():
        return [json.loads(p) for h, p in agent.records if (h["kind"], h["execution_id"]) == ("error", cell)]

    agent.wait(errors)
    assert errors()[0]["evalue"] == "no such thing as cheese"

    waiting, _ = move(agent, 0, view_of(agent, cell), "wait")
    agent.wait(lambda: "handling wait" in agent.text(0, cell))
    assert agent.request("interrupt", ranks=[0])[0]["interrupted"] == [0]
    wait_done(agent, waiting)
    assert errors()[-1]["ename"] == "KeyboardInterrupt"
    assert agent.run("print('fine')")["state"] == "ok"


def test_a_message_waits_for_the_cell_and_a_cell_for_the_callback(agent):
    cell = agent.submit(SLIDER, (0,))
    agent.ended(cell)
    busy = agent.submit("input('go? ')\nprint('still', slider.value)", (0,), allow_stdin=True)
    agent.wait(lambda: agent.executions[busy].get("asking"))
    done, waits = move(agent, 0, view_of(agent, cell), 3)
    assert waits
    agent.request("to_rank", b'{"text": ""}', kind="input", execution_id=busy, ranks=[0], seq=None)
    wait_done(agent, done)
    assert "still 0" in agent.text(0, busy)
    assert "rank 0 has 3" in agent.text(0, cell)


def test_an_output_widget_collects_in_the_rank(agent):
    code = """
import ipywidgets
from IPython.display import display, clear_output
out = ipywidgets.Output()
display(out)
print("before")
with out:
    print("inside")
    display({"text/plain": "a table"}, raw=True)
with out:
    raise KeyError("kept inside")
print("after")
box = ipywidgets.interactive(lambda n: print("n is", n), n=4)
box
"""
    cell = agent.submit(code, (0,))
    assert agent.ended(cell)["state"] == "ok"
    assert agent.text(0, cell) == "before\nafter\n"
    first, *_ = [json.loads(p)["data"] for h, p in agent.records if h["kind"] == "display_data"]
    comm = states(agent)[first["application/vnd.jupyter.widget-view+json"]["model_id"]]
    outputs = comm["data"]["state"]["outputs"]
    assert [output["output_type"] for output in outputs] == ["stream", "display_data", "error"]
    assert outputs[0]["text"] == "inside\n"

    assert agent.run("print(len(out.outputs)); out.outputs = ()", (0,))["state"] == "ok"
    assert states(agent)[comm["comm_id"]]["data"]["state"]["outputs"] == []

    found = agent.submit("print(box.children[0].model_id, box.out.model_id)", (0,))
    agent.ended(found)
    control, out = agent.text(0, found).split()
    wait_done(agent, move(agent, 0, control, 5)[0])
    assert states(agent)[out]["data"]["state"]["outputs"][0]["text"] == "n is 5\n"
    assert agent.text(0, cell) == "before\nafter\n"


def errors_of(agent, execution_id):
    return [json.loads(p) for h, p in agent.records if (h["kind"], h["execution_id"]) == ("error", execution_id)]


def outputs_of(agent, name):
    """What the Output widget shows that rank 0 has under this name: in the page, which is what the rank has, too."""
    found = agent.submit(f"print({name}.model_id, len({name}.outputs))", (0,))
    assert agent.ended(found)["state"] == "ok"
    comm_id, count = agent.text(0, found).split()
    shown = states(agent)[comm_id]["data"]["state"]["outputs"]
    assert len(shown) == int(count)
    return shown


def test_an_output_widget_keeps_what_a_message_can_hold(agent):
    agent.ended(agent.submit("import ipywidgets\nkept = 'kept'\nout = ipywidgets.Output()\nout", (0,)))
    many = """
with out:
    for number in range(60): display({"text/plain": f"{number} ".ljust(400_000, "x")}, raw=True)
"""
    cell = agent.submit(many, (0,))
    assert agent.ended(cell)["state"] == "ok"
    left_out, *shown = outputs_of(agent, "out")
    assert "older outputs are not shown" in left_out["text"]
    numbers = [int(output["data"]["text/plain"].split()[0]) for output in shown]
    assert numbers == list(range(60))[-len(numbers) :]
    assert len(numbers) > 30

    # Text beside displays counts, too, and what is too large alone is an error in the widget.
    code = """
with out:
    for number in range(20):
        print("\\0" * 190_000)
        display({"text/plain": str(number)}, raw=True)
with out:
    display({"text/plain": "x" * (17 << 20)}, raw=True)
"""
    cell = agent.submit(code, (0,))
    assert agent.ended(cell)["state"] == "ok"
    left_out, *_, last, error = outputs_of(agent, "out")
    assert "older outputs are not shown" in left_out["text"]
    assert last["data"]["text/plain"] == "19"
    assert "This widget sends 18 MB; the limit is 17 MB" in error["evalue"]

    # One that is closed shows nothing more; the cell does.
    cell = agent.submit("out.close()\nwith out:\n    print(kept)", (0,))
    agent.ended(cell)
    assert agent.text(0, cell) == "kept\n"


UNSOUND = {
    "data": "c.send([1])",
    "text": "c.send('hello')",
    "metadata": "c.send({}, metadata=[1])",
    "id": "create_comm(target_name='x', comm_id='x' * 201)",
    "name": "create_comm(target_name=5)",
    "kind": "c.publish_msg('comm_dance', data={})",
    "depth": """
import sys
sys.setrecursionlimit(20_000)
deep = []
for _ in range(3000): deep = [deep]
c.send({"deep": deep})
""",
    "number": "import sys\nsys.set_int_max_str_digits(0)\nc.send({'number': 10 ** 5000})",
}


@pytest.mark.parametrize("what", UNSOUND)
def test_what_no_comm_can_send_is_an_error_of_the_cell(agent, what):
    """The agent ends a rank that sends it what it cannot read, with all its variables."""
    begin = "from comm import create_comm\nkept = rank\nc = create_comm(target_name='x')"
    assert agent.ended(agent.submit(begin, (0,)))["state"] == "ok"
    cell = agent.submit(UNSOUND[what], (0,))
    assert agent.ended(cell)["state"] == "error"
    assert errors_of(agent, cell)[0]["evalue"].startswith(("A comm", "This has more than 200", "This has a number"))
    after = agent.submit("c.send({'sound': [1, float('nan')]})\nc.close()\nprint(kept)", (0,))
    assert agent.ended(after)["state"] == "ok"
    assert agent.text(0, after) == "0\n"


def test_progress_bars_and_buffers_are_seen_by_the_next_server(agent, process):
    code = """
import ipywidgets
from tqdm.notebook import tqdm
for _ in tqdm(range(20), desc=f"rank {rank}"): pass
picture = ipywidgets.Image(value=bytes([1, 2, rank]))
picture
"""
    cell = agent.submit(code, (0, 1))
    agent.ended(cell)
    later = process.client()
    later.hello()
    kept = states(later)
    later.close()
    bars = [c["data"]["state"] for c in kept.values() if c["data"]["state"]["_model_name"] == "FloatProgressModel"]
    assert [(bar["value"], bar["max"]) for bar in bars] == [(20, 20)] * 2
    picture = kept[view_of(agent, cell, 1)]
    assert picture["data"]["buffer_paths"] == [["value"]]
    assert [base64.b64decode(buffer) for buffer in picture["buffers"]] == [bytes([1, 2, 1])]


def test_bad_messages_end_with_a_sentence(agent):
    cell = agent.submit(SLIDER, (0, 1))
    agent.ended(cell)

    def refused(rank, comm_id, kind="comm_msg", data=None):
        payload = json.dumps({"comm_id": comm_id, "data": data or {}}).encode()
        with pytest.raises(JupyterDistError) as raised:
            agent.request("to_rank", payload, kind=kind, ranks=[rank])
        return raised.value

    assert refused(5, "x").code == "unknown_rank"
    assert refused(0, "x").code == "not_found"
    assert refused(1, view_of(agent, cell, 0)).code == "not_found"
    assert refused(0, view_of(agent, cell, 0), kind="comm_dance").code == "incompatible"

    # What a page sends that the widget does not understand is an error of its cell.
    done, _ = send(agent, 0, view_of(agent, cell), {"nothing": "known"})
    wait_done(agent, done)
    agent.wait(lambda: any(h["kind"] == "error" and h["execution_id"] == cell for h, _ in agent.records))

    huge = agent.submit("ipywidgets.Image(value=bytes(200 << 20))", (0,))
    assert agent.ended(huge)["state"] == "error"
    (error,) = [json.loads(p) for h, p in agent.records if (h["kind"], h["execution_id"]) == ("error", huge)]
    assert "This widget sends 210 MB; the limit is 17 MB" in error["evalue"]


def test_the_state_that_is_kept_is_bounded():
    comms, told = limits.Comms(), []
    comms.on_news = lambda: told.append(comms.take_news())
    comms.snapshot()
    widget = {"target_name": "jupyter.widget", "data": {"state": {"value": 1}}}
    assert comms.rank_sent(0, "comm_open", "e-1", {"comm_id": "a", **widget}, 100) is None
    sentence = comms.rank_sent(0, "comm_open", "e-1", {"comm_id": "b", **widget}, limits.MAX_STATE_BYTES)
    assert "larger than 64 MiB" in sentence
    assert [(comm["comm_id"], comm["is_kept"]) for comm in comms.snapshot()["comms"]] == [("a", True), ("b", False)]
    assert len(told) == 2

    # What a slow server does not take is bounded, too: it asks for everything again.
    comms.on_news = lambda: None
    for value in range(3):
        update = {"comm_id": "a", "data": {"method": "update", "state": {"value": value}}}
        comms.rank_sent(0, "comm_msg", "e-1", update, limits.MAX_NEWS_BYTES // 2)
    assert comms.take_news() == {"seq": 6, "messages": [], "reset": True}
    assert comms.snapshot()["comms"][0]["data"]["state"] == {"value": 2}

    comms.clear()  # the group was restarted
    assert comms.take_news()["reset"]
    assert comms.snapshot()["comms"] == []

    # A rank that handles nothing is sent no more.
    taken = [comms.send(0, {"msg_id": f"m{n}"}, 10) for n in range(limits.MAX_WAITING + 1)]
    assert taken == [True] * limits.MAX_WAITING + [False]


def test_the_next_server_gets_news_if_there_was_too_much_for_the_last_one(process):
    last, stranger, server = process.client(), process.client(), process.client()  # the second does not say hello
    last.request("follow", since=last.hello()["seq"])
    last.request("comms")
    cell = last.submit("import ipywidgets\nbox = ipywidgets.Text()\nbox", (0,))
    last.ended(cell)
    box = view_of(last, cell)

    # From here on it reads nothing.
    megabytes = 2 * limits.MAX_NEWS_BYTES >> 20
    flood = stranger.submit(f"for i in range({megabytes}): box.value = str(i) + 'x' * (1 << 20)", (0,))
    until(lambda: state_of(stranger, flood) == "ok", lambda: state_of(stranger, flood))

    server.request("follow", since=server.hello()["seq"])
    server.request("comms")
    server.run("box.value = 'first'", (0,))
    server.wait(lambda: any(header.get("reset") for header, _ in server.inbox))
    assert states(server)[box]["data"]["state"]["value"] == "first"  # as a server does then
    server.run("box.value = 'second'", (0,))
    server.wait(lambda: any(message["data"].get("state") == {"value": "second"} for message in news(server)))
    for client in (last, stranger, server):
        client.close()


def state_of(client, execution_id):
    header, _ = client.request("executions", after=None)
    return next(execution["state"] for execution in header["executions"] if execution["id"] == execution_id)


def test_the_widgets_of_a_dead_rank_keep_their_last_state(agent):
    cell = agent.submit(SLIDER, (0, 1))
    agent.ended(cell)
    slider = view_of(agent, cell, 1)
    wait_done(agent, move(agent, 1, slider, 9)[0])
    agent.kill_rank(1)
    agent.wait_group("degraded")
    with pytest.raises(JupyterDistError, match="Rank 1 was killed") as raised:
        move(agent, 1, slider, 10)
    assert raised.value.code == "rank_dead"
    kept = states(agent)[slider]
    assert (kept["live"], kept["data"]["state"]["value"]) == (False, 9)
    wait_done(agent, move(agent, 0, view_of(agent, cell, 0), 4)[0])
