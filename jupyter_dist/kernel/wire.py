"""The five sockets of a kernel, and Jupyter's messages on them."""

from __future__ import annotations

import asyncio
import json
import math
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import zmq
import zmq.asyncio
from jupyter_client.session import Session, json_packer

LINGER_MS = 1000
MAX_DEPTH = 100  # of lists in lists that a message can have
_PARTS = ("header", "parent_header", "metadata", "content")
_KINDS = {"shell": zmq.ROUTER, "control": zmq.ROUTER, "stdin": zmq.ROUTER, "iopub": zmq.PUB}


class Request(NamedTuple):
    """A message of a client, and where its answer goes."""

    channel: str
    identities: list[bytes]
    message: dict[str, Any]

    @property
    def kind(self) -> str:
        """Return the type of the message."""
        return str(self.message["header"]["msg_type"])

    @property
    def content(self) -> dict[str, Any]:
        """Return the content of the message."""
        return dict(self.message["content"])

    @property
    def client(self) -> str:
        """Return the session of the client that sent the message: one page, one program."""
        return str(self.message["header"].get("session", ""))


class KernelSockets:
    """Binds the sockets of a connection file. All sending is done in the thread of the event loop."""

    def __init__(self, connection_file: str) -> None:
        info = json.loads(Path(connection_file).read_text())
        key = info["key"].encode()
        self.session = Session(key=key, signature_scheme=info["signature_scheme"], username="kernel")
        self.session.pack = _packed
        self._context = zmq.asyncio.Context()
        self._info = info
        self._sockets = {name: self._bound(self._context.socket(kind), name) for name, kind in _KINDS.items()}
        self._beat()

    def _bound(self, socket: Any, name: str) -> Any:
        socket.linger = LINGER_MS
        if self._info.get("curve_secretkey"):  # clients encrypt if the kernelspec declares it
            socket.curve_server = True
            socket.curve_publickey = self._info["curve_publickey"].encode()
            socket.curve_secretkey = self._info["curve_secretkey"].encode()
        if name == "iopub":
            socket.sndhwm = 0  # output is folded, and a slow client must not lose any
        elif name != "hb":
            socket.router_handover = 1  # a client that connects again is answered where it is now
        ip, port = self._info["ip"], self._info[f"{name}_port"]
        if self._info["transport"] == "ipc":
            before = os.umask(0o177)  # zmq creates the socket with the permissions that the umask allows
            try:
                socket.bind(f"ipc://{ip}-{port}")
            finally:
                os.umask(before)
        else:
            socket.bind(f"tcp://{ip}:{port}")
        return socket

    def _beat(self) -> None:
        """Echo heartbeats in a thread: the event loop may be busy for a moment."""
        context = zmq.Context()
        socket = self._bound(context.socket(zmq.REP), "hb")

        def echo() -> None:
            while True:
                socket.send(socket.recv())

        threading.Thread(target=echo, name="heartbeat", daemon=True).start()

    async def receive(self, channel: str, take: Callable[[Request], Awaitable[None]]) -> None:
        """Hand on each message of a channel, even if the one before has failed.

        What is not signed, or is no message, is dropped.
        """
        socket = self._sockets[channel]
        while True:
            parts = await socket.recv_multipart()
            try:
                identities, rest = self.session.feed_identities(parts)
                message = self.session.deserialize(rest)
            except Exception:  # noqa: S112  (unsigned or damaged: there is no sender to answer)
                continue
            if not all(isinstance(message[part], dict) for part in _PARTS):
                continue
            try:
                await take(Request(channel, identities, message))
            except Exception as err:  # the outermost level of a request: the next one must be taken
                sys.excepthook(type(err), err, err.__traceback__)

    def reply(self, request: Request, content: dict[str, Any]) -> None:
        """Answer a request."""
        kind = request.kind.replace("_request", "_reply")
        self._send(request.channel, kind, content, request.message, request.identities)

    def publish(self, request: Request | None, kind: str, content: dict[str, Any], **more: Any) -> None:
        """Publish a message to all clients, as a result of a request."""
        parent = request.message if request is not None else None
        self._send("iopub", kind, content, parent, [kind.encode()], **more)

    def ask(self, request: Request, content: dict[str, Any]) -> str:
        """Ask the client of a request for input; return the id of the question."""
        return self._send("stdin", "input_request", content, request.message, request.identities)

    def _send(
        self, channel: str, kind: str, content: dict[str, Any], parent: Any, identities: list[bytes], **more: Any
    ) -> str:
        """Send a message, after the messages that wait to be sent; return its id.

        Not by `Session.send`, which bypasses the asyncio socket: a message that arrives then would wake no receiver.
        """
        message = self.session.msg(kind, content=content, parent=parent, **more)
        sent = self._sockets[channel].send_multipart(self.session.serialize(message, identities))
        sent.add_done_callback(lambda done: done.cancelled() or done.exception())  # a client that has gone
        return str(message["header"]["msg_id"])

    async def close(self) -> None:
        """Send the messages that wait, and close the sockets."""
        for socket in self._sockets.values():
            socket.close(LINGER_MS)
        await asyncio.to_thread(self._context.term)


def _packed(content: Any) -> bytes:
    """Return JSON of a part of a message. Values that UTF-8 or JSON cannot hold become text."""
    try:
        packed: bytes = json_packer(content)
    except (TypeError, ValueError, RecursionError):
        packed = json_packer(_plain(content))
    return packed


def _plain(content: Any, depth: int = 0) -> Any:
    """Return a copy of which JSON can be made: of surrogates their escapes, of other objects their text."""
    if isinstance(content, dict) and depth < MAX_DEPTH:
        return {str(_plain(str(name))): _plain(value, depth + 1) for name, value in content.items()}
    if isinstance(content, (list, tuple)) and depth < MAX_DEPTH:
        return [_plain(value, depth + 1) for value in content]
    if content is None or isinstance(content, (bool, int)) or (isinstance(content, float) and math.isfinite(content)):
        return content
    if isinstance(content, datetime):
        return content.isoformat()
    return str(content).encode("utf-8", "backslashreplace").decode()
