"""The channel to a rank of this machine: a socketpair for messages, and pipes for its stdout and stderr."""

from __future__ import annotations

import asyncio
import logging
import socket

from jupyter_dist.transport.stream import FrameStream

from . import records
from .pipes import RankPipes, has_data
from .rank_process import RankProcess
from .starting.process import RankDescriptors

# The last output of a rank is read well within this time, unless this process was held up. Then it is read in parts.
LAST_SECONDS = 0.3
MAX_LAST_PARTS = 10

log = logging.getLogger(__name__)


class LocalChannel:
    """The agent's ends. In order: `open`, the process is started, `connect`, `listen`."""

    def __init__(self) -> None:
        self._sock: socket.socket | None = None
        self._stream: FrameStream | None = None
        self._rank: RankProcess | None = None
        self._pipes = RankPipes(self._on_text)
        self._reader: asyncio.Task[None] | None = None

    def open(self) -> RankDescriptors:
        """Create socketpair and pipes; return the rank's ends, which the caller closes. Raises OSError."""
        self._sock, child = socket.socketpair()
        with child:
            stdout, stderr = self._pipes.open()
            return RankDescriptors(child.detach(), stdout, stderr)

    async def connect(self) -> None:
        """Make the channel usable, when a process has the other ends."""
        assert self._sock is not None
        self._sock.setblocking(False)
        self._stream = await FrameStream.from_socket(self._sock)

    def listen(self, rank: RankProcess) -> None:
        """Begin to pass on messages and output to the rank."""
        assert self._stream is not None
        self._rank = rank
        self._reader = asyncio.create_task(self._read_frames(self._stream, rank), name=f"rank {rank.rank} reader")
        self._pipes.listen()

    def send(self, frame: bytes, *, is_cell: bool = False) -> None:
        """Send an encoded message; ignored when the channel is closed."""
        if self._stream is not None and not self._stream.is_closing:
            self._stream.send_encoded([frame])

    async def read_last(self) -> None:
        """Read the last output of the ended process. A child of it may hold the channel open, so it may never end."""
        if self._reader is None:
            return
        for _ in range(MAX_LAST_PARTS):
            await asyncio.wait([self._reader], timeout=LAST_SECONDS)
            if self._reader.done() or not has_data(self._sock):
                break
        self._pipes.drain()

    def close(self) -> None:
        """Close the agent's ends; the process is not touched. Idempotent."""
        if self._reader is not None:
            self._reader.cancel()
        if self._stream is not None:
            self._stream.abort()
        elif self._sock is not None:
            self._sock.close()
        self._pipes.close()

    async def _read_frames(self, stream: FrameStream, rank: RankProcess) -> None:
        try:
            while True:
                header, payload = await stream.recv()
                # Output of C code from before this frame must precede it in the journal (docs/messaging.md).
                self._pipes.drain()
                records.receive(rank, header, payload)
        except (EOFError, OSError):
            pass
        except Exception:  # the outermost level of the reading task: the group must learn that the rank failed
            log.exception("Rank %d sent an invalid message", rank.rank)
        rank.lost_channel()

    def _on_text(self, name: str, data: bytes) -> None:
        if self._rank is not None:
            records.receive_text(self._rank, name, data)
