"""A page that asks much and reads little: every question is answered, and the server keeps next to nothing for it."""

import asyncio
import gc
import json
import tracemalloc

import pytest
from tornado.httpclient import HTTPClientError
from waits import PATIENCE, until_async

from jupyter_dist.server.http.page.channel import ChannelHandler
from jupyter_dist.server.http.page.page import MAX_WAITING, Page
from jupyter_dist.server.http.page.subscriptions import SUBSCRIPTIONS

WAIT_SECONDS = PATIENCE


@pytest.fixture
def open_channel(jp_serverapp, jp_ws_fetch, jp_asyncio_loop):
    opened = []

    async def connect():
        opened.append(await jp_ws_fetch("jupyter-dist", "api", "channel"))
        return opened[-1]

    yield connect

    async def close():
        for channel in opened:
            channel.close()
            while channel.close_code is None and await read(channel) is not None:
                pass

    jp_asyncio_loop.run_until_complete(close())


async def read(channel):
    message = await asyncio.wait_for(channel.read_message(), WAIT_SECONDS)
    return None if message is None else json.loads(message)


async def test_every_message_that_cannot_be_obeyed_is_answered_however_many(open_channel):
    channel = await open_channel()
    for number in range(10 * MAX_WAITING):
        request = {"type": "subscribe", "topic": "log", "group": f"none-{number}", "rank": 0, "padding": "x" * 3000}
        channel.write_message(json.dumps(request))
    answered = []
    while len(answered) < 10 * MAX_WAITING:
        if (message := await read(channel))["type"] == "error":
            assert "padding" not in message["request"]
            answered.append(message["request"]["group"])
    assert answered == [f"none-{number}" for number in range(10 * MAX_WAITING)]


async def test_a_page_that_has_gone_is_pinged_without_an_error(open_channel):
    channel = await open_channel()
    await read(channel)
    (handler,) = (
        found for found in gc.get_objects() if type(found).__name__ == "ChannelHandler" and found.ws_connection
    )
    assert isinstance(handler, ChannelHandler)
    channel.close()
    await until_async(lambda: handler.ws_connection is None)
    handler.ping(b"")  # as a timer does that has not stopped yet


@pytest.mark.parametrize("method", ["load", "messages"])
async def test_a_topic_that_fails_cuts_the_page_off_from_no_other(open_channel, monkeypatch, caplog, method):
    def fail(_):
        raise ZeroDivisionError("of ours")

    monkeypatch.setattr(SUBSCRIPTIONS["devices"], method, fail)
    channel = await open_channel()
    channel.write_message(json.dumps({"type": "subscribe", "topic": "devices"}))
    while (message := await read(channel))["type"] != "error":
        pass
    assert message["request"]["topic"] == "devices"
    assert message["error"]["code"] == "internal"
    assert "ZeroDivisionError: of ours" in caplog.text
    channel.write_message(json.dumps({"type": "subscribe", "topic": "log", "group": "none", "rank": 0}))
    assert (await read(channel))["request"]["topic"] == "log"


async def test_what_a_page_sends_and_does_not_read_stays_in_its_socket(jp_serverapp):
    taken = asyncio.Event()
    sent = []

    async def send(message):
        sent.append(message)
        await taken.wait()

    client = Page(jp_serverapp.web_app.settings["jupyter_dist"].manager, send)
    sender = asyncio.ensure_future(client.run())
    handled = []

    async def ask_on():
        for number in range(2 * MAX_WAITING):
            bad = {"type": "subscribe", "topic": "execution", "group": "none", "execution": f"{number}" * 20_000}
            good = {"type": "subscribe", "topic": "devices", "padding": "x" * 60_000, "number": number}
            await client.handle(bad)
            if number % 40 == 0:
                await client.handle(good)
            handled.append(number)

    tracemalloc.start()
    asking = asyncio.ensure_future(ask_on())
    try:
        await until_async(lambda: len(handled) >= MAX_WAITING - 1)
        for _ in range(100):
            await asyncio.sleep(0)
        assert tracemalloc.get_traced_memory()[0] < 2 << 20
        assert len(handled) < MAX_WAITING
        tracemalloc.stop()
        taken.set()
        await asyncio.wait_for(asking, WAIT_SECONDS)
        await until_async(lambda: sum(message["type"] == "error" for message in sent) >= 2 * MAX_WAITING)
    finally:
        tracemalloc.stop()
        sender.cancel()
        await client.close()
    assert len(client._subscriptions) == 0


async def test_a_page_that_is_gone_keeps_nobody_waiting(jp_serverapp):
    async def send(message):
        await asyncio.Event().wait()

    client = Page(jp_serverapp.web_app.settings["jupyter_dist"].manager, send)
    sender = asyncio.ensure_future(client.run())
    asking = [asyncio.ensure_future(client.handle("nonsense")) for _ in range(MAX_WAITING + 3)]
    await until_async(lambda: len(client._errors) >= MAX_WAITING)
    await client.close()
    await asyncio.wait_for(asyncio.gather(*asking), WAIT_SECONDS)
    sender.cancel()


@pytest.mark.parametrize(
    "message",
    [
        '{"type": "subscribe", "topic": "devices", "topic": "memory"}',
        '{"type": "subscribe", "topic": "devices", "since": NaN}',
        '{"type": "subscribe", "topic": "devices", "since": 1e999}',
        '{"type": "subscribe", "topic": "devices", "since": -1}',
        '{"type": "subscribe", "topic": "devices", "since": 1e3}',
        '{"type": "subscribe", "topic": "devices", "since": 99999999999999999}',
        '{"type": "subscribe", "topic": "memory", "group": "' + "x" * 2000 + '"}',
        '{"type": "subscribe", "topic": "memory", "group": ' + "[" * 20_000,
        "[" * 60_000,
        "[" + "1," * 20_000 + "1]",
        "",
    ],
)
async def test_messages_are_as_strict_as_bodies(open_channel, message):
    channel = await open_channel()
    channel.write_message(message)
    while (answer := await read(channel))["type"] != "error":
        pass
    assert answer["error"]["code"] == "bad_request"
    assert len(json.dumps(answer)) < 1000


@pytest.fixture
def jp_server_config(jp_server_config):
    jp_server_config["DistApp"]["max_pages_per_user"] = 3
    return jp_server_config


async def test_a_user_has_so_many_pages_and_is_told(open_channel):
    pages = [await open_channel() for _ in range(3)]
    assert [(await read(page))["type"] for page in pages] == ["hello"] * 3
    fourth = await open_channel()
    fourth.write_message("{}")  # while it is being closed
    assert await read(fourth) is None
    assert (fourth.close_code, fourth.close_reason[:24]) == (1013, "You have 3 pages open. C")
    pages[0].close()
    for _ in range(300):
        fourth = await open_channel()
        if (first := await read(fourth)) is not None:
            break
        await asyncio.sleep(0.05)
    assert first["type"] == "hello"


@pytest.mark.parametrize("method", ["PROPFIND", "POST"])
async def test_what_is_no_websocket_is_refused_in_one_line_of_the_log(jp_fetch, jp_serverapp, caplog, method):
    jp_serverapp.log.propagate = True
    with pytest.raises(HTTPClientError) as refused:
        await jp_fetch("jupyter-dist", "api", "channel", method=method, allow_nonstandard_methods=True)
    assert refused.value.code == 405
    assert not [record for record in caplog.records if record.exc_info or "Traceback" in record.getMessage()]
