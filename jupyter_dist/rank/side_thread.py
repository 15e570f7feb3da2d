"""The thread that alone reads and writes the rank's socket, and answers while the main thread is busy."""

from __future__ import annotations

import contextlib
import linecache
import os
import select
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Any

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.frames import FrameDecoder, Header

from .execution import Execution
from .interrupt import Interrupter
from .memory import Memory
from .outbox import Outbox
from .runner import Runner
from .streams import Streams

FLUSH_SECONDS = 0.05
LEAVE_SECONDS = 2.0
RECV_BYTES = 1 << 18
MAX_STACK = 50


class SideThread(threading.Thread):
    """Lives from the first step of the start until the process ends."""

    def __init__(
        self,
        sock: socket.socket,
        outbox: Outbox,
        streams: Streams,
        runner: Runner,
        interrupter: Interrupter,
        memory: Memory,
        namespace: dict[str, Any],
    ) -> None:
        super().__init__(name="jupyter_dist side thread", daemon=True)
        self._sock = sock
        self._outbox = outbox
        self._streams = streams
        self._runner = runner
        self._interrupter = interrupter
        self._memory = memory
        self._namespace = namespace
        self._decoder = FrameDecoder()
        self._unsent: memoryview | None = None
        self._flushed_at = 0.0
        self._leave_by: float | None = None
        self.rejoin: Callable[[str], int] | None = None
        self.leave: Callable[[], None] = lambda: os._exit(0)
        self._handlers: dict[str, Callable[[Header, bytes], None]] = {
            "execute": self._on_execute,
            "interrupt": self._on_interrupt,
            "sample": self._on_sample,
            "empty_cache": self._on_empty_cache,
            "rejoin": self._on_rejoin,
            "ping": self._on_ping,
            "stack": self._on_stack,
            "synced": self._on_synced,
            "shutdown": self._on_shutdown,
        }
        sock.setblocking(False)
        self._poll = select.poll()
        self._poll.register(outbox.wakeup, select.POLLIN)

    def run(self) -> None:
        """Serve until the process ends or the agent is gone."""
        self._outbox.has_reader(threading.get_ident())
        try:
            while True:
                self._step()
        except (OSError, EOFError):  # the agent is gone, and with it everybody who could use this rank
            self._outbox.close()
            os._exit(1)

    def _step(self) -> None:
        writing = select.POLLOUT if self._unsent is not None else 0
        self._poll.register(self._sock, select.POLLIN | writing)
        timeout = self._timeout()
        for fd, event in self._poll.poll(None if timeout is None else timeout * 1000):
            if fd == self._outbox.wakeup:
                os.eventfd_read(fd)
            elif event & ~select.POLLOUT:
                self._receive()
        self._guard(self._interrupter.tick)
        if time.monotonic() - self._flushed_at >= FLUSH_SECONDS:
            self._guard(self._flush)
        self._send()
        if self._leave_by is not None and time.monotonic() > self._leave_by:
            os._exit(1)

    def _timeout(self) -> float | None:
        """Nothing is polled for while the rank is idle."""
        wishes = [self._interrupter.timeout()]
        if self._outbox.busy or self._outbox.has_text:
            wishes.append(FLUSH_SECONDS)
        if self._leave_by is not None:
            wishes.append(max(0.0, self._leave_by - time.monotonic()))
        return min((wish for wish in wishes if wish is not None), default=None)

    def _flush(self) -> None:
        self._flushed_at = time.monotonic()
        self._streams.flush()
        self._outbox.flush_text()

    def _receive(self) -> None:
        try:
            data = self._sock.recv(RECV_BYTES)
        except BlockingIOError:
            return
        if not data:
            raise EOFError
        for header, payload in self._decoder.feed(data):
            self._handle(header, payload)

    def _handle(self, header: Header, payload: bytes) -> None:
        try:
            self._handlers[header["t"]](header, payload)
        except Exception as err:  # one bad request must not end the thread: its sender is told
            _complain()
            self._refuse(header, err)

    @staticmethod
    def _guard(step: Callable[[], None]) -> None:
        try:
            step()
        except Exception:  # an edge: only the loss of the channel may end this thread
            _complain()

    def _send(self) -> None:
        while True:
            if self._unsent is None:
                frame = self._outbox.take()
                if frame is None:
                    return
                self._unsent = memoryview(frame)
            try:
                num_sent = self._sock.send(self._unsent)
            except BlockingIOError:
                return
            self._outbox.sent(num_sent)
            self._unsent = self._unsent[num_sent:] if num_sent < len(self._unsent) else None

    def _answer(self, header: Header, **fields: Any) -> None:
        self._outbox.send({"t": "answer", "id": header["id"], "ok": True, **fields})

    def _refuse(self, header: Header, err: BaseException) -> None:
        if "id" in header:
            error = JupyterDistError("internal", f"{type(err).__name__}: {err}").to_dict()
            self._outbox.send({"t": "answer", "id": header["id"], "ok": False, "error": error})

    # -- messages -----------------------------------------------------------------------------------

    def _on_execute(self, header: Header, payload: bytes) -> None:
        code = payload.decode("utf-8", "replace")
        execution = Execution(header["execution_id"], header["execution_count"], header["silent"], code)
        self._runner.submit(execution)

    def _on_interrupt(self, header: Header, _: bytes) -> None:
        self._interrupter.request(header["execution_id"])

    def _on_sample(self, header: Header, _: bytes) -> None:
        self._answer(header, **self._memory.sample())

    def _on_ping(self, header: Header, _: bytes) -> None:
        self._answer(header)

    def _on_stack(self, header: Header, _: bytes) -> None:
        main = threading.main_thread().ident
        frame = sys._current_frames().get(main or 0)
        self._answer(header, stack=_user_stack(frame, self._namespace))

    def _on_synced(self, header: Header, _: bytes) -> None:
        self._outbox.synced(header["id"])

    def _on_empty_cache(self, header: Header, _: bytes) -> None:
        self._in_main_thread(header, lambda: self._answer(header, freed_bytes=self._memory.release()))

    def _on_rejoin(self, header: Header, _: bytes) -> None:
        assert self.rejoin is not None, "the rank has not joined yet"
        rejoin = self.rejoin
        self._in_main_thread(header, lambda: self._answer(header, revived=rejoin(header["store_path"])))

    def _in_main_thread(self, header: Header, work: Callable[[], None]) -> None:
        def guarded() -> None:
            try:
                work()
            except Exception as err:  # the edge: torch may raise anything here, and the agent must hear of it
                _complain()
                self._refuse(header, err)

        self._runner.when_idle(guarded)

    def _on_shutdown(self, _: Header, __: bytes) -> None:
        self._leave_by = time.monotonic() + LEAVE_SECONDS
        self.leave()


def _complain() -> None:
    """Write the current exception to the pipe; sys.stderr may be what is broken."""
    with contextlib.suppress(OSError):
        os.write(2, traceback.format_exc().encode("utf-8", "backslashreplace"))


def _user_stack(frame: FrameType | None, namespace: dict[str, Any]) -> list[dict[str, Any]]:
    """The frames from the cell's own code inwards, outermost first; empty when no cell runs."""
    frames = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    frames.reverse()
    first = next((index for index, frame in enumerate(frames) if frame.f_globals is namespace), len(frames))
    return [_describe(frame) for frame in frames[first:][-MAX_STACK:]]


def _describe(frame: FrameType) -> dict[str, Any]:
    filename = frame.f_code.co_filename
    return {
        "file": filename,
        "line": frame.f_lineno,
        "function": frame.f_code.co_name,
        "code": linecache.getline(filename, frame.f_lineno, frame.f_globals).strip()[:500],
    }
