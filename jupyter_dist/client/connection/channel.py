"""The WebSocket of one client.

After a lost connection it subscribes again, from the last known sequence number; at the next server if this has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakValueDictionary

from tornado.httpclient import HTTPClientError
from tornado.simple_httpclient import HTTPTimeoutError

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.wire.messages import ClientMessage, ServerMessage, SubmitMessage, SubmittedMessage
from jupyter_dist.system.limits import within

from .feeds import ExecutionFeed, Feed, Followed, Key, message_key, topic_key
from .http import ADOPT_POLL_SECONDS, RETRY_AFTER_SECONDS, Api, SilentServerError, as_timeout, client_closed

if TYPE_CHECKING:
    from tornado.websocket import WebSocketClientConnection

MAX_MESSAGE_BYTES = 1 << 30
CLOSE_SECONDS = 1.0
# A server that does not answer a ping for this long (with tornado before 6.5: three of them) is lost: it may be
# stopped, or its machine may be off. If it was only busy, the next connection continues where this one ended.
PING_SECONDS = 30.0
TRY_AGAIN_LATER = 1013  # the server gives the reason
MAX_SUBMIT_CHARS = 60_000  # the server takes 64 KiB; JSON is ASCII
SUBMIT_SECONDS = 20.0  # the server answers in place of a silent agent


def _not_understood(err: Exception) -> JupyterDistError:
    message = f"A message of the server cannot be understood: {type(err).__name__}: {err!s:.300}"
    return JupyterDistError("internal", message, "Client and server may have different versions of jupyter_dist.")


class Channel:
    """Opened by the first subscription, then kept open for the next cell."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._feeds: dict[Key, list[Feed]] = {}
        self._socket: WebSocketClientConnection | None = None
        self._reader: asyncio.Task[None] | None = None
        # By key: submissions that wait for their answers, and before that for the connection.
        self._answers: dict[str, asyncio.Future[ExecutionFeed | None]] = {}
        self._unsent: list[SubmitMessage] = []
        # Of submitted cells, which are followed from the start: until their output is requested, or they are dropped.
        self._unclaimed: WeakValueDictionary[Key, ExecutionFeed] = WeakValueDictionary()

    async def submit(self, group_id: str, key: str, cell: dict[str, Any]) -> ExecutionFeed | None:
        """Run a cell and follow it, in one message; return None if that is not possible: POST it with the same key.

        Raises:
            JupyterDistError: the server's error.
        """
        message = cast("SubmitMessage", {"type": "submit", "group": group_id, "key": key, "cell": cell})
        if len(json.dumps(cell)) > MAX_SUBMIT_CHARS:
            return None
        answer = self._answers[key] = asyncio.get_running_loop().create_future()
        try:
            self._open()
            self._unsent.append(message)
            self._send_submits()
            return await within(SUBMIT_SECONDS, answer)
        except asyncio.TimeoutError:
            return None
        finally:
            del self._answers[key]
            with contextlib.suppress(ValueError):
                self._unsent.remove(message)

    @asynccontextmanager
    async def following(self, feed: Feed) -> AsyncIterator[None]:
        """Follow a topic while the block runs."""
        self._feeds.setdefault(feed.key, []).append(feed)
        try:
            is_followed = self._unclaimed.pop(feed.key, None) is feed
            if not self._open() and not is_followed:
                self._send(feed.subscription())
            yield
        finally:
            self._forget(feed)

    def _open(self) -> bool:
        """Open the connection if it is not open; return whether it was opened, and will subscribe to all feeds."""
        if self._reader is not None and not self._reader.done():
            return False
        self._reader = asyncio.ensure_future(self._read())
        return True

    async def close(self) -> None:
        """End every wait with an error. Idempotent."""
        for feed in self._all_feeds():
            feed.fail(client_closed())
        self._feeds.clear()
        self._unclaimed.clear()
        if self._socket is not None:
            self._socket.close()  # the reader ends when the server has confirmed
        if self._reader is not None:
            _, waiting = await asyncio.wait([self._reader], timeout=CLOSE_SECONDS if self._socket else 0)
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            self._reader = None

    def _forget(self, feed: Feed) -> None:
        feeds = self._feeds.get(feed.key, [])
        if feed in feeds:
            feeds.remove(feed)
        if not feeds and feed.key in self._feeds:
            del self._feeds[feed.key]
            self._send(feed.unsubscription())

    def _send_if_followed(self, feed: Feed) -> None:
        if feed in self._followers(feed.key):
            self._send(feed.subscription())

    def _send_submits(self) -> None:
        if self._socket is None:
            return  # when the connection is open
        unsent, self._unsent = self._unsent, []
        for message in unsent:
            self._send(message)

    def _give_up(self, key: str) -> None:
        answer = self._answers.get(key)
        if answer is not None and not answer.done():
            answer.set_result(None)

    def _send(self, message: ClientMessage | SubmitMessage) -> None:
        if self._socket is not None:
            from tornado.websocket import WebSocketError  # noqa: PLC0415

            try:
                self._socket.write_message(json.dumps(message))
            except WebSocketError:  # connection lost: the reader notices, too, and subscribes again
                self._socket = None

    async def _read(self) -> None:
        try:
            while self._feeds or self._answers or self._unclaimed:
                socket = await self._connected()
                for feed in self._all_feeds():
                    self._send(feed.subscription())
                self._send_submits()
                while (message := await socket.read_message()) is not None:
                    self._dispatch(json.loads(message))
                self._lose()
                if socket.close_code == TRY_AGAIN_LATER:
                    raise JupyterDistError("too_many", socket.close_reason or "The server accepts no more pages.")
        except Exception as err:  # outermost level of the reader: nothing that waits for a feed may wait forever
            error = err if isinstance(err, JupyterDistError) else _not_understood(err)
            for feed in self._all_feeds():
                feed.fail(error)
        finally:
            self._lose()

    def _lose(self) -> None:
        """Handle a lost connection: cells whose answers have not arrived are requested by POST."""
        if self._socket is not None:
            self._socket.close()
        self._socket = None
        for key in self._answers:
            self._give_up(key)

    async def _connected(self) -> WebSocketClientConnection:
        # A third of all modules that a command imports, and few commands follow a topic.
        from tornado.websocket import WebSocketError, websocket_connect  # noqa: PLC0415

        reason: Exception | None = None
        began = time.monotonic()
        for pause in (0.0, *RETRY_AFTER_SECONDS):
            await asyncio.sleep(pause)
            server = self._api.server
            try:
                socket = await websocket_connect(
                    self._api.channel_request(),
                    ping_interval=PING_SECONDS,
                    max_message_size=MAX_MESSAGE_BYTES,
                    **self._api.resolving,
                )
                # Otherwise the second of two small messages waits for the TCP acknowledgment of the first: 40 ms.
                if socket.protocol is not None:
                    socket.protocol.set_nodelay(True)
                self._socket = socket
                return socket
            except (OSError, HTTPClientError, WebSocketError) as err:
                reason = err
                if isinstance(err, HTTPClientError) and err.code in (401, 403, 404):
                    break
                await self._api.move_on(server)
        if isinstance(reason, HTTPTimeoutError):
            raise SilentServerError(self._api.server, time.monotonic() - began)
        raise self._api.gone(reason or "no connection")

    def _all_feeds(self) -> list[Feed]:
        return [*(feed for feeds in self._feeds.values() for feed in feeds), *self._unclaimed.values()]

    def _dispatch(self, message: ServerMessage) -> None:
        if message["type"] == "submitted":
            self._submitted(message)
        elif message["type"] == "error":
            self._refused(JupyterDistError.from_dict(message["error"]), message["request"] or {})
        elif message["type"] in ("execution", "view", "log", "memory"):
            self._take(message)

    def _submitted(self, message: SubmittedMessage) -> None:
        execution = message["execution"]
        feed = ExecutionFeed(execution["group"], execution)
        answer = self._answers.get(message["key"])
        if answer is None or answer.done():  # its caller has left
            self._send(feed.unsubscription())
            return
        self._unclaimed[feed.key] = feed
        answer.set_result(feed)

    def _refused(self, error: JupyterDistError, request: dict[str, Any]) -> None:
        answer = self._answers.get(str(request.get("key")))
        if answer is not None and not answer.done():
            if error.code in ("unknown_group", "server_gone"):  # by POST it may be found at this server, or the next
                answer.set_result(None)
            else:
                answer.set_exception(as_timeout(error))
        for feed in self._followers(topic_key(request)):
            if self._api.may_still_adopt(error):
                asyncio.get_running_loop().call_later(ADOPT_POLL_SECONDS, self._send_if_followed, feed)
            else:
                feed.fail(error)

    def _take(self, message: Followed) -> None:
        key = message_key(message)
        followers = self._followers(key)
        for feed in followers:
            feed.take(message)
        if not followers and key[0] == "execution":  # submitted, and dropped: the server limits topics
            self._send({"type": "unsubscribe", "topic": "execution", "group": key[1], "execution": key[2]})
        unclaimed = self._unclaimed.get(key)
        if unclaimed is not None and unclaimed.ended:
            del self._unclaimed[key]
            self._send(unclaimed.unsubscription())

    def _followers(self, key: Key) -> list[Feed]:
        unclaimed = self._unclaimed.get(key)
        return [*self._feeds.get(key, []), *([unclaimed] if unclaimed is not None else [])]
