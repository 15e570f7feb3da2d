"""Frames over an asyncio stream: the unix socket between server and agent, and the socketpairs of ranks."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any

from jupyter_dist.system.limits import within
from jupyter_dist.system.processes import is_own_peer

from .frames import FrameDecoder, Header, encode_frame

READ_BYTES = 1 << 18

Accept = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


async def start_private_server(accept: Accept, path: Path) -> asyncio.AbstractServer:
    """Listen on a unix socket for processes of this user and root, whatever its permissions are. Raises OSError."""

    def of_this_user(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Coroutine[Any, Any, None] | None:
        if is_own_peer(writer.get_extra_info("socket")):
            return accept(reader, writer)
        writer.transport.abort()
        return None

    return await asyncio.start_unix_server(of_this_user, path)


class FrameStream:
    """One connection that carries frames both ways."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._decoder = FrameDecoder()
        self._frames: deque[tuple[Header, bytes]] = deque()

    @classmethod
    async def connect(cls, path: str, timeout_seconds: float) -> FrameStream:
        """Connect to a unix socket. Raises OSError (including TimeoutError) if there is no answer."""
        connection = asyncio.open_unix_connection(path)
        return cls(*await within(timeout_seconds, connection))

    @classmethod
    async def from_socket(cls, sock: socket.socket) -> FrameStream:
        """Take over a connected stream socket."""
        return cls(*await asyncio.open_unix_connection(sock=sock))

    async def recv(self) -> tuple[Header, bytes]:
        """Return the next frame.

        Raises:
            EOFError: the peer closed the connection (asyncio.IncompleteReadError is one).
            FrameError: the peer does not use our framing.
            OSError: the connection broke.
        """
        while not self._frames:
            data = await self._reader.read(READ_BYTES)
            if not data:
                raise EOFError("the peer closed the connection")
            self._frames.extend(self._decoder.feed(data))
        return self._frames.popleft()

    def send(self, header: Header, payload: bytes = b"") -> None:
        """Queue a frame. Await `drain` after sending much."""
        self._writer.write(encode_frame(header, payload))

    def send_encoded(self, frames: Iterable[bytes]) -> None:
        """Queue encoded frames, in one piece."""
        # Not `writelines`: in Python 3.12 it never pauses the writer, so `drain` would not wait for a slow reader.
        self._writer.write(b"".join(frames))

    async def drain(self) -> None:
        """Wait until the peer has read most of what was sent. Raises OSError if the connection broke."""
        await self._writer.drain()

    @property
    def is_closing(self) -> bool:
        """Whether the connection was closed or lost."""
        return self._writer.is_closing()

    def close(self) -> None:
        """Close the connection after queued frames were sent."""
        self._writer.close()

    def abort(self) -> None:
        """Close the connection and drop queued frames."""
        self._writer.transport.abort()
