"""What the agent tells its server, and in which order, over a real socket and from a real journal."""

import asyncio
import contextlib
import errno
import logging
import os
import time

from waits import PATIENCE

from jupyter_dist.agent.contact.server_link import After, ServerLink, answer
from jupyter_dist.journal.writer import JournalWriter
from jupyter_dist.transport.frames import unpack
from jupyter_dist.transport.stream import FrameStream
from jupyter_dist.transport.tasks import start_task


@contextlib.asynccontextmanager
async def listening(tmp_path):
    async def hello(_header, _payload):
        return answer()

    async def follow(header, _payload):
        return answer()

    link = ServerLink(tmp_path / "agent.sock", {"hello": hello, "follow": follow})
    link.use_journal(JournalWriter(tmp_path / "journal", link.records_grew))
    await link.listen()
    try:
        yield link
    finally:
        await link.close()
        link._journal.close()


async def connected(link):
    stream = await FrameStream.connect(str(link._path), PATIENCE)
    stream.send({"t": "hello", "id": 1})
    stream.send({"t": "follow", "id": 2, "since": 0})
    return stream


async def told(stream, *kinds, count):
    found = []
    while len(found) < count:
        header, _ = unpack(*await asyncio.wait_for(stream.recv(), PATIENCE))
        if header["t"] in kinds:
            found.append(header)
    return found


async def test_a_message_that_cannot_be_made_costs_only_itself(tmp_path, caplog):
    async with listening(tmp_path) as link:
        stream = await connected(link)
        await told(stream, "answer", count=2)

        def broken():
            raise ValueError("no such thing")

        link.push("one", "group", broken, at_once=True)
        link.push("two", "group", lambda: {"group": {"state": "ready"}}, at_once=True)
        dropped, group = await told(stream, "dropped", "group", count=2)
        assert (dropped["about"], dropped["key"]) == ("group", "one")
        assert "no such thing" in dropped["error"]["message"]
        assert group["group"] == {"state": "ready"}
        assert "no such thing" in caplog.text
        stream.abort()


async def test_records_that_are_being_joined_are_not_divided_by_what_is_sent(tmp_path):
    async with listening(tmp_path) as link:
        journal, due = link._journal, []
        journal.join_records(due.append)
        stream = await connected(link)
        await told(stream, "answer", count=2)
        journal.append_of(0, "stream", b"line", execution_id="e-1", name="stdout")
        link.push("group", "group", lambda: {"group": {"state": "ready"}}, at_once=True)
        await told(stream, "group", count=1)
        journal.append_of(1, "stream", b"line", execution_id="e-1", name="stdout")
        due.pop()()
        (record,) = await told(stream, "record", count=1)
        assert (record["ranks"], due) == ("0-1", [])
        stream.abort()


async def test_a_log_that_cannot_be_read_holds_no_state_and_comes_when_it_can(tmp_path, monkeypatch, caplog):
    async with listening(tmp_path) as link:
        stream = await connected(link)
        await told(stream, "answer", count=2)
        pread = os.pread

        def no_disk(*_):
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(os, "pread", no_disk)
        link._journal.append("stream", b"kept", rank=0, execution_id="e-1", name="stdout")
        link.push("group", "group", lambda: {"group": {"state": "ready"}}, at_once=True)
        dropped, group = await told(stream, "dropped", "group", count=2)
        assert dropped["about"] == "records"
        assert "Input/output error" in dropped["error"]["message"]
        assert group["group"] == {"state": "ready"}
        assert "Input/output error" in caplog.text
        monkeypatch.setattr(os, "pread", pread)
        (record,) = await told(stream, "record", count=1)  # without anything else that is new
        assert record["seq"] == 1
        stream.abort()


async def test_a_log_that_still_cannot_be_read_is_reported_to_the_next_server_too(tmp_path, monkeypatch):
    async with listening(tmp_path) as link:
        link._journal.append("stream", b"kept", rank=0, execution_id="e-1", name="stdout")

        def no_disk(*_):
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(os, "pread", no_disk)
        for _ in range(2):
            stream = await connected(link)
            (dropped,) = await told(stream, "dropped", count=1)
            assert dropped["about"] == "records"
            stream.abort()


def say(link, execution_id, megabytes):
    for _ in range(megabytes):
        link._journal.append("stream", b"x" * (1 << 20), rank=0, execution_id=execution_id, name="stdout")


async def test_state_goes_ahead_of_output_and_an_end_after_what_was_said_before_it(tmp_path):
    async with listening(tmp_path) as link:
        say(link, "e-1", 8)
        stream = await connected(link)
        await told(stream, "answer", count=2)
        link.push("e-1", "execution", lambda: {"execution": {"id": "e-1"}}, after=After(8), at_once=True)
        link.push("group", "group", lambda: {"group": {}}, at_once=True)
        say(link, "e-2", 8)
        order = [
            (header["t"], header.get("seq")) for header in await told(stream, "record", "group", "execution", count=18)
        ]
        seqs = [seq for _, seq in order if seq is not None]
        assert seqs == list(range(1, 17))
        assert order.index(("group", None)) < order.index(("record", 4))
        assert order.index(("record", 8)) < order.index(("execution", None)) < order.index(("record", 12))
        stream.abort()


async def test_an_end_that_has_waited_long_enough_overtakes_what_was_said_before_it(tmp_path):
    async with listening(tmp_path) as link:
        say(link, "e-1", 16)
        stream = await connected(link)
        await told(stream, "answer", count=2)
        link.push("e-1", "execution", lambda: {"execution": {}}, after=After(16, time.monotonic()), at_once=True)
        order = [header.get("seq") for header in await told(stream, "record", "execution", count=17)]
        assert [seq for seq in order if seq is not None] == list(range(1, 17))
        assert order.index(None) < order.index(16)
        stream.abort()


async def test_a_task_that_fails_is_logged_and_its_owner_told(caplog):
    async def fail():
        raise ValueError("for a reason")

    told = asyncio.get_running_loop().create_future()
    with caplog.at_level(logging.ERROR):
        start_task(fail(), "what was to be done", told.set_result)
        assert str(await asyncio.wait_for(told, PATIENCE)) == "for a reason"
    assert "what was to be done" in caplog.text
