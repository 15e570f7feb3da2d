"""Answers that get lost on their way: the client asks again, and nothing is done twice."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import threading
from urllib.parse import urlsplit

import pytest
from faults.server import TOKEN
from waits import PATIENCE

from jupyter_dist.client import Client, JupyterDistError
from jupyter_dist.client.connection.feeds import ExecutionFeed
from jupyter_dist.client.connection.http import Api
from jupyter_dist.client.servers import Server


class Losing:
    """Between a client and its server: passes on all that is asked, and loses the first answers to cells and POSTs."""

    def __init__(self, url: str, num_lost: int) -> None:
        parts = urlsplit(url)
        self._server = (parts.hostname, parts.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}{parts.path}"
        self.num_lost, self.num_asked = num_lost, 0
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def __enter__(self) -> Losing:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(PATIENCE)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._server)
                is_lost = threading.Event()
                for work in ((self._up, near, far, is_lost), (self._down, far, near, is_lost)):
                    self._threads.append(threading.Thread(target=work[0], args=work[1:]))
                    self._threads[-1].start()

    def _up(self, near: socket.socket, far: socket.socket, is_lost: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := near.recv(1 << 16):
                if data.startswith(b"POST") and self._loses():
                    is_lost.set()
                far.sendall(data)
            far.shutdown(socket.SHUT_WR)

    def _loses(self) -> bool:
        self.num_asked += 1
        return self.num_asked <= self.num_lost

    def _down(self, far: socket.socket, near: socket.socket, is_lost: threading.Event) -> None:
        with contextlib.suppress(OSError), near, far:
            while data := far.recv(1 << 16):
                is_answer = b'"type":"submitted"' in data  # to a cell that came over the WebSocket
                if is_lost.is_set() or (is_answer and self._loses()):  # it was done, but the answer is lost
                    near.shutdown(socket.SHUT_RDWR)
                    return
                near.sendall(data)


@pytest.mark.parametrize("num_lost", [1, 2, 5])
def test_a_cell_whose_answer_is_lost_runs_once(group_server, num_lost):
    group_server.run("g", "times = 0")
    with Losing(group_server.info["url"], num_lost) as between, Client.connect(between.url, TOKEN) as client:
        assert client.attach("g").run("times += 1; times").values == {0: "1", 1: "1"}
        assert between.num_asked == num_lost + 1


def test_a_group_whose_start_is_not_answered_is_started_once(group_server):
    with Losing(group_server.info["url"], 1) as between, Client.connect(between.url, TOKEN) as client:
        client.start("asked-twice", num_ranks=1, accelerator="cpu")
        assert between.num_asked == 2
        assert sorted(group.name for group in client.groups()) == ["asked-twice", "g"]


BROKEN = {
    "proxy": b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n",
    "proxy with JSON": b'HTTP/1.1 503 Service Unavailable\r\nContent-Length: 16\r\n\r\n{"error": "busy"}',
    "proxy in time": b"HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 2\r\n\r\nno",
    "cut": b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"id": ',
    "cut without length": b'HTTP/1.1 200 OK\r\n\r\n{"id": ',
    "closed": b"",
}
WHOLE = b'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"id": "g"}'


@contextlib.asynccontextmanager
async def answering(*answers: bytes):
    """A server's API that gives these answers, the last of them to all further requests; and the keys of requests."""
    left, keys = list(answers), []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        keys.append(re.search(rb"(?i)idempotency-key: (\w+)", head)[1])
        writer.write(left.pop(0) if len(left) > 1 else left[0])
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    api = Api(Server(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"))
    yield api, keys
    api.close()
    server.close()


@pytest.mark.parametrize("kind", BROKEN)
async def test_a_change_is_asked_for_again_while_a_server_restarts(kind):
    async with answering(*[BROKEN[kind]] * 4, WHOLE) as (api, keys):
        assert await api.ask_once("groups", body={}) == {"id": "g"}
        assert len(keys) == 5
        assert len(set(keys)) == 1


@pytest.mark.parametrize("kind", BROKEN)
async def test_a_change_that_is_never_answered_may_have_been_made(kind, monkeypatch):
    monkeypatch.setattr("jupyter_dist.client.connection.http.RETRY_AFTER_SECONDS", (0.0,) * 6)
    async with answering(BROKEN[kind]) as (api, keys):
        with pytest.raises(JupyterDistError) as raised:
            await api.ask_once("groups", body={})
    assert raised.value.code == "server_gone"
    assert raised.value.hint.startswith("It may have been carried out: look at ")
    assert len(keys) == 7


def refusal(status: str, code: str, hint: str) -> bytes:
    body = json.dumps({"error": {"code": code, "message": "No.", "hint": hint}}).encode()
    return b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status.encode(), len(body), body)


@pytest.mark.parametrize("first", ["504 Gateway Timeout", "502 Bad Gateway"])
async def test_a_change_whose_answer_was_lost_before_it_was_refused_may_yet_be_made(first, monkeypatch):
    """The agent has the request, and stops: what the server says to the next one is not true of the first."""
    monkeypatch.setattr("jupyter_dist.client.connection.http.RETRY_AFTER_SECONDS", (0.0,) * 6)
    lost = refusal(first, "timed_out", "Try again.") if first.startswith("504") else BROKEN["proxy"]
    stopped = refusal("503 Service Unavailable", "agent_unreachable", "Its ranks keep their variables.")
    async with answering(lost, stopped) as (api, keys):
        with pytest.raises(JupyterDistError) as raised:
            await api.ask_once("groups", "g", "restart")
    assert (raised.value.code, len(keys)) == ("agent_unreachable", 2)
    assert raised.value.hint.startswith("It may be carried out as soon as the agent responds: look at ")
    assert "keep their variables" not in raised.value.hint
    async with answering(stopped) as (api, _):
        with pytest.raises(JupyterDistError) as raised:
            await api.ask_once("groups", "g", "restart")
    assert raised.value.hint == "Its ranks keep their variables."


async def test_a_change_that_no_server_was_asked_for_was_not_made(monkeypatch):
    monkeypatch.setattr("jupyter_dist.client.connection.http.RETRY_AFTER_SECONDS", (0.0,) * 6)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        api = Api(Server(f"http://127.0.0.1:{closed.getsockname()[1]}/"))
    with pytest.raises(JupyterDistError, match="Connection refused") as raised:
        await api.ask_once("groups", body={})
    assert "carried out" not in raised.value.hint
    api.close()


def test_a_cell_that_has_ended_when_its_submission_is_answered_is_shown_with_its_output():
    """The answer and the output come in one burst on a busy machine; then the answer has the end already."""
    ended = {"id": "e-1", "group": "g", "state": "ok"}
    feed = ExecutionFeed("g", ended)
    assert not feed.ended
    item = {"id": 1, "seq": 2, "ranks": "0", "output": {"output_type": "stream"}, "after": None}
    feed.take(
        {"type": "view", "group": "g", "execution_id": "e-1", "since": 0, "seq": 2, "items": [item], "removed": []}
    )
    assert not feed.ended
    feed.take({"type": "execution", "group": "g", "execution": ended})
    assert feed.ended
    assert feed.over.is_set()
    assert len(feed.view.items) == 1
