"""The WebSocket with two real ranks: what a page sees, live and after everything that can interrupt it."""

import asyncio
import json

import pytest
from apiclient import texts, without_seq
from waits import PATIENCE

from jupyter_dist.system.limits import within


async def test_a_page_follows_a_cell(shared_api):
    channel = await shared_api.channel()
    code = "import time\nfor step in range(5):\n    print('step', step)\n    time.sleep(0.1)\nprint(rank)"
    execution = await shared_api.submit("g", code)
    ended = await channel.follow("g", execution)
    assert ended["state"] == "ok"
    view = await shared_api.view("g", execution)
    assert without_seq(channel.items) == without_seq(view["items"])
    assert channel.seq == view["seq"]
    assert texts(view)[0] == ("0-1", "".join(f"step {step}\n" for step in range(5)))

    # A page that has everything gets nothing; one with a different state starts over.
    channel.subscribe("execution", group="g", execution=execution, since=view["seq"])
    assert (await channel.next())["type"] == "execution"
    second = await shared_api.channel()
    second.subscribe("execution", group="g", execution=execution, since=3)
    message = await second.next_of("view")
    assert message["reset"]
    assert len(message["items"]) == len(view["items"])
    channel.socket.close()
    second.socket.close()


async def test_a_page_follows_a_log(shared_api):
    await shared_api.run("g", "print('before')")
    page = await shared_api.ask("GET", "groups/g/ranks/0/log")
    channel = await shared_api.channel()
    channel.subscribe("log", group="g", rank=0, since=page["seq"])
    await shared_api.run("g", "print('after')")
    records = []
    while not records or records[-1]["kind"] != "end":
        message = await channel.next_of("log")
        assert message["skipped"] == 0
        records += message["records"]
    assert [record["kind"] for record in records] == ["begin", "stream", "end"]
    assert records[1]["text"] == "after\n"
    channel.socket.close()


async def test_memory_is_sampled_while_somebody_looks(shared_api):
    channel = await shared_api.channel()
    channel.subscribe("memory", group="g")
    sample = (await channel.next_of("memory"))["sample"]
    assert [rank["rank"] for rank in sample["ranks"]] == [0, 1]
    assert all(rank["resident_bytes"] > 1e6 for rank in sample["ranks"])
    assert (await shared_api.ask("GET", "groups/g/memory"))["samples"]
    channel.socket.close()


async def test_a_page_hears_of_groups_that_come_and_go(api):
    channel = await api.channel()
    channel.subscribe("groups")
    assert (await channel.next())["groups"] == []
    await api.start(name="g")
    states = []
    while "ready" not in states:
        message = await channel.next()
        states += [group["state"] for group in message["groups"]]
        states += [change["fields"].get("state") for change in message["changes"]]
    await api.ask("DELETE", "groups/g")
    while (await channel.next()).get("order") != []:
        pass
    channel.socket.close()


async def test_a_page_that_follows_groups_is_sent_what_changed(shared_api):
    channel = await shared_api.channel()
    channel.subscribe("groups")
    first = await channel.next_of("changes")
    [known] = first["groups"]
    assert (first["seq"], first["changes"], first["order"]) == (1, [], [known["id"]])
    assert known == await shared_api.ask("GET", "groups/g")
    execution = await shared_api.submit("g", "import time; time.sleep(0.5)", "1")
    seq, ranks = 1, set()
    while not (ranks and known["ranks"][1]["state"] == "idle" and not known["running"]):
        message = await channel.next()
        assert message["type"] == "changes"
        assert (message["seq"], message["groups"]) == (seq + 1, [])
        assert "order" not in message
        seq += 1
        for change in message["changes"]:
            news = {rank["rank"]: rank for rank in change["ranks"]}
            ranks |= set(news)
            known = {**known, **change["fields"], "ranks": [news.get(rank["rank"], rank) for rank in known["ranks"]]}
    assert ranks == {1}
    assert (await shared_api.view("g", execution))["execution"]["state"] == "ok"
    assert known == await shared_api.ask("GET", "groups/g")
    channel.socket.close()


async def test_a_flood_does_not_hold_up_the_server(shared_api):
    channel = await shared_api.channel()
    execution = await shared_api.submit("g", "for n in range(200_000): print('line number', n)")
    following = asyncio.ensure_future(channel.follow("g", execution))
    answered = 0
    while not following.done():  # how long it makes others wait: `python -m benchmarks stall`
        answered += (await shared_api.ask("GET", "groups/g"))["running"] == [execution]
        await asyncio.sleep(0.02)
    assert (await following)["state"] == "ok"
    assert answered
    assert [item["ranks"] for item in channel.items] == ["0-1", "0-1", "0-1"]
    gap = channel.items[1]["elided"]
    assert gap["lines"] == 200_000 - 2000 - 200
    assert channel.items[2]["output"]["text"].endswith("line number 199999\n")
    channel.socket.close()


