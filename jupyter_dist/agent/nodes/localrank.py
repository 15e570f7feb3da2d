"""The channel to a rank on a node agent's machine, for the head: what is read goes to the link, in order."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable

from jupyter_dist.agent.processes.pipes import RankPipes
from jupyter_dist.agent.processes.starting.process import ProcessHandle, RankDescriptors

CHUNK_BYTES = 256 << 10

OnRead = Callable[[str, bytes], None]  # `channel`, `stdout` or `stderr`, and data; no data: the channel is closed


class LocalRank:
    """The node agent's ends of a rank's channel and pipes."""

    def __init__(self, number: int, rank: int, on_read: OnRead) -> None:
        """`number` is the number of the process, as the head counts processes."""
        self.number = number
        self.rank = rank
        self.handle: ProcessHandle | None = None
        self._on_read = on_read
        self._sock: socket.socket | None = None
        self._pipes = RankPipes(on_read)
        self._to_write: list[bytes] = []
        self._listens = False

    def open(self) -> RankDescriptors:
        """Create channel and pipes; return the rank's ends, which the caller closes."""
        self._sock, child = socket.socketpair()
        self._sock.setblocking(False)
        with child:
            stdout, stderr = self._pipes.open()
            return RankDescriptors(child.detach(), stdout, stderr)

    def listen(self, is_full: bool) -> None:
        """Read the channel and the pipes, or leave the rank waiting for the link, as it would for a full pipe."""
        if self._sock is None or self._listens is not is_full:
            return
        self._listens = not is_full
        loop = asyncio.get_running_loop()
        if is_full:
            loop.remove_reader(self._sock)
            self._pipes.pause()
        else:
            loop.add_reader(self._sock, self._readable)
            self._pipes.listen()

    def write(self, data: bytes) -> None:
        """Send bytes to the rank."""
        self._to_write.append(data)
        self._flush()

    def close_channel(self) -> None:
        """Close the channel for writing, which the rank notices."""
        if self._sock is not None:
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_WR)

    def drain(self) -> None:
        """Read the rest of what the process, which has ended, has written."""
        self._pipes.drain()
        while self._sock is not None and (data := self._read()):
            self._on_read("channel", data)
        self._pipes.drain()

    def close(self) -> None:
        """Close this side. Idempotent."""
        if self._sock is not None:
            with contextlib.suppress(ValueError):
                asyncio.get_running_loop().remove_reader(self._sock)
                asyncio.get_running_loop().remove_writer(self._sock)
            self._sock.close()
            self._sock = None
        self._pipes.close()

    def _readable(self) -> None:
        data = self._read()
        self._pipes.drain()  # what C code wrote before this must precede it (docs/messaging.md)
        if data:
            self._on_read("channel", data)
        elif data is not None and self._sock is not None:
            asyncio.get_running_loop().remove_reader(self._sock)
            self._on_read("channel", b"")

    def _read(self) -> bytes | None:
        """Return the bytes that have arrived on the channel: empty at its end, None if there are none now."""
        assert self._sock is not None
        try:
            return self._sock.recv(CHUNK_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def _flush(self) -> None:
        loop = asyncio.get_running_loop()
        while self._to_write and self._sock is not None:
            try:
                done = os.write(self._sock.fileno(), self._to_write[0])
            except BlockingIOError:
                loop.add_writer(self._sock, self._flush)
                return
            except OSError:  # it has ended
                self._to_write.clear()
                return
            rest = self._to_write[0][done:]
            self._to_write[:1] = [rest] if rest else []
        if self._sock is not None:
            loop.remove_writer(self._sock)
