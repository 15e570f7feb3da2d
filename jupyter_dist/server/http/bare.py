"""Our handlers on a bare tornado application, for private servers: importing jupyter_server takes longer than the rest.

Only Jupyter's token lets a request in, in its header or as `?token=`; there are no cookies, so no page of another site
can use a browser's. Every handler here derives from BareHandler, whose `prepare` refuses all other requests.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import logging
import re
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any
from urllib.parse import SplitResult, urlsplit

from tornado import web
from tornado.websocket import WebSocketHandler

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.server.service import Service

from .routes import Host, tornado_routes

PING_SECONDS = 30
# Without the token, and of what takes no body; the server's own limit, which holds before `prepare`.
MAX_UNASKED_BYTES = 64 << 10
MAX_BODY_BYTES = 512 << 20  # as with jupyter_server; each operation refuses a body beyond its limit, unread
_AUTHORIZATION = re.compile(r"(?:token|bearer)\s+(.+)", re.IGNORECASE)
_USER = SimpleNamespace(username="token")  # the owner of the token is the user of this machine


class TokenMayAll:
    """The authorizer: a request with the token may do everything."""

    def is_authorized(self, handler: Any, user: Any, action: str, resource: str) -> bool:
        """Called as jupyter_server's authorizers are."""
        return user is _USER


class BareHandler(web.RequestHandler):
    """Refuses each request without the token, from another site or for another host, before anything else is done."""

    base_url = "/"
    log = logging.getLogger("jupyter_dist")
    authorizer = TokenMayAll()

    def initialize(self) -> None:
        """Called by tornado for each request."""

    @property
    def token_authenticated(self) -> bool:
        """Whether the request had the token."""
        return self.current_user is _USER

    def set_default_headers(self) -> None:
        """Set the headers that jupyter_server's API sets: a browser must not show an answer as a page."""
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Content-Security-Policy", "frame-ancestors 'none'; default-src 'none'")

    def prepare(self) -> Awaitable[None] | None:
        """Refuse a request without the token. Raises tornado's HTTPError 403."""
        self.current_user = None
        if not _is_local(self.request.host) or not self._is_same_site():
            raise web.HTTPError(403)
        given = self._given_token().encode()
        if not given or not hmac.compare_digest(given, self.settings["token"].encode()):
            raise web.HTTPError(403)
        self.current_user = _USER
        return super().prepare()

    def check_origin(self, origin: str) -> bool:
        """Called by tornado's WebSocketHandler; `prepare` has checked the origin."""
        return True

    def _is_same_site(self) -> bool:
        origin = self.request.headers.get("Origin", self.request.headers.get("Sec-Websocket-Origin"))
        return origin is None or _parts(origin.lower()).netloc == self.request.host.lower()

    def _given_token(self) -> str:
        if given := self.get_query_argument("token", ""):
            return given
        match = _AUTHORIZATION.fullmatch(self.request.headers.get("Authorization", "").strip())
        return match[1] if match else ""


class BareRestHandler(BareHandler):
    """Answers with JSON."""

    def prepare(self) -> Awaitable[None] | None:
        """Allow the largest body that an operation takes, after the token has been checked."""
        preparing = super().prepare()
        connection: Any = self.request.connection  # an HTTP1Connection
        connection.set_max_body_size(MAX_BODY_BYTES)
        return preparing

    def finish(self, chunk: Any = None, *, set_content_type: str = "application/json") -> asyncio.Future[None]:
        """Finish an answer; its default type is JSON, as with jupyter_server's APIHandler."""
        self.set_header("Content-Type", set_content_type)
        return super().finish(chunk)


class ShutdownHandler(BareRestHandler):
    """Ends the server, for `jupyter server stop`."""

    def initialize(self, stop: Callable[[], None] = lambda: None) -> None:
        """Called by tornado with the function that ends the server."""
        self._stop = stop

    def post(self) -> None:
        """End the server; its groups keep running."""
        self._stop()
        self.finish()


class NothingHandler(BareHandler):
    """Handles all other URLs: refused without the token, else there is nothing."""

    def _nothing(self, *_: Any) -> None:
        raise web.HTTPError(404)

    get = head = post = put = patch = delete = options = _nothing


BARE = Host(rest=(BareRestHandler,), channel=(WebSocketHandler, BareHandler))


def bare_application(service: Service, token: str, stop: Callable[[], None]) -> web.Application:
    """Return the application of a private server: our API, and the URL that `jupyter server stop` calls."""
    if not token:
        raise JupyterDistError(
            "forbidden", "A private server needs a token.", "Every user of this machine could use it."
        )
    return web.Application(
        [*tornado_routes(BARE), ("/api/shutdown", ShutdownHandler, {"stop": stop})],
        default_handler_class=NothingHandler,
        jupyter_dist_service=service,
        token=token,
        websocket_ping_interval=PING_SECONDS,
        log_function=lambda _: None,  # a URL may contain the token
    )


def _is_local(host: str) -> bool:
    """Whether the Host of a request names this machine: a page of another site can have its name resolved to it."""
    name = _parts(f"//{host}").hostname or ""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def _parts(url: str) -> SplitResult:
    """Return the parts of a URL; an invalid URL, such as `http://[x`, has the parts of an empty URL, of no site."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")