async def test_a_page_that_is_cut_again_and_again_shows_each_line_once(shared_api, tmp_path):
    """What a page has after many lost connections is the content of the journal."""
    enough = tmp_path / "enough"
    code = f"""
import os, time
for n in range(1900):
    print('rank', rank, 'line', n)
    if n % 5 == 0 or n > 300: time.sleep(0.03)
    if n > 300 and os.path.exists({str(enough)!r}): break
while not os.path.exists({str(enough)!r}): time.sleep(0.01)
"""
    execution = await shared_api.submit("g", code)
    items, seq, ended, cuts, sockets, seconds = [], 0, None, 0, [], 0.12
    while ended is None:
        if cuts == 6:
            enough.touch()
        channel = await shared_api.channel()
        sockets.append(channel.socket)
        channel.items, channel.seq = items, seq
        try:
            ended = await within(seconds, channel.follow("g", execution, since=seq))
        except asyncio.TimeoutError:
            cuts += 1
            if channel.seq == seq or cuts > 6:  # a busy machine shows nothing in that time; or it was cut often enough
                seconds *= 2
        channel.socket.close()
        items, seq = channel.items, channel.seq
    assert ended["state"] == "ok"
    assert cuts > 5  # while the cell ran
    for socket in sockets:
        while await within(PATIENCE, socket.read_message()) is not None:
            pass  # closing is a handshake: only its end ends the socket
    await asyncio.sleep(0.05)  # and the server's ends close
    assert without_seq(items) == without_seq((await shared_api.view("g", execution))["items"])
    for rank in (0, 1):
        said = "".join(item["output"]["text"] for item in items if item["ranks"] == str(rank))
        assert said == "".join(f"rank {rank} line {n}\n" for n in range(said.count("\n")))
        assert said.count("\n") > 300


async def test_a_cell_is_submitted_over_the_channel_and_runs_once(shared_api):
    group = await shared_api.ask("GET", "groups/g")
    channel = await shared_api.channel()
    cells = [f"submitted_{number} = print('cell', {number})" for number in range(5)]
    for number, code in enumerate(cells):
        channel.send(type="submit", group="g", key=f"over-{number}", cell={"code": code, "notebook": "a.ipynb"})
    submitted = [await channel.next_of("submitted") for _ in cells]
    assert [message["key"] for message in submitted] == [f"over-{number}" for number in range(5)]
    last = submitted[-1]["execution"]
    assert last["code"] == cells[-1]
    assert last["group"] == group["id"]
    counts = []
    for message in submitted:
        view = await shared_api.view("g", message["execution"]["id"])
        assert view["execution"]["state"] == "ok"
        counts.append(view["execution"]["execution_count"])
    assert counts == sorted(counts)  # in the order of the messages
    ended = await channel.follow("g", last["id"])  # it was followed already, which is no error
    assert ended["state"] == "ok"

    # The answer was lost: again over another channel, and by POST, it is the same cell.
    second = await shared_api.channel()
    second.send(type="submit", group="g", key="over-4", cell={"code": cells[-1], "notebook": "a.ipynb"})
    assert (await second.next_of("submitted"))["execution"]["id"] == last["id"]
    while (message := await second.next_of("execution"))["execution"]["ended_at"] is None:
        pass
    posted = await shared_api._fetch(
        *["jupyter-dist", "api", "groups", "g", "executions"],
        method="POST",
        body=json.dumps({"code": cells[-1], "notebook": "a.ipynb"}),
        headers={"Idempotency-Key": "over-4"},
    )
    assert json.loads(posted.body)["id"] == last["id"]
    for opened in (channel, second):
        await opened.close()


async def test_a_page_that_does_not_read_submitted_is_told_the_state(shared_api, tmp_path):
    """Pages take an execution from its own messages: what `submitted` has may be all that happens for long."""
    flag = tmp_path / "flag"
    code = f"import os, time\nwhile not os.path.exists({str(flag)!r}): time.sleep(0.01)"
    channel = await shared_api.channel()
    channel.send(type="submit", group="g", key="told-twice", cell={"code": code})
    said = (await channel.next_of("submitted"))["execution"]
    told = (await channel.next_of("execution"))["execution"]
    assert (told["id"], told["ended_at"]) == (said["id"], None)
    flag.touch()
    while (await channel.next_of("execution"))["execution"]["state"] != "ok":
        pass
    await channel.close()


