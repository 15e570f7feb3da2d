"""The base of all our handlers: authorization, the form of errors, and the limit on bodies."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tornado import web

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.operations import Operation
from jupyter_dist.protocol.parts import declared_in_api

from .strictjson import SMALL_BYTES, parse_json

if TYPE_CHECKING:
    from jupyter_dist.server.service import Service

STATUS_OF_CODE = {
    "bad_request": 400,
    "bad_ranks": 400,
    "bad_devices": 400,
    "bad_environment": 400,
    "bad_directory": 400,
    "forbidden": 403,
    "unknown_group": 404,
    "unknown_execution": 404,
    "unknown_rank": 404,
    "not_found": 404,
    "method_not_allowed": 405,
    "group_not_ready": 409,
    "rank_dead": 409,
    "node_unreachable": 409,
    "name_taken": 409,
    "key_reused": 409,
    "not_asking": 409,
    "needs_all_ranks": 409,
    "ranks_differ": 409,
    "incompatible": 409,
    "start_failed": 409,
    "not_yours": 403,
    "damaged": 409,
    "cannot_restore": 409,
    "other_version": 409,
    "too_large": 413,
    "too_many": 429,
    "internal": 500,
    "server_gone": 503,
    "agent_unreachable": 503,
    "launcher_failed": 503,
    "timed_out": 504,
}
STATUS_OF_CODE.update(declared_in_api("ERROR_CODES"))
CODE_OF_STATUS = {400: "bad_request", 401: "forbidden", 403: "forbidden", 404: "not_found", 405: "method_not_allowed"}
CODE_OF_STATUS[413] = "too_large"

AUTH_RESOURCE = "jupyter_dist"


def error_of(status: int, exception: BaseException | None) -> JupyterDistError:
    """Return the error object for an exception of tornado, jupyter_server or ours."""
    if isinstance(exception, JupyterDistError):
        return exception
    code = CODE_OF_STATUS.get(status, "internal")
    message = {
        "forbidden": "You do not have permission to do this.",
        "not_found": "There is nothing here.",
        "method_not_allowed": "This URL does not support that method.",
        "internal": "The server failed.",
    }.get(code, "The request is malformed.")
    if isinstance(exception, web.HTTPError) and exception.log_message and status < 500:
        message = str(exception.log_message % exception.args if exception.args else exception.log_message)
    hint = {
        "forbidden": "Log in again, or send the header 'Authorization: token ...'.",
        "not_found": "All addresses are described in openapi.json.",
        "method_not_allowed": "All addresses are described in openapi.json.",
        "internal": "See the log of the Jupyter server.",
    }.get(code, "")
    return JupyterDistError(code, message, hint)


class DiscreetMixin:
    """Logs failures without the query string, which may contain a token."""

    def log_exception(self, typ: Any, value: Any, trace: Any) -> None:
        """Log unexpected exceptions only: our own errors are answers."""
        handler: Any = self
        request = f"{handler.request.method} {handler.request.path}"
        if isinstance(value, JupyterDistError):
            return
        if isinstance(value, web.HTTPError):
            if value.log_message:
                handler.log.warning("%s: %s", request, value)
        else:
            handler.log.error("Uncaught exception %s", request, exc_info=(typ, value, trace))


class Hosted(web.RequestHandler):
    """The attributes that a handler gets from its host (jupyter.py, bare.py), whose bases routes.py puts after ours."""

    auth_resource = AUTH_RESOURCE
    base_url: str
    log: logging.Logger
    authorizer: Any
    token_authenticated: bool

    def initialize(self, **arguments: Any) -> None:
        """Called by tornado for each request, with the arguments of the host's handlers."""
        super().initialize(**arguments)

    def get_login_url(self) -> str:
        """Called by tornado's `authenticated` for an unknown user: a program cannot use a login page."""
        raise web.HTTPError(403)

    @property
    def service(self) -> Service:
        """Return the groups and limits of this server."""
        service: Service = self.settings["jupyter_dist_service"]
        return service

    def url(self, *parts: str) -> str:
        """Return a URL below our prefix."""
        return "/".join((self.base_url.rstrip("/"), "jupyter-dist", "api", *parts))


@web.stream_request_body
class DistHandler(DiscreetMixin, Hosted):
    """Base of all REST handlers."""

    operations: Mapping[str, Operation] = {}  # by verb

    def initialize(self, **arguments: Any) -> None:
        """Called by tornado for each request."""
        super().initialize(**arguments)
        self._chunks: list[bytes] = []
        self._received = 0

    @property
    def max_body_bytes(self) -> int:
        """Return the limit on the body of this request."""
        declared = self.operations.get((self.request.method or "").lower())
        return declared.max_body_bytes if declared is not None and declared.body is not None else SMALL_BYTES

    @property
    def _track_activity(self) -> bool:
        # Pages poll; only user actions keep an idle server from being culled.
        return self.request.method != "GET"

    async def prepare(self) -> None:
        """Refuse a body that is too large before it is read."""
        if (preparing := super().prepare()) is not None:
            await preparing
        self._check_length(int(self.request.headers.get("Content-Length") or 0))

    def data_received(self, chunk: bytes) -> None:
        """Collect the body up to its limit; an error raised here would only drop the connection."""
        self._received += len(chunk)
        if self._received <= self.max_body_bytes:
            self._chunks.append(chunk)

    def read_json(self) -> Any:
        """Return the body as JSON, {} if there is none. Raises JupyterDistError `bad_request`."""
        self._check_length(self._received)
        data = b"".join(self._chunks)
        if not data.strip():
            return {}
        return parse_json(data)

    def answer(self, content: Any, status: int = 200, location: str | None = None) -> None:
        """Send JSON."""
        self.set_status(status)
        if location is not None:
            self.set_header("Location", location)
        self.finish(json.dumps(content, separators=(",", ":")))

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Write an error in the form of docs/api.md."""
        exception = kwargs.get("exc_info", (None, None, None))[1]
        error = error_of(status_code, exception)
        if isinstance(exception, JupyterDistError):
            self.set_status(STATUS_OF_CODE.get(error.code, 500))
        self.finish(json.dumps({"error": error.to_dict()}))

    def _check_length(self, length: int) -> None:
        if length > self.max_body_bytes:
            message = f"The body is larger than {self.max_body_bytes} bytes."
            raise JupyterDistError("too_large", message, "Put the data into files on the server.")


class NotFoundHandler(DistHandler):
    """Handles all other URLs below our prefix."""

    @web.authenticated
    def get(self, *path: str) -> None:
        """There is nothing here."""
        raise JupyterDistError("not_found", "There is nothing here.", "All addresses are described in openapi.json.")

    post = put = patch = delete = get
