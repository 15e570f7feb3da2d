"""The agent's unix socket: takes requests of one server at a time, and streams the journal and changes to it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from jupyter_dist.journal.reader import JournalCursor
from jupyter_dist.journal.records.sound import is_numbered
from jupyter_dist.journal.writer import JournalWriter
from jupyter_dist.protocol.errors import JupyterDistError, bad_request
from jupyter_dist.protocol.parts import failure_of
from jupyter_dist.system.limits import within
from jupyter_dist.transport.frames import FrameError, Header, encode_frame, pack, unpack
from jupyter_dist.transport.stream import FrameStream, start_private_server
from jupyter_dist.transport.tasks import start_task

Answer = tuple[Header, bytes]
# Delay before output and ended ranks are sent, so that one message carries many.
GATHER_SECONDS = 0.01
READ_AGAIN_SECONDS = 1.0  # after the log could not be read
DRAIN_SECONDS = 5.0  # at the end, for what the server has not read yet

log = logging.getLogger(__name__)

MakeMessage = Callable[[], Header]
RequestHandler = Callable[[Header, bytes], Awaitable[Answer]]


class After(NamedTuple):
    """The record after which a change is sent, and when it is sent also before that one (of the monotonic clock)."""

    seq: int
    latest_at: float = math.inf


AT_ANY_TIME = After(0)


class ServerLink:
    """Listens, answers requests, and streams records and changes to the server that sent `hello` last.

    A connection without `hello` changes nothing.

    Only the latest state of each object is queued for a slow server; records are read from the journal when the
    socket can take them. A state is sent as soon as the records that it depends on were sent, or it has waited for them
    long enough.
    """

    def __init__(
        self, path: Path, handlers: dict[str, RequestHandler], on_left: Callable[[], None] = lambda: None
    ) -> None:
        """`on_left` is called when the server is gone, or another one has taken its place."""
        self.last_contact = time.monotonic()
        self._path = path
        self._handlers = handlers
        self._on_left = on_left
        self._journal: JournalWriter | None = None
        self._server: asyncio.AbstractServer | None = None
        self._stream: FrameStream | None = None
        self._cursor: JournalCursor | None = None
        self._is_unreadable = False
        # The latest state of each object, in order of last change.
        self._changes: dict[str, tuple[After, str, MakeMessage]] = {}
        self._something = asyncio.Event()
        self._soon: asyncio.TimerHandle | None = None
        self._all_sent = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections: set[asyncio.Task[Any]] = set()
        self._sender: asyncio.Task[None] | None = None

    @property
    def is_connected(self) -> bool:
        """Whether a server is connected."""
        return self._stream is not None

    async def listen(self) -> None:
        """Open the socket, for this user alone; again, if its file was removed. Connections stay."""
        if self._server is not None:
            self._server.close()
        unnamed = self._path.with_suffix(".new")
        unnamed.unlink(missing_ok=True)
        old = os.umask(0o177)
        try:
            self._server = await start_private_server(self._accept, unnamed)
        finally:
            os.umask(old)
        unnamed.replace(self._path)  # a process that waits for the name can connect at once

    def use_journal(self, journal: JournalWriter) -> None:
        """Stream from this journal, because the agent has a group now."""
        self._journal = journal

    def push(self, key: str, t: str, make: MakeMessage, *, after: After = AT_ANY_TIME, at_once: bool = False) -> None:
        """Send message `t` with the fields that `make` returns; a newer message with the same key replaces it.

        It is sent after a record or at the latest at some time, so that a flood of output delays only messages that
        depend on it.
        Unless it is urgent, it is sent together with other changes a moment later.
        """
        self._changes.pop(key, None)
        self._changes[key] = after, t, make
        if at_once:
            self._all_sent.clear()
            self._something.set()
        else:
            self.records_grew()

    def records_grew(self) -> None:
        """Schedule sending of new records."""
        self._all_sent.clear()
        if self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(GATHER_SECONDS, self._something.set)

    async def flush(self, timeout_seconds: float) -> None:
        """Wait until everything was sent to the server, or until it takes too long."""
        if self._stream is not None:
            self._something.set()
            with contextlib.suppress(asyncio.TimeoutError):
                await within(timeout_seconds, self._all_sent.wait())

    async def close(self) -> None:
        """Stop listening and drop the server. Idempotent."""
        if self._server is not None:
            self._server.close()
        if self._stream is not None:
            with contextlib.suppress(OSError, asyncio.TimeoutError):
                await within(DRAIN_SECONDS, self._stream.drain())
            self._stream.abort()
        self._end_sender()
        for task in self._tasks:
            task.cancel()
        for connection in self._connections:
            connection.cancel()
        if self._connections:
            await asyncio.wait(self._connections, timeout=1.0)
        self._path.unlink(missing_ok=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stream = FrameStream(reader, writer)
        connection = asyncio.current_task()
        assert connection is not None
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)
        with contextlib.suppress(EOFError, OSError, FrameError):
            while True:
                header, payload = unpack(*await stream.recv())
                if stream is self._stream:
                    self.last_contact = time.monotonic()
                task = start_task(self._answer(stream, header, payload), f"answer {header.get('t')!s:.40}")
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        stream.abort()
        if self._stream is stream:
            self._end_sender()
            self._stream = None
            self.last_contact = time.monotonic()

    def _take_over(self, stream: FrameStream) -> None:
        if self._stream is not None and self._stream is not stream:
            self._stream.abort()  # the newest server wins: the older one crashed or is shutting down
        self._end_sender()
        self._stream = stream
        self._changes.clear()
        self._is_unreadable = False  # it was reported to the server before
        self.last_contact = time.monotonic()
        # Close a connection on which nothing can be sent, so that the server makes a new one.
        self._sender = start_task(self._send_changes(stream), "to server", lambda _: stream.abort())

    def _end_sender(self) -> None:
        if self._journal is not None:
            self._journal.overflow.follow(False)
        if self._sender is not None:
            self._sender.cancel()
            self._sender = None
        self._close_cursor()
        self._on_left()

    def _close_cursor(self) -> None:
        if self._cursor is not None:
            self._cursor.close()
            self._cursor = None

    async def _answer(self, stream: FrameStream, header: Header, payload: bytes) -> None:
        identity = {"t": "answer", "id": header.get("id")}
        try:
            fields, data = await self._handle(stream, header, payload)
            stream.send(*pack({**identity, "ok": True}, fields, data))
        except JupyterDistError as err:
            stream.send(*pack({**identity, "ok": False}, {"error": err.to_dict()}))
        except Exception as err:  # the outermost level of a request: the server must get an answer
            log.exception("Cannot answer '%s'", header.get("t"))
            words = f"The agent failed: {failure_of(err)}"
            error = JupyterDistError("internal", words, "See agent.log in the group's folder.")
            stream.send(*pack({**identity, "ok": False}, {"error": error.to_dict()}))

    async def _handle(self, stream: FrameStream, header: Header, payload: bytes) -> Answer:
        if header.get("t") == "follow":
            if stream is not self._stream:
                raise bad_request("Only the server that sent hello last can follow.")
            if self._journal is None:
                raise bad_request("There is no group to follow yet.")
            self._close_cursor()
            self._cursor = JournalCursor(self._journal.directory, int(header["since"]), is_numbered)
            self._journal.overflow.follow(True)
            self._something.set()
            return {}, b""
        handler = self._handlers.get(str(header.get("t")))
        if handler is None:
            raise bad_request(f"Unknown request '{header.get('t')}'.", "Agent and server have different versions.")
        answered = await handler(header, payload)
        if header.get("t") == "hello":
            self._take_over(stream)
        return answered

    async def _send_changes(self, stream: FrameStream) -> None:
        while True:
            await self._something.wait()
            self._something.clear()
            if self._soon is not None:
                self._soon.cancel()
                self._soon = None
            while frames := self._next_frames():
                try:
                    stream.send_encoded(frames)
                    await stream.drain()
                except OSError:  # the connection was lost: its reader notices, too
                    return
            if not self._something.is_set() and self._soon is None:
                self._all_sent.set()

    def _next_frames(self) -> list[bytes]:
        """Return the next records, and every change that depends only on records up to these or has waited enough."""
        frames = self._next_records()
        # Nothing left to read: the whole journal was sent.
        seq = self._cursor.since if frames and self._cursor is not None else None
        now = time.monotonic()
        due = [
            key
            for key, (after, _, _) in self._changes.items()
            if seq is None or after.seq <= seq or after.latest_at <= now
        ]
        return frames + [self._encoded(key, *self._changes.pop(key)[1:]) for key in due]

    def _encoded(self, key: str, t: str, make: MakeMessage) -> bytes:
        try:
            return encode_frame(*pack({"t": t}, make()))
        except Exception as err:  # one message that cannot be sent must not stop all others
            log.exception("Cannot send %s '%s' to the server", t, key)
            error = JupyterDistError("internal", f"The agent cannot send {t} '{key}': {err!r:.500}")
            return encode_frame(*pack({"t": "dropped"}, {"about": t, "key": key, "error": error.to_dict()}))

    def _next_records(self) -> list[bytes]:
        if self._cursor is None or self._journal is None:
            return []
        try:
            records = self._cursor.read(self._journal.written_seq)
        except OSError as err:  # no descriptors are left, or the disk fails: states must be sent all the same
            asyncio.get_running_loop().call_later(READ_AGAIN_SECONDS, self._something.set)
            return self._unreadable_message(err)
        self._is_unreadable = False
        # Records that the full disk did not take are sent from memory, in order.
        return self._journal.overflow.merge(records)

    def _unreadable_message(self, err: OSError) -> list[bytes]:
        """Return a message about an unreadable journal, once until it can be read again."""
        if self._is_unreadable:
            return []
        self._is_unreadable = True
        log.error("Cannot read the group's log; output is held until it can be read", exc_info=err)
        words = f"The agent cannot read the group's log: {err.strerror}. Output is held until it can."
        error = JupyterDistError("internal", words)
        return [encode_frame(*pack({"t": "dropped"}, {"about": "records", "key": "log", "error": error.to_dict()}))]


def answer(**fields: Any) -> Answer:
    """Return an answer without payload."""
    return fields, b""
