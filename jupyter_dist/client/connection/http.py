"""Requests to the HTTP API (docs/api.md). Handles URLs and errors; does not know groups."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from tornado.httpclient import HTTPClientError, HTTPRequest, HTTPResponse
from tornado.netutil import Resolver
from tornado.simple_httpclient import HTTPTimeoutError, SimpleAsyncHTTPClient

from jupyter_dist.client.servers import Server
from jupyter_dist.protocol.errors import JupyterDistError, TimedOutError, bad_request
from jupyter_dist.protocol.operations import ANSWER_SECONDS
from jupyter_dist.system.processes import read_process
from jupyter_dist.version import __version__

CONNECT_SECONDS = 10.0
MAX_BODY_BYTES = 1 << 30
# For as long as a server takes to restart.
RETRY_AFTER_SECONDS = (0.1, 0.4, 1.0, 2.0, 4.0, 8.0)
MAX_SILENCES = 3  # each of them takes as long as a request may
# A server that ends during a request is followed by another one; more often than this, something else is wrong.
MAX_MOVES = 5
# How long the next server may take to adopt a group that another server had.
ADOPT_SECONDS = 5.0
ADOPT_POLL_SECONDS = 0.2
# Long polls of many executions at once must not wait for one another.
MAX_REQUESTS_AT_ONCE = 1000

NOTHING_HERE = "There is nothing here."  # of a path that the server does not know
UNREACHED = (502, 503, 504)  # a proxy's answers for a server that is gone, or closes the connection

# Errors that leave open whether a change was made.
UNSURE = ("timed_out", "server_gone")
_LOOK_FIRST = "It may have been carried out: look at the group's state and executions before you repeat it."
_LOOK_LATER = "It may be carried out as soon as the agent responds: look at the group then, before you repeat it."


class SilentServerError(JupyterDistError):
    """A server that runs, or whose machine accepts connections, did not answer in time: it is busy or stopped."""

    def __init__(self, server: Server, seconds: float) -> None:
        process = "" if server.pid is None else f" (process {server.pid})"
        message = f"The Jupyter server at {server.url}{process} did not answer within {seconds:.0f} s."
        super().__init__("server_gone", message, _what_to_do(server.pid))


class Api:
    """The API of one server, or of the next one when it has ended. Every kernel has tornado, so its client is used.

    Args:
        server: the server.
        successor: finds or starts the next server; None: this one only.
    """

    def __init__(self, server: Server, successor: Callable[[], Awaitable[Server]] | None = None) -> None:
        self.server = server
        self._successor = successor
        self._moving = asyncio.Lock()
        self._moved_at = -ADOPT_SECONDS
        self._http: SimpleAsyncHTTPClient | None = None
        self._asked: set[asyncio.Future[HTTPResponse]] = set()
        self._is_closed = False
        self._version: tuple[Server, str | None] | None = None

    async def ask(
        self,
        method: str,
        *path: str,
        body: Any = None,
        params: dict[str, Any] | None = None,
        timeout_seconds: float = ANSWER_SECONDS,
        key: str | None = None,
    ) -> Any:
        """Make a request and return its JSON.

        Raises:
            JupyterDistError: the server's error, or `server_gone` if it cannot be reached or does not answer.
        """
        response = await self.fetch(method, *path, body=body, params=params, timeout_seconds=timeout_seconds, key=key)
        try:
            return json.loads(response.body) if response.body else None
        except ValueError as err:
            raise self.gone("its answer was cut off") from err

    async def ask_once(self, *path: str, body: Any = None, key: str | None = None) -> Any:
        """POST a change; if the answer is lost, retry with the same key (by default a new one).

        The server recognizes the key and does not repeat the change. Raises like `ask`; the hint adds if the change may
        have been made.
        """
        key, num_silences, may_be_done = key or new_key(), 0, False
        pauses = iter(RETRY_AFTER_SECONDS)
        while True:
            try:
                return await self.ask("POST", *path, body=body, key=key)
            except JupyterDistError as err:
                is_unsure = err.code in UNSURE
                may_be_done |= is_unsure and not isinstance(err.__cause__, ConnectionRefusedError)
                num_silences += isinstance(err, TimedOutError | SilentServerError)
                pause = next(pauses, None) if is_unsure and num_silences < MAX_SILENCES else None
                if pause is None:
                    if may_be_done:  # also if the last answer is a refusal, which does not answer the lost request
                        err.hint = _look_first(err)
                    raise
            await asyncio.sleep(pause)

    async def fetch(
        self,
        method: str,
        *path: str,
        body: Any = None,
        params: dict[str, Any] | None = None,
        timeout_seconds: float = ANSWER_SECONDS,
        key: str | None = None,
    ) -> HTTPResponse:
        """Make a request and return the response. Raises like `ask`."""
        if method == "POST" and key is None:
            key = new_key()  # the request may be repeated at the next server
        moves = 0
        while moves < MAX_MOVES:
            server = self.server
            request = self._request(method, path, body, params, timeout_seconds)
            if key is not None:
                request.headers["Idempotency-Key"] = key
            began = time.monotonic()
            try:
                response = await self._answer(request)
            except HTTPTimeoutError as err:  # the server may have ended or not
                raise SilentServerError(server, time.monotonic() - began) from err
            except (OSError, HTTPClientError) as err:
                if not await self.move_on(server):
                    raise self.gone(err) from err
                moves += 1
                continue
            if response.code < 400:
                return response
            error = _error_of(response)
            if self.may_still_adopt(error):
                await asyncio.sleep(ADOPT_POLL_SECONDS)
            elif error.code == "server_gone" and await self.move_on(server):
                moves += 1
            else:
                raise await self._with_versions(error, server)
        raise self.gone(f"{MAX_MOVES} servers ended during this request")

    async def _with_versions(self, error: JupyterDistError, server: Server) -> JupyterDistError:
        """Return a refusal, with both versions if the server has another one: it may not know the request."""
        if error.code == "bad_request" or error.message == NOTHING_HERE:
            theirs = await self._version_of(server)
            if theirs not in (None, __version__):
                versions = f"The server runs jupyter_dist {theirs}, and this is {__version__}"
                restart = f"{versions}: if it does not know the request, restart it; its groups keep running."
                error.hint = restart if error.message == NOTHING_HERE else f"{error.hint} {restart}".lstrip()
        return error

    async def _version_of(self, server: Server) -> str | None:
        """Return the version of a server, asked once; None if it does not answer."""
        if self._version is None or self._version[0] is not server:
            found = None
            with contextlib.suppress(OSError, HTTPClientError, ValueError, KeyError, TypeError):
                response = await self._answer(self._request("GET", (), None, None, CONNECT_SECONDS))
                found = str(json.loads(response.body)["jupyter_dist"])
            self._version = server, found
        return self._version[1]

    async def _answer(self, request: HTTPRequest) -> HTTPResponse:
        """Return the answer, also if it is an error.

        Raises:
            JupyterDistError: `cancelled`, if the client is closed.
            OSError, HTTPClientError: there is no answer.
        """
        asked = self._client().fetch(request, raise_error=False)
        self._asked.add(asked)
        try:
            return await asked
        except asyncio.CancelledError:
            if self._is_closed:
                raise client_closed() from None
            raise
        finally:
            self._asked.discard(asked)

    async def move_on(self, server: Server) -> bool:
        """Use the next server after this one was lost; return False if no other server may be used.

        Raises:
            JupyterDistError: `no_server`, if no server is running and none can be started.
        """
        if self._successor is None:
            return False
        async with self._moving:
            if self.server is server:  # else another request has moved on already
                self.server = await self._successor()
                self._moved_at = time.monotonic()
                self._drop_client()  # the client connects to the old server's socket
        return True

    def may_still_adopt(self, error: JupyterDistError) -> bool:
        """Whether this server may not have adopted the group of the last server yet."""
        return error.code == "unknown_group" and time.monotonic() - self._moved_at < ADOPT_SECONDS

    def _client(self) -> SimpleAsyncHTTPClient:
        if self._http is None:  # created here, because it belongs to the running loop
            # The simple client, even if a program has configured another, because it supports resolvers.
            self._http = SimpleAsyncHTTPClient(
                force_instance=True, max_clients=MAX_REQUESTS_AT_ONCE, max_body_size=MAX_BODY_BYTES, **self.resolving
            )
        return self._http

    @property
    def resolving(self) -> dict[str, Any]:
        """Return the arguments with which tornado's functions find a server on a unix socket."""
        return {"resolver": UnixResolver(self.server.sock)} if self.server.sock else {}

    def channel_request(self) -> HTTPRequest:
        """Return the request that opens the WebSocket."""
        request = self._request("GET", ("channel",), None, None, CONNECT_SECONDS)
        request.url = "ws" + request.url.removeprefix("http")
        return request

    def gone(self, reason: BaseException | str) -> JupyterDistError:
        """Return the error for a server that does not respond."""
        message = f"The Jupyter server at {self.server.url} does not respond: {reason}."
        return JupyterDistError("server_gone", message, "Its groups keep running: connect() again, then attach().")

    def close(self) -> None:
        """End every request with an error. Idempotent."""
        self._is_closed = True
        for asked in list(self._asked):
            asked.cancel()
        self._drop_client()

    def _drop_client(self) -> None:
        if self._http is not None:
            self._http.close()
            self._http = None

    def _request(
        self, method: str, path: tuple[str, ...], body: Any, params: dict[str, Any] | None, timeout: float
    ) -> HTTPRequest:
        if self._is_closed:
            raise client_closed()
        url = f"{_address(self.server)}/jupyter-dist/api/" + "/".join(map(_segment, path))
        if params:
            url += "?" + urlencode({name: value for name, value in params.items() if value is not None})
        headers = {"Content-Type": "application/json"}
        if self.server.token:
            headers["Authorization"] = f"token {self.server.token}"
        return HTTPRequest(
            url,
            method=method,
            headers=headers,
            body=encoded(body or {}) if method == "POST" else None,
            connect_timeout=CONNECT_SECONDS,
            request_timeout=timeout,
            follow_redirects=False,  # a redirect would lead to a login page
            allow_nonstandard_methods=True,
            validate_cert=not self.server.is_local,
        )


