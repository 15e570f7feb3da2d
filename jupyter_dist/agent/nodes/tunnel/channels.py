"""Several connections over one pair of pipes. Both ends of a tunnel use this; it needs the standard library alone.

Frames are short lines of base64: srun passes complete lines on, and terminals change other bytes.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import struct
from collections.abc import Awaitable, Callable

_HEADER = struct.Struct(">cI")  # kind, number of the connection
OPEN, DATA, CLOSE = b"o", b"d", b"c"
CHUNK_BYTES = 64 << 10
LINE_BYTES = 720  # of a frame before it is encoded; Slurm's messages have 1024
HELLO = b"jupyter-dist tunnel\n"  # precedes all frames; what a login script prints may come before it

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Channels:
    """The connections that are open through a tunnel, by number. The node's end numbers them."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._open: dict[int, asyncio.StreamWriter] = {}
        self._passing: set[asyncio.Task[None]] = set()
        self._number = 0

    async def take(self, connection: Stream) -> None:
        """Pass a new connection of this end on, until it is closed."""
        self._number += 1
        number = self._number
        await self._send(OPEN, number)
        await self._pass_on(number, connection)

    async def run(self, connect: Callable[[], Awaitable[Stream]] | None = None) -> None:
        """Pass on what comes through the tunnel, until its end; `connect` opens what the other end asks for."""
        try:
            while line := await self._reader.readline():
                frame = base64.b64decode(line, validate=False)
                kind, number = _HEADER.unpack_from(frame)
                data = frame[_HEADER.size :]
                if kind == OPEN and connect is not None:
                    await self._connect(number, connect)
                elif kind == CLOSE:
                    self._close(number)
                elif (writer := self._open.get(number)) is not None:
                    writer.write(data)
                    with contextlib.suppress(OSError):
                        await writer.drain()
        except (OSError, ValueError, binascii.Error, struct.error):  # not lines of ours: it is opened again
            return
        finally:
            for number in list(self._open):
                self._close(number)

    async def _connect(self, number: int, connect: Callable[[], Awaitable[Stream]]) -> None:
        try:
            connection = await connect()
        except OSError:
            await self._send(CLOSE, number)
            return
        self._open[number] = connection[1]
        task = asyncio.create_task(self._pass_on(number, connection))
        self._passing.add(task)
        task.add_done_callback(self._passing.discard)

    async def _pass_on(self, number: int, connection: Stream) -> None:
        reader, self._open[number] = connection
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK_BYTES):
                await self._send(DATA, number, data)
            await self._send(CLOSE, number)
        self._close(number)

    def _close(self, number: int) -> None:
        if (writer := self._open.pop(number, None)) is not None:
            writer.close()

    async def _send(self, kind: bytes, number: int, data: bytes = b"") -> None:
        head = _HEADER.pack(kind, number)
        parts = (data[start : start + LINE_BYTES] for start in range(0, max(1, len(data)), LINE_BYTES))
        self._writer.write(b"".join(base64.b64encode(head + part) + b"\n" for part in parts))
        await self._writer.drain()
