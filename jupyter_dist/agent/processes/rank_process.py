"""One rank seen from the agent: its process, its channel, its two pipes, its state."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import time
from typing import Any, Protocol

from jupyter_dist.journal.sound import is_sound
from jupyter_dist.journal.writer import JournalWriter
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.specs import RankSpec
from jupyter_dist.protocol.states import FINAL_EXECUTION_STATES, RankState, check_rank_transition
from jupyter_dist.system.processes import signal_same
from jupyter_dist.transport.frames import Header, unpack
from jupyter_dist.transport.stream import FrameStream

from .death import Ending, LastWords, describe_companions, exit_model
from .pending import Pending
from .pipes import RankPipes

# A process that lives on without its channel (after execv, say) can be of no use to anyone.
MUTE_SECONDS = 2.0
OUTPUT_KINDS = frozenset({"display_data", "update_display_data", "execute_result", "error", "clear_output"})

PROCESS_GROUPS = ("ok", "broken", "none")

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
        self.interrupted_at: float | None = None  # on the monotonic clock: when its cell was first asked to stop
        self.ignores_interrupt = False  # it was asked seconds ago, and still runs its cell
        self.gone = asyncio.Event()
        self.ended_with_it: tuple[tuple[int, str], ...] = ()  # pid and name of what it had started
        self.last_words = LastWords()
        self._journal = journal
        self._listener = listener
        self._last_execution_id: str | None = None
        self._killed_because: str | None = None
        self._started = 0
        self._mute: asyncio.TimerHandle | None = None
        self._stream: FrameStream | None = None
        self._sock: socket.socket | None = None
        self._pipes = RankPipes(self._on_text)
        self._reader: asyncio.Task[None] | None = None
        self._pending = Pending()
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
        stdout, stderr = self._pipes.open()
        return child.detach(), stdout, stderr

    async def started(self, pid: int, started: int) -> None:
        """The process runs, since that clock tick: listen to it."""
        assert self._sock is not None
        self.pid, self._started = pid, started
        self._sock.setblocking(False)
        self._stream = await FrameStream.from_socket(self._sock)
        self._reader = asyncio.create_task(self._read_frames(self._stream), name=f"rank {self.rank} reader")
        self._pipes.listen()

    async def ended(self, ending: Ending, out_of_memory: bool = False) -> None:
        """The process was reaped: take what it still had to say, then tell the listener."""
        if self.state == "dead":
            return
        if self._reader is not None:
            # A grandchild may hold the channel open; what the rank itself wrote is read well within this.
            await asyncio.wait([self._reader], timeout=0.3)
        self._pipes.drain()
        self.exit = exit_model(ending, out_of_memory, self._killed_because, self.last_words.lines())
        self.release()
        self._pending.fail(JupyterDistError("rank_dead", f"Rank {self.rank} died before it answered."))
        self._forget_interrupt()
        text = f"Rank {self.rank} {self.exit['reason']}."
        self.ended_with_it = ending.killed
        for note in filter(None, (text, describe_companions(ending))):
            self._journal.append("note", note.encode(), rank=self.rank, execution_id=self.execution_id)
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
        self._pipes.close()

    def kill(self, because: str | None = None) -> None:
        """Kill it; its shim ends what it had started. `ended` tells its death, with the reason if one is given."""
        if self.pid is not None and self.state != "dead":
            self._killed_because = because or self._killed_because
            signal_same(self.pid, self._started, signal.SIGKILL)

    # -- asking -------------------------------------------------------------------------------------

    def send(self, header: Header, payload: bytes = b"") -> None:
        """Send a message that needs no answer; a dead rank takes it silently."""
        if self._stream is not None and not self._stream.is_closing:
            self._stream.send(header, payload)

    def execute(self, execution_id: str, frame: bytes) -> None:
        """Run a cell, given as the encoded `execute` message; the end comes as `rank_replied` or `rank_died`."""
        self.execution_id = self._last_execution_id = execution_id
        self._forget_interrupt()
        if self._stream is not None and not self._stream.is_closing:
            self._stream.send_encoded([frame])
        self.set_state("busy")

    def interrupt(self) -> None:
        """Ask it to stop its cell."""
        if self.interrupted_at is None:
            self.interrupted_at = time.monotonic()
        self.send({"t": "interrupt", "execution_id": self.execution_id})

    @property
    def interrupted_seconds(self) -> float:
        """How long ago its cell was asked to stop; 0 when it was not."""
        return 0.0 if self.interrupted_at is None else time.monotonic() - self.interrupted_at

    async def request(self, kind: str, timeout_seconds: float, payload: bytes = b"", **fields: Any) -> Header:
        """Ask the rank and return its answer.

        Raises:
            JupyterDistError: `timed_out`, or what the rank answered, or `rank_dead`.
        """
        if self._stream is None or self.state == "dead":
            raise JupyterDistError("rank_dead", f"Rank {self.rank} is not running.")
        ask = lambda number: self.send({"t": kind, "id": number, **fields}, payload)  # noqa: E731
        try:
            header = await self._pending.ask(ask, timeout_seconds)
        except asyncio.TimeoutError as err:
            message = f"Rank {self.rank} did not answer '{kind}' within {timeout_seconds:g} s."
            raise JupyterDistError("timed_out", message) from err
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
            "ignores_interrupt": self.ignores_interrupt,
        }

    # -- hearing ------------------------------------------------------------------------------------

    async def _read_frames(self, stream: FrameStream) -> None:
        try:
            while True:
                header, payload = await stream.recv()
                # What C code wrote before this frame must come before it in the journal (docs/messaging.md).
                self._pipes.drain()
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
        self.last_words.add(payload)
        self.failure = f"{header['ename']}: {header['evalue']}"

    def _on_stream(self, header: Header, payload: bytes) -> None:
        self._keep_text(header["name"], payload, header["execution_id"])

    def _on_output(self, header: Header, payload: bytes) -> None:
        kind = header["msg_type"]
        if kind in OUTPUT_KINDS:
            self._keep(kind, payload, execution_id=header["execution_id"])

    def _on_reply(self, header: Header, _: bytes) -> None:
        if header["execution_id"] != self.execution_id:
            return
        if header["status"] not in FINAL_EXECUTION_STATES or header.get("process_group", "ok") not in PROCESS_GROUPS:
            raise ValueError("a reply that makes no sense")
        self._keep("rank_end", **{name: header[name] for name in ("execution_id", "status", "seconds")})
        self.execution_id = None
        self._forget_interrupt()
        self.collective_seq = header.get("collective_seq")
        self.process_group = header.get("process_group", "ok")
        self.set_state("idle")
        self._listener.rank_replied(self, header)

    def _keep(self, kind: str, payload: bytes = b"", **fields: Any) -> None:
        """Append what the rank said to the journal. Raises ValueError when no reader would believe it."""
        fields["rank"] = self.rank
        if not is_sound({"seq": 1, "at": 0.0, "kind": kind, **fields}, self.spec.world_size):
            raise ValueError(f"a {kind} that makes no sense")
        self._journal.append(kind, payload, **fields)

    def _forget_interrupt(self) -> None:
        self.interrupted_at, self.ignores_interrupt = None, False

    def _on_sync(self, header: Header, _: bytes) -> None:
        self.send({"t": "synced", "id": header["id"]})

    def _on_answer(self, header: Header, payload: bytes) -> None:
        self._pending.answered(unpack(header, payload)[0])

    def _on_text(self, name: str, data: bytes) -> None:
        self._keep_text(name, data, self._last_execution_id)

    def _keep_text(self, name: str, data: bytes, execution_id: str | None) -> None:
        self._keep("stream", data, execution_id=execution_id, name=name)
        if name == "stderr":
            self.last_words.add(data)
