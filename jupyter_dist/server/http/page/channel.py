"""The WebSocket: one per page; it only tells, so reading is all that it takes rights for."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

from jupyter_core.utils import ensure_async
from jupyter_server.auth.decorator import ws_authenticated
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from jupyter_server.extension.handler import ExtensionHandlerMixin
from tornado import web
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.server.http.base import AUTH_RESOURCE, DiscreetMixin
from jupyter_dist.server.http.operations import Answer, Operation
from jupyter_dist.server.http.strictjson import parse_json

from .page import ChannelClient

MAX_MESSAGE_BYTES = 64 * 1024
TRY_AGAIN_LATER = 1013  # RFC 6455's registry of close codes
MAX_REASON_BYTES = 120


class ChannelHandler(DiscreetMixin, ExtensionHandlerMixin, WebSocketMixin, WebSocketHandler, JupyterHandler):
    """One page's connection."""

    auth_resource = AUTH_RESOURCE
    _client: ChannelClient | None = None
    _sender: asyncio.Task[None] | None = None

    def initialize(self, name: str) -> None:
        """Called by tornado for each request."""
        super().initialize(name)
        self._opened = contextlib.ExitStack()  # what ends with the connection

    def set_default_headers(self) -> None:
        """JupyterHandler's headers make no sense on a WebSocket."""

    def get_compression_options(self) -> dict[str, Any] | None:
        """Folded text shrinks well, and pages may be far away."""
        return {"compression_level": 1}

    @property
    def max_message_size(self) -> int:
        """Clients only subscribe."""
        return MAX_MESSAGE_BYTES

    @ws_authenticated
    async def get(self, *args: Any, **kwargs: Any) -> None:
        """Upgrade, if the user may read."""
        allowed = await ensure_async(self.authorizer.is_authorized(self, self.current_user, "read", self.auth_resource))
        if not allowed:
            raise web.HTTPError(403)
        await self.settings["jupyter_dist"].adopted()
        await super().get(*args, **kwargs)

    # WebSocketMixin guards the verb; this is what the OpenAPI document says of it.
    get.operation = Operation(
        "Open the WebSocket (docs/api.md, The WebSocket)", "read", {101: Answer("Switching protocols")}
    )

    def open(self, *args: Any, **kwargs: Any) -> None:
        """The page is there: begin to tell it."""
        super().open(*args, **kwargs)
        try:
            self._opened.enter_context(self.settings["jupyter_dist"].pages.one(self))
        except JupyterDistError as err:
            self.close(TRY_AGAIN_LATER, f"{err}"[:MAX_REASON_BYTES])
            return
        # Else the second of two small messages waits until the client's kernel acknowledges the first: 40 ms.
        self.set_nodelay(True)
        self._client = ChannelClient(self.settings["jupyter_dist"].manager, self._send)
        # Held here so that it is not collected, and ends with the connection.
        self._sender = asyncio.ensure_future(self._serve(self._client))

    async def on_message(self, message: str | bytes) -> None:
        """A subscription of the page; the next one is read when this one has been taken."""
        if self._client is None:
            return  # it is being closed
        try:
            request = parse_json(message if isinstance(message, bytes) else message.encode(), "message")
        except JupyterDistError as err:
            await self._client.refuse(err)
        else:
            await self._client.handle(request)

    def on_close(self) -> None:
        """The page is gone."""
        self._opened.close()
        if self._sender is not None:
            self._sender.cancel()
        super().on_close()

    async def _serve(self, client: ChannelClient) -> None:
        try:
            await client.run()
        except (WebSocketClosedError, asyncio.CancelledError):
            pass
        except Exception:  # the edge of the sender's task: the page reconnects, and the log has the traceback
            self.log.exception("jupyter_dist: the channel failed")
            self.close(1011, "internal error")
        finally:
            await client.close()

    async def _send(self, message: dict[str, Any]) -> None:
        # Resolves when the socket has taken it: this is what keeps a slow page from costing memory.
        await self.write_message(json.dumps(message, separators=(",", ":")))
