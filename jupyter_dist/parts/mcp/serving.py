"""Serves the tools with the official SDK: over stdin and stdout, or over HTTP on this machine, with a token."""

from __future__ import annotations

import hmac
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from importlib import metadata
from typing import TYPE_CHECKING, Any

from jupyter_dist.client import AsyncClient
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.system.terminal import as_text

from .tools import Arguments, offered

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

HOST = "127.0.0.1"
PATH = "/mcp"
INSTRUCTIONS = (
    "Groups of long-lived torch.distributed ranks. Code runs on all ranks of a group at once and keeps its variables "
    "from one call to the next; start with list_groups. If a cell does not end, ask verdict what its ranks wait for. "
    "Long answers are cut and say how to get the rest."
)

_HERE = re.compile(rb"(127\.0\.0\.1|localhost|\[::1\]):\d{1,5}")  # a tunnel may have another port
_ORIGIN = re.compile(b"https?://" + _HERE.pattern)
_NO_TOKEN = b"Send the header 'Authorization: Bearer TOKEN' with the token that jupyter dist mcp was started with.\n"

Connect = Callable[[], Awaitable[AsyncClient]]


class Tools:
    """The tools on one Jupyter server. They connect to it when first needed, and to a new one after it has ended."""

    def __init__(self, connect: Connect, *, read_only: bool, max_chars: int) -> None:
        self._connect = connect
        self._tools = offered(read_only=read_only)
        self._max_chars = max_chars
        self._client: AsyncClient | None = None

    async def call(self, name: str, arguments: Arguments) -> str:
        """Return a tool's answer. Raises JupyterDistError."""
        tool = self._tools.get(name)
        if tool is None:
            is_known = name in offered(read_only=False)
            why = "changes something, and this server is read-only" if is_known else "does not exist"
            raise JupyterDistError("not_found", f"The tool '{name[:60]}' {why}.", f"Tools: {', '.join(self._tools)}.")
        tool.check(arguments)
        if self._client is None:
            self._client = await self._connect()
        try:
            return await tool.answer(self._client, arguments, self._max_chars)
        except JupyterDistError as err:
            if err.code == "server_gone":
                await self.close()
            raise

    async def close(self) -> None:
        """Leave the Jupyter server. Idempotent."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def server(self) -> Server[Any]:
        """Return the server of the SDK with these tools."""
        from mcp import types  # noqa: PLC0415  (an optional dependency)
        from mcp.server.lowlevel import Server  # noqa: PLC0415

        listed = [
            types.Tool(
                name=tool.name,
                description=tool.description,
                input_schema=tool.schema(),
                annotations=types.ToolAnnotations(read_only_hint=not tool.changes, destructive_hint=tool.destroys),
            )
            for tool in self._tools.values()
        ]

        async def list_tools(_: Any, __: Any) -> types.ListToolsResult:
            return types.ListToolsResult(tools=listed)

        async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
            try:
                text, is_error = await self.call(params.name, params.arguments or {}), False
            except JupyterDistError as err:
                text, is_error = str(err)[: self._max_chars], True
            content = types.TextContent(type="text", text=as_text(text))
            return types.CallToolResult(content=[content], is_error=is_error)

        return Server(
            "jupyter-dist",
            version=metadata.version("jupyter_dist"),
            instructions=INSTRUCTIONS,
            on_list_tools=list_tools,
            on_call_tool=call_tool,
        )


class Gate:
    """An ASGI app that passes requests on to another app: with the token, and to and from this machine alone.

    The SDK compares the beginning of `Host` and `Origin` only, so that http://127.0.0.1:80.evil.example would pass.
    """

    def __init__(self, app: Any, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Called by uvicorn for each connection."""
        refused = None if scope["type"] == "lifespan" else self._refused(scope["type"], scope["headers"])
        if refused is None:
            await self._app(scope, receive, send)
            return
        status, text = refused
        headers = [(b"content-type", b"text/plain"), (b"www-authenticate", b"Bearer")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": text})

    def _refused(self, kind: str, headers: Sequence[tuple[bytes, bytes]]) -> tuple[int, bytes] | None:
        given = dict(headers)
        if kind != "http" or not hmac.compare_digest(given.get(b"authorization", b""), self._expected):
            return 401, _NO_TOKEN
        is_here = _HERE.fullmatch(given.get(b"host", b"")) is not None
        if not is_here or (b"origin" in given and _ORIGIN.fullmatch(given[b"origin"]) is None):
            return 403, b"The Host, or the Origin, of this request is not this server.\n"
        return None


async def serve_stdio(tools: Tools) -> None:
    """Serve until stdin ends."""
    from mcp.server.stdio import stdio_server  # noqa: PLC0415

    server = tools.server()
    try:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
    finally:
        await tools.close()


async def serve_http(tools: Tools, listening: socket.socket, token: str) -> None:
    """Serve on a socket of this machine until a signal comes."""
    import uvicorn  # noqa: PLC0415  (comes with the SDK)

    app = tools.server().streamable_http_app(streamable_http_path=PATH, host=HOST)
    config = uvicorn.Config(Gate(app, token), log_level="warning", access_log=False, ws="none")
    try:
        await uvicorn.Server(config).serve(sockets=[listening])
    finally:
        await tools.close()


def listen(port: int) -> socket.socket:
    """Return a listening socket of this machine only. Raises JupyterDistError `bad_request`."""
    listening = socket.socket()
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((HOST, port))
        listening.listen()
    except OSError as err:
        listening.close()
        message = f"Port {port} of {HOST} cannot be used: {err.strerror}."
        raise JupyterDistError("bad_request", message, "Choose another one, or 0 for any free port.") from err
    return listening