def encoded(body: dict[str, Any]) -> str:
    """Return a body as JSON; numbers and arrays of NumPy and torch are sent as Python's, and paths as texts.

    Raises:
        JupyterDistError: `bad_request`, naming the argument that cannot be sent.
    """
    try:
        return json.dumps(body, default=_plain)
    except (TypeError, ValueError):
        for name, value in body.items():
            try:
                json.dumps(value, default=_plain)
            except (TypeError, ValueError) as err:
                message = f"'{name}' cannot be sent: {err}."
                raise bad_request(message, "Give numbers, texts, lists, or dictionaries of these.") from None
        raise


def _plain(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    message = f"JSON has no value for type {type(value).__name__}"
    raise TypeError(message)


def client_closed() -> JupyterDistError:
    """Return the error for a call of a closed client."""
    return JupyterDistError("cancelled", "The client was closed.", "Its groups keep running: connect() again.")


def _what_to_do(pid: int | None) -> str:
    if pid is None:
        return "It may be busy or stopped: look at it, and try again. Its groups keep running."
    process = read_process(pid)
    if process is not None and process.state == "T":
        return f"It is stopped: continue it (kill -CONT {pid}) or end it (kill -KILL {pid}). Its groups keep running."
    return f"It may be busy: try again, or end it (kill {pid}) and start another one."


def _look_first(error: JupyterDistError) -> str:
    """Return the hint for a change that may have been made: the caller has no key to retry with."""
    if error.code == "agent_unreachable":  # whose hint is that nothing changes
        return _LOOK_LATER
    return _LOOK_FIRST if error.code == "timed_out" or not error.hint else f"{_LOOK_FIRST} {error.hint}"


def new_key() -> str:
    """Return an idempotency key."""
    return secrets.token_hex(16)


class UnixResolver(Resolver):
    """Resolves any host name to a unix socket."""

    def initialize(self, path: str) -> None:
        """Called by tornado with the arguments of the constructor."""
        self._path = path

    async def resolve(self, host: str, port: int, family: Any = socket.AF_UNSPEC) -> list[tuple[int, Any]]:
        """Called by tornado."""
        return [(socket.AF_UNIX, self._path)]


def as_timeout(error: JupyterDistError) -> JupyterDistError:
    """Return the error as Python's TimeoutError, too, if it is about a time limit."""
    return TimedOutError(error.message, error.hint) if error.code == "timed_out" else error


def _segment(part: str) -> str:
    """Return a segment of a path, whose id or name may come from a file or a language model: never another path."""
    if part in ("", ".", ".."):
        raise bad_request(f"'{part}' is not a valid id or name.", "Take one that the server lists.")
    return quote(part, safe="")


def _address(server: Server) -> str:
    path = urlsplit(server.url).path.rstrip("/")
    return f"http://localhost{path}" if server.sock else server.url.rstrip("/")


def _error_of(response: HTTPResponse) -> JupyterDistError:
    with contextlib.suppress(ValueError, KeyError, TypeError):
        error = json.loads(response.body)["error"]
        if isinstance(error, dict):  # else it is a proxy's answer
            return as_timeout(JupyterDistError.from_dict(error))
    answered = f"{response.code} {response.reason}"
    if response.code in (401, 403):
        return JupyterDistError("forbidden", "The Jupyter server refuses the token.", "Pass token= to connect().")
    if response.code in UNREACHED:
        message = f"A proxy does not reach the Jupyter server: {answered}."
        return JupyterDistError("server_gone", message, "It may be starting: try again. Its groups keep running.")
    hint = "Is jupyter_dist installed in the server's environment, and enabled?"
    return JupyterDistError("not_found", f"The Jupyter server answered {answered}.", hint)
