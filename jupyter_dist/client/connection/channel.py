"""The WebSocket of one client.

After a lost connection it subscribes again, from the last known sequence number; at the next server if this one ended.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from tornado.httpclient import HTTPClientError

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.messages import ClientMessage, ServerMessage

from .feeds import Feed, Key, message_key, topic_key
from .http import ADOPT_POLL_SECONDS, Api

if TYPE_CHECKING:
    from tornado.websocket import WebSocketClientConnection

MAX_MESSAGE_BYTES = 1 << 30
CLOSE_SECONDS = 1.0
TRY_AGAIN_LATER = 1013  # the server gives the reason
RETRY_AFTER_SECONDS = (0.1, 0.4, 1.0, 2.0, 4.0, 8.0)


class Channel:
    """Opened by the first subscription, then kept open for the next cell."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._feeds: dict[Key, list[Feed]] = {}
        self._socket: WebSocketClientConnection | None = None
        self._reader: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def following(self, feed: Feed) -> AsyncIterator[None]:
        """Follow a topic while the block runs."""
        self._feeds.setdefault(feed.key, []).append(feed)
        try:
            if self._reader is None or self._reader.done():
                self._reader = asyncio.ensure_future(self._read())
            elif self._socket is not None:
                self._send(feed.subscription())
            yield
        finally:
            self._forget(feed)

    async def close(self) -> None:
        """Idempotent."""
        self._feeds.clear()
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
        if feed in self._feeds.get(feed.key, []):
            self._send(feed.subscription())

    def _send(self, message: ClientMessage) -> None:
        if self._socket is not None:
            from tornado.websocket import WebSocketError  # noqa: PLC0415

            try:
                self._socket.write_message(json.dumps(message))
            except WebSocketError:  # connection lost: the reader notices, too, and subscribes again
                self._socket = None

    async def _read(self) -> None:
        try:
            while self._feeds:
                socket = await self._connected()
                for feed in self._all_feeds():
                    self._send(feed.subscription())
                while (message := await socket.read_message()) is not None:
                    self._dispatch(json.loads(message))
                self._socket = None
                if socket.close_code == TRY_AGAIN_LATER:
                    raise JupyterDistError("too_many", socket.close_reason or "The server accepts no more pages.")
        except JupyterDistError as err:
            for feed in self._all_feeds():
                feed.fail(err)
        finally:
            if self._socket is not None:
                self._socket.close()
                self._socket = None

    async def _connected(self) -> WebSocketClientConnection:
        # With a third of what a command imports, of which few follow anything.
        from tornado.websocket import WebSocketError, websocket_connect  # noqa: PLC0415

        reason: Exception | None = None
        for pause in (0.0, *RETRY_AFTER_SECONDS):
            await asyncio.sleep(pause)
            server = self._api.server
            try:
                request = self._api.channel_request()
                socket = await websocket_connect(request, max_message_size=MAX_MESSAGE_BYTES, **self._api.resolving)
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
        raise self._api.gone(reason or "no connection")

    def _all_feeds(self) -> list[Feed]:
        return [feed for feeds in self._feeds.values() for feed in feeds]

    def _dispatch(self, message: ServerMessage) -> None:
        if message["type"] == "error":
            error = JupyterDistError.from_dict(message["error"])
            for feed in self._feeds.get(topic_key(message["request"] or {}), []):
                if self._api.may_still_adopt(error):
                    asyncio.get_running_loop().call_later(ADOPT_POLL_SECONDS, self._send_if_followed, feed)
                else:
                    feed.fail(error)
        elif message["type"] in ("execution", "view", "log", "memory"):
            for feed in self._feeds.get(message_key(message), []):
                feed.take(message)
