"""The WebSocket of a page. It needs the right to read, and for each cell that it submits the right to execute."""

from __future__ import annotations

import asyncio
import contextlib
import json
from datetime import datetime, timezone
from typing import Any

from tornado import web
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.wire.messages import CommMessage, ServerMessage, SubmitMessage
from jupyter_dist.server.http.base import DiscreetMixin, Hosted, error_of
from jupyter_dist.server.http.guard import check_right, parse_body, parse_key
from jupyter_dist.server.http.strictjson import parse_json

from .page import Page
from .subscriptions import Request

MAX_MESSAGE_BYTES = 64 * 1024
TRY_AGAIN_LATER = 1013  # RFC 6455's registry of close codes
MAX_REASON_BYTES = 120


class ChannelHandler(DiscreetMixin, Hosted, WebSocketHandler):
    """One page's connection."""

    _page: Page | None = None
    _sender: asyncio.Task[None] | None = None

    def initialize(self, **arguments: Any) -> None:
        """Called by tornado for each request."""
        super().initialize(**arguments)
        self._opened = contextlib.ExitStack()  # closed with the connection

    def set_default_headers(self) -> None:
        """Set no headers: the headers of other answers do not apply to a WebSocket."""

    def get_compression_options(self) -> dict[str, Any] | None:
        """Enable compression: folded text compresses well, and pages may be remote."""
        return {"compression_level": 1}

    @property
    def max_message_size(self) -> int:
        """Return the limit on messages; longer cells are submitted by POST."""
        return MAX_MESSAGE_BYTES

    @web.authenticated
    async def get(self, *args: Any, **kwargs: Any) -> None:  # type: ignore[override]  # as `authenticated` types it
        """Upgrade the connection if the user may read."""
        await check_right(self, "read")
        await self.service.adopted()
        await super().get(*args, **kwargs)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer a plain HTTP request in one line: Jupyter Server would look for a page, and log that it has none."""
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(f"{status_code}\n")

    def open(self, *args: Any, **kwargs: Any) -> None:
        """Start sending to the page."""
        super().open(*args, **kwargs)
        try:
            self._opened.enter_context(self.service.pages.counted(self))
        except JupyterDistError as err:
            self.close(TRY_AGAIN_LATER, f"{err}"[:MAX_REASON_BYTES])
            return
        # Otherwise the second of two small messages waits for the TCP acknowledgment of the first: 40 ms.
        self.set_nodelay(True)
        self._page = Page(self.service.manager, self._send)
        # Held here so that it is not garbage-collected, and ends with the connection.
        self._sender = asyncio.ensure_future(self._serve(self._page))

    async def on_message(self, message: str | bytes) -> None:
        """Handle a subscription; the next message is read when this one was accepted."""
        if self._page is None:
            return  # closing
        try:
            request = parse_json(message if isinstance(message, bytes) else message.encode(), "message")
        except JupyterDistError as err:
            await self._page.refuse(err)
        else:
            kind = request.get("type") if isinstance(request, dict) else None
            if kind == "submit":
                await self._page.submit(request, self._may_execute(), self._run)
            elif kind == "comm":
                await self._page.pass_on(request, self._may_execute(), self._send_comm)
            else:
                await self._page.handle(request)

    async def _may_execute(self) -> None:
        """Check the right that a `submit` needs. Raises JupyterDistError `forbidden`."""
        try:
            await check_right(self, "execute")
        except web.HTTPError as err:
            raise error_of(err.status_code, err) from err

    async def _run(self, request: Request) -> models.ExecutionModel:
        """Queue the cell of a `submit`, as POST does. Raises JupyterDistError."""
        message = parse_body(SubmitMessage, request)
        self.settings["api_last_activity"] = datetime.now(timezone.utc)  # an idle server may be ended
        path = self.url("groups", message["group"], "executions")
        key, owner = parse_key(message["key"], self, path), self.current_user.username
        return await self.service.group(message["group"]).submit(**message["cell"], key=key, owner=owner)

    async def _send_comm(self, request: Request) -> models.CommTaken:
        """Pass on the message of a `comm`, as POST does. Raises JupyterDistError."""
        message = parse_body(CommMessage, request)
        self.settings["api_last_activity"] = datetime.now(timezone.utc)
        group = self.service.group(message["group"])
        return await group.send_comm(message["rank"], message["kind"], message["content"])

    def ping(self, data: str | bytes = b"") -> None:
        """Keep the connection alive. A connection that is just closing needs no ping, and no error in the log."""
        with contextlib.suppress(WebSocketClosedError):
            super().ping(data)

    def on_close(self) -> None:
        """Stop sending to the page."""
        self._opened.close()
        if self._sender is not None:
            self._sender.cancel()
        super().on_close()

    async def _serve(self, page: Page) -> None:
        try:
            await page.run()
        except (WebSocketClosedError, asyncio.CancelledError):
            pass
        except Exception:  # outermost level of the sender's task: the page reconnects, and the log has the traceback
            self.log.exception("jupyter_dist: the channel failed")
            self.close(1011, "internal error")
        finally:
            await page.close()

    async def _send(self, message: ServerMessage) -> None:
        # Resolves when the socket has taken the message, so that a slow page does not cost memory.
        await self.write_message(json.dumps(message, separators=(",", ":")))