async def test_a_submit_that_cannot_be_obeyed_is_answered_with_its_key(shared_api):
    channel = await shared_api.channel()
    code = {"code": "1"}
    bad = {
        "unknown_group": {"group": "none", "cell": code},
        "bad_ranks": {"group": "g", "cell": {**code, "ranks": "7"}},
        "bad_request": {"group": "g", "cell": {**code, "colour": "red"}},
    }
    for expected, fields in bad.items():
        channel.send(type="submit", key=expected, **fields)
        message = await channel.next_of("error")
        assert message["error"]["code"] == expected
        assert message["request"]["key"] == expected
    for key in ("", "a b", "x" * 300, 7, None):
        channel.send(type="submit", group="g", key=key, cell=code)
        assert (await channel.next_of("error"))["error"]["code"] in ("bad_request", "too_large")
    channel.send(type="submit", group="g", cell=code)
    assert "key" in (await channel.next_of("error"))["error"]["message"]
    await channel.close()


async def test_a_page_has_the_widgets_of_ranks_and_its_messages_reach_them(shared_api):
    code = "import ipywidgets\nw = ipywidgets.IntSlider()\nw.observe(lambda c: print(rank, 'has', c.new), 'value')\nw.model_id"
    execution = await shared_api.submit("g", code, ranks="1")
    await shared_api.view("g", execution)
    first, second = await shared_api.channel(), await shared_api.channel()

    async def opened(channel):
        channel.subscribe("comms", group="g")
        comms = (await channel.next_of("comms"))["comms"]
        return next(c for c in comms if c["execution_id"] == execution and "value" in c["data"]["state"])

    slider = await opened(first)
    assert (slider["rank"], slider["live"]) == (1, True)
    assert await opened(second) == slider

    def send(rank, **content):
        text = json.dumps({"data": {}, **content})
        message = {"type": "comm", "key": "k", "group": "g", "rank": rank, "kind": "comm_msg", "content": text}
        first.socket.write_message(json.dumps(message))

    update = {"method": "update", "state": {"value": 4}}
    send(1, comm_id=slider["comm_id"], data=update, msg_id="m1")
    for channel in (first, second):
        news = []
        while not any(message["kind"] == "comm_done" for message in news):
            news += (await channel.next_of("comms"))["messages"]
        assert [m["data"]["state"]["value"] for m in news if m["kind"] == "comm_msg"] == [4]
        assert news[-1]["msg_id"] == "m1"
    assert ("1", "1 has 4\n") in texts(await shared_api.view("g", execution))

    # By REST, too; errors name the message.
    sent = {"kind": "comm_msg", "content": json.dumps({"comm_id": slider["comm_id"], "data": update})}
    assert await shared_api.ask("POST", "groups/g/ranks/1/comms", body=sent) == {"waits": False}
    for rank, content, code in [
        (0, {"comm_id": "x"}, "not_found"),
        (7, {"comm_id": "x"}, "unknown_rank"),
        (0, {}, "bad_request"),
    ]:
        send(rank, **content)
        error = await first.next_of("error")
        assert (error["error"]["code"], error["request"]["key"]) == (code, "k")
    first.socket.close()
    second.socket.close()


@pytest.mark.part("hangs")
async def test_the_past_has_samples_and_what_ranks_were_seen_to_wait_in(shared_api):
    """Rank 0 alone calls all_reduce, until it is interrupted."""
    channel = await shared_api.channel()
    channel.subscribe("memory", group="g")
    cell = {"code": "torch.distributed.all_reduce(torch.ones(3))", "ranks": "0"}
    await shared_api.ask("POST", "groups/g/executions", cell)
    seen = []
    while not any(entry["call"] for entry in seen):
        seen = (await channel.next_of("memory"))["sample"].get("seen", [])
    channel.socket.close()
    page = await shared_api.ask("GET", "groups/g/samples")
    assert [rank["rank"] for rank in page["ranks"]] == [0, 1]
    assert all(value > 1e6 for rank in page["ranks"] for value in rank["resident_bytes"])
    assert page["times"] == sorted(page["times"])
    assert not page["more"]
    waiting = [entry for look in page["seen"] for entry in look["seen"] if entry["call"]]
    assert waiting[0]["ranks"] == "0"
    assert waiting[0]["call"].startswith("all_reduce")
    assert waiting[0]["place"].startswith("line 1 of cell [")
    later = await shared_api.ask("GET", "groups/g/samples", since=page["times"][-1])
    assert page["times"][-1] not in later["times"]
    assert not (await shared_api.ask("GET", "groups/g/samples", seconds=0))["times"]
    assert (await shared_api.ask("GET", "groups/g/samples", seconds=3600))["times"][0] == page["times"][0]
    await shared_api.ask("POST", "groups/g/interrupt")
