"""One rank seen from the agent: its process, its channel, its two pipes, its state."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import socket
import time
from collections import deque
from typing import Any, Protocol

from jupyter_dist.journal.writer import JournalWriter
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.frames import Header
from jupyter_dist.protocol.specs import RankSpec
from jupyter_dist.protocol.states import RankState, check_rank_transition
from jupyter_dist.transport.stream import FrameStream

from .death import Ending, describe
from .linux import kill_sessions, widen_pipe

# C-level writes come one line at a time; waiting this long gathers a burst of them into one record.
PIPE_GATHER_SECONDS = 0.01
PIPE_READ_BYTES = 1 << 20
LAST_WORDS_LINES = 20
# A process that lives on without its channel (after execv, say) can be of no use to anyone.
MUTE_SECONDS = 2.0
OUTPUT_KINDS = frozenset({"display_data", "update_display_data", "execute_result", "error", "clear_output"})

log = logging.getLogger(__name__)


class RankListener(Protocol):
    """Who is told of what happens to a rank."""

    def rank_changed(self, rank: RankProcess) -> None:
        """Its state or message changed."""

    def rank_replied(self, rank: RankProcess, reply: Header) -> None:
        """It ended its part of an execution; all its output is in the journal."""

    def rank_died(self, rank: RankProcess) -> None:
        """Its process is gone; all its output is in the journal."""


class RankProcess:
    """Created with the group, given a process by `open` and `started`; never reused after its death."""

    def __init__(self, spec: RankSpec, journal: JournalWriter, listener: RankListener) -> None:
        self.spec = spec
        self.rank = spec.rank
        self.state: RankState = "starting"
        self.state_at = time.time()
        self.pid: int | None = None
        self.execution_id: str | None = None
        self.exit: dict[str, Any] | None = None
        self.message: str | None = None
        self.failure: str | None = None  # what it said of its own failed start
        self.collective_seq: int | None = 0  # collectives begun, as of its last reply
        self.process_group = "ok"  # as of its last reply: or broken, or none
        self.gone = asyncio.Event()
        self._journal = journal
        self._listener = listener
        self._last_execution_id: str | None = None
        self._killed_because: str | None = None
        self._mute: asyncio.TimerHandle | None = None
        self._last_words: deque[bytes] = deque(maxlen=64)
        self._stream: FrameStream | None = None
        self._sock: socket.socket | None = None
        self._pipes: dict[str, int] = {}  # stream name -> read end
        self._reader: asyncio.Task[None] | None = None
        self._requests: dict[int, asyncio.Future[Header]] = {}
        self._request_ids = itertools.count(1)
        self._handlers = {
            "phase": self._on_phase,
            "ready": self._on_ready,
            "failed": self._on_failed,
            "stream": self._on_stream,
            "output": self._on_output,
            "reply": self._on_reply,
            "sync": self._on_sync,
            "answer": self._on_answer,
        }

    # -- life ---------------------------------------------------------------------------------------

    def open(self) -> tuple[int, int, int]:
        """Make the channel and the pipes; return the child's ends (channel, stdout, stderr), the caller's to close."""
        self._sock, child = socket.socketpair()
        ends = []
        for name in ("stdout", "stderr"):
            read_end, write_end = os.pipe2(os.O_CLOEXEC)
            os.set_blocking(read_end, False)
            widen_pipe(read_end)
            self._pipes[name] = read_end
            ends.append(write_end)
        return child.detach(), ends[0], ends[1]

    async def started(self, pid: int) -> None:
        """The process runs: listen to it."""
        assert self._sock is not None
        self.pid = pid
        self._sock.setblocking(False)
        self._stream = await FrameStream.from_socket(self._sock)
        self._reader = asyncio.create_task(self._read_frames(self._stream), name=f"rank {self.rank} reader")
        for name, fd in self._pipes.items():
            asyncio.get_running_loop().add_reader(fd, self._on_pipe, name, fd)

    async def ended(self, ending: Ending, out_of_memory: bool = False) -> None:
        """The process was reaped: take what it still had to say, then tell the listener."""
        if self.state == "dead":
            return
        if self._reader is not None:
            # A grandchild may hold the channel open; what the rank itself wrote is read well within this.
            await asyncio.wait([self._reader], timeout=0.3)
        self._drain_pipes()
        self.exit = {
            "code": ending.code,
            "signal": ending.signal,
            "reason": describe(ending, out_of_memory, self._killed_because),
            "stderr": self.last_words(),
            "peak_bytes": ending.peak_bytes,
        }
        self.release()
        self._fail_requests()
        text = f"Rank {self.rank} {self.exit['reason']}."
        self._journal.append("note", text.encode(), rank=self.rank, execution_id=self.execution_id)
        self.set_state("dead", text)
        self.gone.set()
        self._listener.rank_died(self)

    def release(self) -> None:
        """Close what the agent holds of it. Idempotent; the process is not touched."""
        if self._reader is not None:
            self._reader.cancel()
        if self._mute is not None:
            self._mute.cancel()
        if self._stream is not None:
            self._stream.abort()
        elif self._sock is not None:
            self._sock.close()
        for fd in self._pipes.values():
            with contextlib.suppress(RuntimeError):  # no loop is running any more: there is no reader to remove
                asyncio.get_running_loop().remove_reader(fd)
            os.close(fd)
        self._pipes = {}

    def kill(self, because: str | None = None) -> None:
        """Kill its whole session; its death is told by `ended`, with the reason if one is given."""
        if self.pid is not None and self.state != "dead":
            self._killed_because = because
            kill_sessions([self.pid])

    # -- asking -------------------------------------------------------------------------------------

    def send(self, header: Header, payload: bytes = b"") -> None:
        """Send a message that needs no answer; a dead rank takes it silently."""
        if self._stream is not None and not self._stream.is_closing:
            self._stream.send(header, payload)

    def execute(self, execution_id: str, frame: bytes) -> None:
        """Run a cell, given as the encoded `execute` message; the end comes as `rank_replied` or `rank_died`."""
        self.execution_id = self._last_execution_id = execution_id
        if self._stream is not None and not self._stream.is_closing:
            self._stream.send_encoded([frame])
        self.set_state("busy")

    async def request(self, kind: str, timeout_seconds: float, payload: bytes = b"", **fields: Any) -> Header:
        """Ask the rank and return its answer.

        Raises:
            JupyterDistError: `timed_out`, or what the rank answered, or `rank_dead`.
        """
        if self._stream is None or self.state == "dead":
            raise JupyterDistError("rank_dead", f"Rank {self.rank} is not running.")
        number = next(self._request_ids)
        answer = self._requests[number] = asyncio.get_running_loop().create_future()
        self.send({"t": kind, "id": number, **fields}, payload)
        try:
            header: Header = await asyncio.wait_for(answer, timeout_seconds)
        except asyncio.TimeoutError as err:
            message = f"Rank {self.rank} did not answer '{kind}' within {timeout_seconds:g} s."
            raise JupyterDistError("timed_out", message) from err
        finally:
            del self._requests[number]
        if not header.get("ok"):
            raise JupyterDistError.from_dict(header.get("error"))
        return header

    # -- state --------------------------------------------------------------------------------------

    def set_state(self, state: RankState, message: str | None = None) -> None:
        """Enter a state and tell the listener."""
        check_rank_transition(self.state, state)
        if (state, message) != (self.state, self.message):
            if state != self.state:
                self.state_at = time.time()
            self.state, self.message = state, message
            self._listener.rank_changed(self)

    def last_words(self) -> str:
        """The last lines it wrote to stderr."""
        lines = b"".join(self._last_words).decode("utf-8", "replace").splitlines()
        return "\n".join(lines[-LAST_WORDS_LINES:])

    def model(self) -> dict[str, Any]:
        """The rank of docs/api.md."""
        return {
            "rank": self.rank,
            "local_rank": self.spec.local_rank,
            "pid": self.pid,
            "device": self.spec.device,
            "state": self.state,
            "state_at": self.state_at,
            "execution_id": self.execution_id,
            "process_group": self.process_group,
            "exit": self.exit,
            "message": self.message,
        }

    # -- hearing ------------------------------------------------------------------------------------

    async def _read_frames(self, stream: FrameStream) -> None:
        try:
            while True:
                header, payload = await stream.recv()
                # What C code wrote before this frame must come before it in the journal (docs/messaging.md).
                self._drain_pipes()
                self._handlers[header["t"]](header, payload)
        except (EOFError, OSError):
            pass
        except Exception:  # the edge of the reading task: whatever a rank sends, the group must hear of it
            log.exception("Rank %d sent what makes no sense", self.rank)
        because = "it had lost its channel to the agent"
        self._mute = asyncio.get_running_loop().call_later(MUTE_SECONDS, self.kill, because)

    def _on_phase(self, header: Header, _: bytes) -> None:
        self.set_state(header["phase"])

    def _on_ready(self, header: Header, _: bytes) -> None:
        self.set_state("idle")

    def _on_failed(self, header: Header, payload: bytes) -> None:
        self._last_words.append(payload)
        self.failure = f"{header['ename']}: {header['evalue']}"

    def _on_stream(self, header: Header, payload: bytes) -> None:
        self._keep_text(header["name"], payload, header["execution_id"])

    def _on_output(self, header: Header, payload: bytes) -> None:
        kind = header["msg_type"]
        if kind in OUTPUT_KINDS:
            self._journal.append(kind, payload, rank=self.rank, execution_id=header["execution_id"])

    def _on_reply(self, header: Header, _: bytes) -> None:
        if header["execution_id"] != self.execution_id:
            return
        fields = {name: header[name] for name in ("execution_id", "status", "seconds")}
        self._journal.append("rank_end", rank=self.rank, **fields)
        self.execution_id = None
        self.collective_seq = header.get("collective_seq")
        self.process_group = header.get("process_group", "ok")
        self.set_state("idle")
        self._listener.rank_replied(self, header)

    def _on_sync(self, header: Header, _: bytes) -> None:
        self.send({"t": "synced", "id": header["id"]})

    def _on_answer(self, header: Header, _: bytes) -> None:
        waiting = self._requests.get(header["id"])
        if waiting is not None and not waiting.done():
            waiting.set_result(header)

    def _fail_requests(self) -> None:
        error = JupyterDistError("rank_dead", f"Rank {self.rank} died before it answered.").to_dict()
        for waiting in self._requests.values():
            if not waiting.done():
                waiting.set_result({"ok": False, "error": error})

    # -- the pipes ----------------------------------------------------------------------------------

    def _on_pipe(self, name: str, fd: int) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(fd)
        loop.call_later(PIPE_GATHER_SECONDS, self._take_pipe, name, fd)

    def _take_pipe(self, name: str, fd: int) -> None:
        if self._pipes.get(name) == fd and self._drain_pipe(name, fd):
            asyncio.get_running_loop().add_reader(fd, self._on_pipe, name, fd)

    def _drain_pipes(self) -> None:
        for name, fd in self._pipes.items():
            self._drain_pipe(name, fd)

    def _drain_pipe(self, name: str, fd: int) -> bool:
        """Journal what the pipe holds; False at its end (nobody can write to it any more)."""
        while True:
            try:
                data = os.read(fd, PIPE_READ_BYTES)
            except BlockingIOError:
                return True
            if not data:
                return False
            self._keep_text(name, data, self._last_execution_id)

    def _keep_text(self, name: str, data: bytes, execution_id: str | None) -> None:
        self._journal.append("stream", data, rank=self.rank, execution_id=execution_id, name=name)
        if name == "stderr":
            self._last_words.append(data[-4096:])
