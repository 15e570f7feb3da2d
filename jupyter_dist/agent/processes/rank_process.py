"""One rank as the agent sees it: its process, channel, pipes and state."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

from jupyter_dist.journal.writer import JournalWriter
from jupyter_dist.protocol import road
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.specs import CALLBACK_ID, RankSpec
from jupyter_dist.protocol.states import RANK_LIFE, STARTING_RANK_STATES, RankState
from jupyter_dist.transport.frames import FrameDecoder, Header, encode_frame, unpack
from jupyter_dist.transport.questions import Questions
from jupyter_dist.transport.stream import FrameStream

from . import alike
from .alike import Said
from .death import Ending, LastWords, describe_companions, exit_model
from .pipes import RankPipes, has_data
from .starter import Born, RankLink

if TYPE_CHECKING:
    from jupyter_dist.protocol import models
    from jupyter_dist.protocol.memory import CellMemory

# A process without its channel (after execv, for example) cannot be used any more.
MUTE_SECONDS = 2.0
LOST_CHANNEL = "it had lost its channel to the agent"
MAX_ABSENCES = 20
# The last of its output is read well within this time, unless this process was held up. Then it is read in parts.
LAST_SECONDS = 0.3
MAX_LAST_PARTS = 10

log = logging.getLogger(__name__)


class RankListener(Protocol):
    """Receives the events of a rank."""

    def ranks_changed(self) -> None:
        """States or messages of ranks changed."""

    def ranks_replied(self, ranks: Sequence[RankProcess], reply: Header, seconds: Sequence[float | None]) -> None:
        """They finished their parts of an execution alike, each in its seconds; all their output is in the journal."""

    def rank_sent(self, rank: RankProcess, header: Header, content: dict[str, Any], size: int) -> None:
        """Its code sent a message (protocol/road.py), which is sound."""

    def rank_traced(self, rank: RankProcess, part: bytes, is_first: bool) -> None:
        """It sent the next part of its trace of a profiled cell."""

    def rank_died(self, rank: RankProcess) -> None:
        """Its process is gone; all its output is in the journal."""


class RankProcess:
    """Created with the group; `open` and `started` attach a process. Never reused after its death."""

    def __init__(
        self, spec: RankSpec, journal: JournalWriter, listener: RankListener, absences: Sequence[list[float]] = ()
    ) -> None:
        self.spec = spec
        self.rank = spec.rank
        self.absences = list(absences)  # from when to when it had no process, in this generation
        self.state: RankState = "starting"
        self.state_at = time.time()
        self.born: Born | None = None
        self.execution_id: str | None = None
        self.exit: models.RankExit | None = None
        self.message: str | None = None
        self.failure: str | None = None  # its own error message, if its start failed
        self.collective_seq: int | None = 0  # number of collectives begun, as of its last reply
        self.cell_memory: CellMemory | None = None  # what its last cell changed, if that is much
        self.cell_error: str | None = None  # what ended its last cell, such as "ValueError: no data"
        self.kinds: dict[str, str] = {}  # what all ranks must use together, by name, as of its last reply
        self.process_group: Literal["ok", "broken", "none", "lost"] = "ok"  # ok, broken or none, as of its last reply
        self.interrupted_at: float | None = None  # monotonic time of the first interrupt of its cell
        self.ignores_interrupt = False  # interrupted seconds ago and still running its cell
        self.unreachable: str | None = None  # why its node cannot be reached now
        self.gone = asyncio.Event()
        self.ended_with_it: tuple[tuple[int, str], ...] = ()  # pid and name of the processes it had started
        self.last_words = LastWords()
        self.journal = journal
        self.listener = listener
        self._last_execution_id: str | None = None
        self._killed_because: str | None = None
        self._left_because: str | None = None  # it was asked to exit
        self._mute: asyncio.TimerHandle | None = None
        self._stream: FrameStream | None = None
        self._link: RankLink | None = None  # in place of a stream and pipes: it is on another machine
        self.decoder = FrameDecoder()  # of what comes from there
        self._sock: socket.socket | None = None
        self._pipes = RankPipes(self._on_text)
        self._reader: asyncio.Task[None] | None = None
        self._questions: Questions[Header] = Questions()
        self._handlers = {
            "phase": self._on_phase,
            "ready": self._on_ready,
            "failed": self._on_failed,
            **dict.fromkeys(alike.HANDLERS, self._on_said),
            "trace": self._on_trace,
            "from_rank": self._on_from_rank,
            "sync": self._on_sync,
            "answer": self._on_answer,
        }

    # -- life ---------------------------------------------------------------------------------------

    def open(self) -> tuple[int, int, int]:
        """Create channel and pipes; return the child's ends (channel, stdout, stderr), which the caller closes."""
        self._sock, child = socket.socketpair()
        with child:
            stdout, stderr = self._pipes.open()
            return child.detach(), stdout, stderr

    def use_link(self, link: RankLink) -> None:
        """Reach the rank through its node agent."""
        self._link = link

    @property
    def pid(self) -> int | None:
        """Return the id of its process, on its own machine; None until it has one."""
        return None if self.born is None else self.born.pid

    @property
    def local_pid(self) -> int | None:
        """Return the id of its process on this machine; None if it is on another one."""
        return self.pid if self._link is None else None

    async def started(self, born: Born) -> None:
        """Start listening to the process."""
        self.born = born
        if self._link is not None:
            self._link.listen(self)
            return
        assert self._sock is not None
        self._sock.setblocking(False)
        self._stream = await FrameStream.from_socket(self._sock)
        self._reader = asyncio.create_task(self._read_frames(self._stream), name=f"rank {self.rank} reader")
        self._pipes.listen()

    @property
    def was_killed(self) -> bool:
        """Whether we meant to kill it. One that has lost its channel may be dying of something else."""
        return self._killed_because not in (None, LOST_CHANNEL)

    async def ended(self, ending: Ending, out_of_memory: bool = False) -> None:
        """Handle the end of the process: read its remaining output, then tell the listener."""
        if self._reader is not None:
            await self._read_last(self._reader)
        if self.state == "dead":
            return
        self._pipes.drain()
        self.exit = exit_model(ending, out_of_memory, self._killed_because, self.last_words.lines())
        if self._left_because is not None and ending.code == 0:
            self.exit["reason"] = f"ended ({self._left_because})"
        self.unreachable = None  # dead is more than unreachable
        self.release()
        self._questions.fail(lambda: JupyterDistError("rank_dead", f"Rank {self.rank} died before it answered."))
        self._forget_interrupt()
        text = f"Rank {self.rank} {self.exit['reason']}."
        self.ended_with_it = ending.killed
        for note in filter(None, (text, describe_companions(ending))):
            self.journal.append("note", note.encode(), rank=self.rank, execution_id=self.execution_id)
        self.set_state("dead", text)
        self.gone.set()
        self.listener.rank_died(self)

    def release(self) -> None:
        """Close the agent's channel and pipes; the process is not touched. Idempotent."""
        if self._reader is not None:
            self._reader.cancel()
        if self._mute is not None:
            self._mute.cancel()
        if self._link is not None:
            self._link.close()
        elif self._stream is not None:
            self._stream.abort()
        elif self._sock is not None:
            self._sock.close()
        self._pipes.close()

    def leave(self, seconds: float, because: str) -> None:
        """Ask it to exit within that time; what it wrote is flushed, and exit handlers run."""
        self._left_because = because
        self.execution_id = None  # its cell has ended for the group; what it still writes is kept
        self.send({"t": "shutdown", "seconds": seconds})

    def kill(self, because: str) -> None:
        """Kill it; its shim ends the processes it had started. `ended` reports its death with the first reason."""
        if self.born is not None and self.state != "dead":
            self._killed_because = self._killed_because or because
            self.born.kill()

    # -- asking -------------------------------------------------------------------------------------

    def send(self, header: Header, payload: bytes = b"") -> None:
        """Send a message that needs no answer; ignored if the rank is dead."""
        self._send(encode_frame(header, payload))

    def _send(self, frame: bytes) -> None:
        if self._link is not None:
            self._link.send(frame)
        elif self._stream is not None and not self._stream.is_closing:
            self._stream.send_encoded([frame])

    def begin(self, execution_id: str, frame: bytes) -> None:
        """Run its part of a cell (alike.execute, which tells the listener)."""
        RANK_LIFE.check(self.state, "busy")
        self._send(frame)  # first: it has the cell, or nothing has changed
        self.execution_id = self._last_execution_id = execution_id
        self._forget_interrupt()
        self._enter("busy")

    def ended_part(self, reply: Header, kinds: dict[str, str], memory: CellMemory | None) -> None:
        """Handle its reply, which is sound (alike.py, which tells the listener)."""
        self.execution_id = None
        self._forget_interrupt()
        self.collective_seq = reply.get("collective_seq")
        self.kinds, self.cell_memory = kinds, memory
        self.process_group = reply.get("process_group", "ok")
        self._enter("idle")

    def interrupt(self, *, frees: bool = False) -> None:
        """Interrupt its cell; `frees`: it waits for what never completes (watch/freeing.py)."""
        if self.interrupted_at is None:
            self.interrupted_at = time.monotonic()
        self.send({"t": "interrupt", "execution_id": self.execution_id, "frees": frees})

    def interrupt_callback(self) -> None:
        """Interrupt the code of a widget, which runs while no cell does."""
        self.send({"t": "interrupt", "execution_id": CALLBACK_ID})

    def write(self, text: str) -> None:
        """Add a line of ours to the output of its last cell."""
        self._keep_text("stderr", f"jupyter_dist: {text}\n".encode(), self._last_execution_id)

    @property
    def interrupted_seconds(self) -> float:
        """Seconds since its cell was interrupted; 0 if it was not."""
        return 0.0 if self.interrupted_at is None else time.monotonic() - self.interrupted_at

    async def request(self, kind: str, timeout_seconds: float, payload: bytes = b"", **fields: Any) -> Header:
        """Send a request, return the answer. Raises `timed_out`, `rank_dead`, or the error that the rank returned."""
        if (self._stream is None and self._link is None) or self.state == "dead":
            raise JupyterDistError("rank_dead", f"Rank {self.rank} is not running.")
        if self.unreachable is not None:
            raise JupyterDistError("node_unreachable", self.unreachable, "Wait until the link is back.")
        ask = lambda number: self.send({"t": kind, "id": number, **fields}, payload)  # noqa: E731
        try:
            return await self._questions.ask(ask, timeout_seconds)
        except asyncio.TimeoutError as err:
            message = f"Rank {self.rank} did not answer '{kind}' within {timeout_seconds:g} s."
            raise JupyterDistError("timed_out", message) from err

    # -- state --------------------------------------------------------------------------------------

    def set_state(self, state: RankState, message: str | None = None) -> None:
        """Enter a state and tell the listener."""
        if self._enter(state, message):
            self.listener.ranks_changed()

    def _enter(self, state: RankState, message: str | None = None) -> bool:
        RANK_LIFE.check(self.state, state)
        if (state, message) == (self.state, self.message):
            return False
        if state != self.state:
            self.state_at = time.time()
        self.state, self.message = state, message
        return True

    def reached(self, reason: str | None) -> None:
        """Handle that its node cannot be reached, and why; None: it can again."""
        self.unreachable = reason
        if self.state == "dead" or self.state in STARTING_RANK_STATES:
            return
        if reason is not None:
            self.set_state("unresponsive", reason)
        elif self.state == "unresponsive":
            self.set_state("busy" if self.execution_id is not None else "idle")

    def model(self) -> models.Rank:
        """Return the Rank of docs/api.md."""
        model: models.Rank = {
            "rank": self.rank,
            "local_rank": self.spec.local_rank,
            "node": self.spec.node,
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
        if self.absences:
            model["absences"] = self.absences
        return model

    def successor(self, store_path: str) -> RankProcess:
        """Return a new one without a process, to take the place of this one, which is dead."""
        absences = [*self.absences, [self.state_at, time.time()]][-MAX_ABSENCES:]
        return RankProcess(
            replace(self.spec, store_path=store_path, replaces=True), self.journal, self.listener, absences
        )

    # -- receiving ------------------------------------------------------------------------------------

    async def _read_frames(self, stream: FrameStream) -> None:
        try:
            while True:
                header, payload = await stream.recv()
                # Output of C code from before this frame must precede it in the journal (docs/messaging.md).
                self._pipes.drain()
                self._handlers[header["t"]](header, payload)
        except (EOFError, OSError):
            pass
        except Exception:  # the outermost level of the reading task: the group must learn that the rank failed
            log.exception("Rank %d sent an invalid message", self.rank)
        self.lost_channel()

    async def _read_last(self, reader: asyncio.Task[None]) -> None:
        """Wait until what it said has been read. A grandchild may hold the channel open, so there may be no end."""
        for _ in range(MAX_LAST_PARTS):
            await asyncio.wait([reader], timeout=LAST_SECONDS)
            if reader.done() or not has_data(self._sock):
                return

    @property
    def is_mute(self) -> bool:
        """Whether it has lost its channel; it is killed soon."""
        return self._mute is not None

    def hear(self, name: str, data: bytes) -> None:
        """Take what its node agent passes on, in the order in which the rank said it."""
        if name != "channel":
            self._on_text(name, data)
        elif not data:
            self.lost_channel()
        elif not self.is_mute:
            try:
                for header, payload in self.decoder.feed(data):
                    self._handlers[header["t"]](header, payload)
            except Exception:  # as above
                log.exception("Rank %d sent an invalid message", self.rank)
                self.lost_channel()

    def lost_channel(self) -> None:
        """Handle that it cannot be understood any more: end it, unless it ends by itself."""
        self._mute = asyncio.get_running_loop().call_later(MUTE_SECONDS, self.kill, LOST_CHANNEL)

    def _on_phase(self, header: Header, _: bytes) -> None:
        if header["phase"] not in STARTING_RANK_STATES:
            raise ValueError("not a phase of a start")
        self.set_state(header["phase"])

    def _on_ready(self, header: Header, _: bytes) -> None:
        self.set_state("idle")

    def _on_failed(self, header: Header, payload: bytes) -> None:
        self.last_words.add(payload)
        self.failure = f"{header['ename']}: {header['evalue']}"

    def _on_said(self, header: Header, payload: bytes) -> None:
        alike.hear([self], Said.by_one(header, payload))

    def _on_trace(self, header: Header, payload: bytes) -> None:
        if self.execution_id is not None and header["execution_id"] == self.execution_id:
            self.listener.rank_traced(self, payload, header["is_first"] is True)

    def _on_from_rank(self, header: Header, payload: bytes) -> None:
        content = road.FROM_RANK[header["kind"]].decode(payload)
        if not isinstance(header["number"], int):
            raise ValueError("not a number")
        self.listener.rank_sent(self, header, content, len(payload))

    def _forget_interrupt(self) -> None:
        self.interrupted_at, self.ignores_interrupt = None, False

    def _on_sync(self, header: Header, _: bytes) -> None:
        self.send({"t": "synced", "id": header["id"]})

    def _on_answer(self, header: Header, payload: bytes) -> None:
        answer, _ = unpack(header, payload)
        if answer.get("ok"):
            self._questions.answer(answer["id"], answer)
        else:
            self._questions.refuse(answer["id"], JupyterDistError.from_dict(answer.get("error")))

    def _on_text(self, name: str, data: bytes) -> None:
        self._keep_text(name, data, self._last_execution_id)

    def _keep_text(self, name: str, data: bytes, execution_id: str | None) -> None:
        self.journal.append_of(self.rank, "stream", data, execution_id=execution_id, name=name)
        if name == "stderr":
            self.last_words.add(data)
