"""One rank as the agent sees it: its state, and the requests to it over its channel."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Protocol

from jupyter_dist.journal.writer import JournalWriter
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say, words_of
from jupyter_dist.protocol.states import RANK_LIFE, STARTING_RANK_STATES, RankState
from jupyter_dist.protocol.wire import road
from jupyter_dist.protocol.wire.specs import CALLBACK_ID, RankSpec
from jupyter_dist.transport.frames import Header, encode_frame, unpack
from jupyter_dist.transport.questions import Questions

from .death import Ending, LastWords, describe_companions, exit_model
from .starting.leftparts import LeftParts
from .starting.outside import SeenOutside
from .starting.process import ProcessHandle

if TYPE_CHECKING:
    from jupyter_dist.protocol.models import models
    from jupyter_dist.protocol.models.memory import CellMemory

# A process without its channel (after execv, for example) cannot be used any more.
MUTE_SECONDS = 2.0
LOST_CHANNEL = "it had lost its channel to the agent"
MAX_ABSENCES = 20

log = logging.getLogger(__name__)


class RankChannel(Protocol):
    """The connection to one rank's process: to one of this machine (localchannel.py), or of a node (nodes/remote.py).

    It passes on messages (`records.receive`) and output (`records.receive_text`) in the order of the rank's writes.
    """

    def listen(self, rank: RankProcess) -> None:
        """Begin to pass on messages and output, including earlier ones."""

    def send(self, frame: bytes, *, is_cell: bool = False) -> None:
        """Send an encoded message; ignored when the channel is closed or the rank has ended.

        Args:
            frame: the message.
            is_cell: whether the rank runs a cell because of it, and sends a reply when that has ended.
        """

    async def read_last(self) -> None:
        """Pass on the rest of what the rank's process, which has ended, had written."""

    def close(self) -> None:
        """Close the agent's side, which the rank notices. Idempotent."""


class RankListener(Protocol):
    """Receives the events of a rank."""

    def ranks_changed(self) -> None:
        """States or messages of ranks changed."""

    def ranks_replied(self, ranks: Sequence[RankProcess], reply: Header, seconds: Sequence[float | None]) -> None:
        """Ranks finished their parts of an execution alike, each in its seconds; their output is in the journal."""

    def rank_sent(self, rank: RankProcess, header: Header, content: dict[str, Any], size: int) -> None:
        """The code on a rank sent a message (protocol/wire/road.py), which is valid."""

    def part_sent(self, name: str, rank: RankProcess, content: dict[str, Any]) -> None:
        """The part of this name on a rank sent a message, whose content is not checked."""

    def rank_died(self, rank: RankProcess) -> None:
        """A rank's process has ended; its output is in the journal."""


class RankAnswer(dict[str, Any]):
    """The answer of a rank. A field that it lacks is an error with a sentence: nodes may run other code."""

    def __init__(self, rank: int, kind: str, fields: Header) -> None:
        super().__init__(fields)
        self._of = f"The answer of rank {rank} to '{kind}'"

    def __missing__(self, name: str) -> NoReturn:
        hint = "Its node may run another version of jupyter_dist: install the same one there."
        raise JupyterDistError("incompatible", f"{self._of} has no '{name}'.", hint)

    def fields(self) -> dict[str, Any]:
        """Return the fields of this kind of answer alone."""
        return {name: value for name, value in self.items() if name not in ("t", "id", "ok")}


class RankProcess:
    """The state of one rank. Created with the group; `started` attaches a process. Never reused after its death."""

    def __init__(
        self,
        spec: RankSpec,
        journal: JournalWriter,
        listener: RankListener,
        absences: Sequence[list[float]] = (),
        since: float | None = None,
    ) -> None:
        self.spec = spec
        self.rank = spec.rank
        self.absences = list(absences)  # from when to when it had no process, in this generation
        self.since = since  # when a resize added it, with copies of what the others have; None: it was there before
        self.lineage: list[list[float]] = []  # what its predecessors had, so that a save of theirs covers it
        self.covered: list[list[float]] = []  # from when to when it has the values of cells of earlier processes
        self.state: RankState = "starting"
        self.state_at = time.time()
        self.handle: ProcessHandle | None = None
        self.execution_id: str | None = None
        self.exit: models.RankExit | None = None
        self.message: str | None = None
        self.failure: str | None = None  # its own error message, if its start failed
        self.collective_seq: int | None = 0  # number of collectives begun, as of its last reply
        self.cell_memory: CellMemory | None = None  # what its last cell changed, if that is much
        self.known: dict[str, Any] = {}  # values of parts, by part, while it has its place
        self.left: LeftParts | None = None  # what its successor can have of its parts of DTensors
        self.cell_error: str | None = None  # the error that ended its last cell, such as "ValueError: no data"
        self.python_version = ""  # as it reported when it was ready
        self.kinds: dict[str, str] = {}  # what all ranks must use together, by name, as of its last reply
        self.process_group: Literal["ok", "broken", "none", "lost"] = "ok"  # ok, broken or none, as of its last reply
        self.interrupted_at: float | None = None  # monotonic time of the first interrupt of its cell
        self.ignores_interrupt = False  # interrupted seconds ago and still running its cell
        self.asks = False  # its cell asks for input
        self.stopped_at: road.Stop | None = None  # where a debugger has stopped its cell
        self.unreachable: str | None = None  # why its node cannot be reached now
        self.gone = asyncio.Event()
        self.ended_with_it: tuple[tuple[int, str], ...] = ()  # pid and name of the processes it had started
        self.last_words = LastWords()
        self.journal = journal
        self.listener = listener
        self.last_execution_id: str | None = None  # of the cell that output on its file descriptors belongs to
        self._killed_because: str | None = None
        self._left_because: str | None = None  # it was asked to exit
        self._mute: asyncio.TimerHandle | None = None
        self._channel: RankChannel | None = None
        self._silent: tuple[float, SeenOutside] | None = None  # since when it does not answer, and why
        self._questions: Questions[Header] = Questions()
        self._handlers = {
            "phase": self._on_phase,
            "ready": self._on_ready,
            "failed": self._on_failed,
            "from_rank": self._on_from_rank,
            "part": self._on_part,
            "sync": self._on_sync,
            "answer": self._on_answer,
        }

    # -- life ---------------------------------------------------------------------------------------

    @property
    def pid(self) -> int | None:
        """Return the id of the process, on the machine where it runs; None until there is one."""
        return None if self.handle is None else self.handle.pid

    @property
    def local_pid(self) -> int | None:
        """Return the id of the process if it runs on this machine, else None."""
        return self.handle.pid if self.handle is not None and self.handle.node is None else None

    def started(self, handle: ProcessHandle, channel: RankChannel) -> None:
        """Attach the process, and begin to receive its messages."""
        self.handle, self._channel = handle, channel
        channel.listen(self)

    @property
    def was_killed(self) -> bool:
        """Whether the agent meant to kill the process. A rank that lost its channel may be dying of something else."""
        return self._killed_because not in (None, LOST_CHANNEL)

    async def ended(self, ending: Ending, out_of_memory: bool = False) -> None:
        """Handle the end of the process: read its remaining output, then notify the listener."""
        if self._channel is not None:
            await self._channel.read_last()
        if self.state == "dead":
            return
        self.exit = exit_model(ending, out_of_memory, self._killed_because, self.last_words.lines())
        if self._left_because is not None and ending.code == 0:
            self.exit["reason"] = f"ended ({self._left_because})"
        self.unreachable = None  # dead is more than unreachable
        self.release()
        self._questions.fail(lambda: JupyterDistError("rank_dead", say("Rank %1 died before it answered.", self.rank)))
        self._forget_cell()
        text = say("Rank %1 %2.", self.rank, self.exit["reason"])
        self.ended_with_it = ending.killed
        for note in filter(None, (text, describe_companions(ending))):
            self.journal.append("note", note.encode(), rank=self.rank, execution_id=self.execution_id)
        self.set_state("dead", text)
        self.gone.set()
        self.listener.rank_died(self)

    def release(self) -> None:
        """Close the agent's side of the channel; the process is not touched. Idempotent."""
        if self._mute is not None:
            self._mute.cancel()
        if self._channel is not None:
            self._channel.close()

    def leave(self, seconds: float, because: str) -> None:
        """Ask the rank to exit within that time: it flushes its output and runs exit handlers."""
        self._left_because = because
        self.execution_id = None  # its cell has ended for the group; later output is still kept
        self.send({"t": "shutdown", "seconds": seconds})

    def kill(self, because: str) -> None:
        """Kill the process; its shim ends its children. `ended` reports the death with the first reason."""
        if self.handle is not None and self.state != "dead":
            self._killed_because = self._killed_because or because
            self.handle.kill()

    # -- asking -------------------------------------------------------------------------------------

    def send(self, header: Header, payload: bytes = b"") -> None:
        """Send a message that needs no answer; ignored if the rank is dead."""
        self._send(encode_frame(header, payload))

    def _send(self, frame: bytes, *, is_cell: bool = False) -> None:
        if self._channel is not None:
            self._channel.send(frame, is_cell=is_cell)

    def begin(self, execution_id: str, frame: bytes) -> None:
        """Run the rank's part of a cell (for records.execute, which notifies the listener)."""
        RANK_LIFE.check(self.state, "busy")
        self._send(frame, is_cell=True)  # first: it has the cell, or nothing has changed
        self.execution_id = self.last_execution_id = execution_id
        self._forget_cell()
        self._enter("busy")

    def ended_part(self, reply: Header, kinds: dict[str, str], memory: CellMemory | None) -> None:
        """Handle the rank's reply, which is valid (for records.handle, which notifies the listener)."""
        self.execution_id = None
        self._forget_cell()
        self.collective_seq = reply.get("collective_seq")
        self.kinds, self.cell_memory = kinds, memory
        self.process_group = reply.get("process_group", "ok")
        self._enter("idle")

    def interrupt(self, *, frees: bool = False) -> None:
        """Interrupt the rank's cell; `frees`: the cell waits for a call that never completes (watch/freeing.py)."""
        if self.interrupted_at is None:
            self.interrupted_at = time.monotonic()
        self.send({"t": "interrupt", "execution_id": self.execution_id, "frees": frees})

    def interrupt_by_signal(self) -> bool:
        """Signal a rank whose cell was interrupted and whose side thread does not run, as while C code holds the GIL.

        Return whether it was signalled.
        """
        if self.handle is None or self.interrupted_at is None:
            return False
        self.handle.interrupt()
        return True

    def interrupt_callback(self) -> None:
        """Interrupt the code of a widget, which runs while no cell does."""
        self.send({"t": "interrupt", "execution_id": CALLBACK_ID})

    @property
    def interrupted_seconds(self) -> float:
        """Return the seconds since the cell was interrupted; 0 if it was not."""
        return 0.0 if self.interrupted_at is None else time.monotonic() - self.interrupted_at

    async def look(self) -> SeenOutside | None:
        """Look at its process from outside, because it does not answer; None if nothing is known."""
        if self.handle is None or self.state == "dead" or self.unreachable is not None:
            return None
        now = time.monotonic()
        since, before = self._silent or (now, None)
        seen = await self.handle.look(now - since, knows_line=before is not None and bool(before.frames))
        if seen is not None and before is not None and not seen.frames and before.does.startswith(seen.does):
            seen = before
        self._silent = None if seen is None else (since, seen)
        return seen

    async def line_if_running(self) -> list[dict[str, Any]]:
        """Return the frames of its main thread, seen from outside, if that computes now; none otherwise."""
        return [] if self.handle is None or self.state == "dead" else await self.handle.line_if_running()

    @property
    def is_silent(self) -> bool:
        """Whether its process was silent at the last question."""
        return self._silent is not None

    async def request(self, kind: str, timeout_seconds: float, payload: bytes = b"", **fields: Any) -> RankAnswer:
        """Send a request, return the answer. Raises `timed_out`, `rank_dead`, or the error that the rank returned."""
        if self._channel is None or self.state == "dead":
            raise JupyterDistError("rank_dead", say("Rank %1 is not running.", self.rank))
        if self.unreachable is not None:
            raise JupyterDistError("node_unreachable", self.unreachable, say("Wait until the link is back."))
        ask = lambda number: self.send({"t": kind, "id": number, **fields}, payload)  # noqa: E731
        try:
            found = RankAnswer(self.rank, kind, await self._questions.ask(ask, timeout_seconds))
            self._silent = None
            return found
        except asyncio.TimeoutError as err:
            message = say("Rank %1 did not answer '%2' within %3 s.", self.rank, kind, f"{timeout_seconds:g}")
            raise JupyterDistError("timed_out", message) from err

    # -- state --------------------------------------------------------------------------------------

    def set_state(self, state: RankState, message: str | None = None) -> None:
        """Enter a state and notify the listener."""
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

    def awaits_user(self, asks: bool, stopped_at: road.Stop | None = None) -> None:
        """Note whether its cell asks for input, or where a debugger has stopped it, and notify the listener."""
        if (asks, stopped_at) != (self.asks, self.stopped_at):
            self.asks, self.stopped_at = asks, stopped_at
            self.listener.ranks_changed()

    def reached(self, reason: str | None) -> None:
        """Handle a lost link to the rank's node, with the reason; None: the link is back."""
        self.unreachable = reason
        if self.state == "dead" or self.state in STARTING_RANK_STATES:
            return
        if reason is not None:
            self.set_state("unresponsive", reason)
        elif self.state == "unresponsive":
            self.set_state("busy" if self.execution_id is not None else "idle")

    def model(self) -> models.RankModel:
        """Return the Rank of docs/api.md."""
        model: models.RankModel = {
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
            "message_words": words_of(self.message),
            "ignores_interrupt": self.ignores_interrupt,
        }
        if self.asks:
            model["asks"] = True
        if self.stopped_at is not None:
            model["stopped_at"] = {"line": self.stopped_at["line"], "file": self.stopped_at["file"]}
        if self.absences:
            model["absences"] = self.absences
        if self.covered:
            model["covered"] = self.covered
        if self.since is not None:
            model["since"] = self.since
        return model

    def take_place(self, spec: RankSpec) -> None:
        """Have the place of this spec in the group: another number, or a group of another size."""
        self.known = {}
        if spec.rank != self.rank:
            for number in (self.rank, spec.rank):  # in the logs of both
                text = f"Rank {self.rank} became rank {spec.rank}: the group was resized."
                self.journal.append("note", text.encode(), rank=number, execution_id=None)
        self.spec, self.rank = spec, spec.rank

    def encoded_place(self, move: Header) -> bytes:
        """Return the rank's place, and what a resize changes for all ranks, for its process (rank/place.py)."""
        names = ("rank", "local_rank", "world_size", "local_world_size", "node", "shape", "env")
        return json.dumps({**{name: getattr(self.spec, name) for name in names}, **move}).encode()

    def covered_until(self, saved_at: float) -> list[list[float]]:
        """Return the times whose cells are in a save of that time."""
        began = max((end for _, end in self.absences if end <= saved_at), default=0.0)
        earlier = [[start, end] for start, end in self.lineage if end <= began]
        return [*earlier, [began, saved_at]][-MAX_ABSENCES:]

    def successor(self, store_path: str) -> RankProcess:
        """Return a new rank without a process, to take the place of this dead one."""
        absences = [*self.absences, [self.state_at, time.time()]][-MAX_ABSENCES:]
        spec = replace(self.spec, store_path=store_path, replaces=True)
        new = RankProcess(spec, self.journal, self.listener, absences, self.since)
        new.lineage = [*self.lineage, *self.covered][-MAX_ABSENCES:]
        return new

    # -- receiving ------------------------------------------------------------------------------------

    def receive(self, header: Header, payload: bytes) -> None:
        """Handle a message of the rank that becomes no record (for records.receive). Raises if it is invalid."""
        self._handlers[header["t"]](header, payload)

    @property
    def is_mute(self) -> bool:
        """Whether the rank has lost its channel; its process is killed soon."""
        return self._mute is not None

    def lost_channel(self) -> None:
        """Handle a lost channel, which brings no more messages: kill the process, unless it ends by itself soon."""
        self._mute = asyncio.get_running_loop().call_later(MUTE_SECONDS, self.kill, LOST_CHANNEL)

    def _on_phase(self, header: Header, _: bytes) -> None:
        if header["phase"] not in STARTING_RANK_STATES:
            raise ValueError("not a phase of a start")
        self.set_state(header["phase"])

    def _on_ready(self, header: Header, _: bytes) -> None:
        self.python_version = str(header.get("python_version", ""))[:40]
        self.set_state("idle")

    def _on_failed(self, header: Header, payload: bytes) -> None:
        self.last_words.add(payload)
        self.failure = f"{header['ename']}: {header['evalue']}"

    def _on_from_rank(self, header: Header, payload: bytes) -> None:
        content = road.FROM_RANK[header["kind"]].decode(payload)
        if not isinstance(header["number"], int):
            raise ValueError("not a number")
        self.listener.rank_sent(self, header, content, len(payload))

    def _on_part(self, header: Header, payload: bytes) -> None:
        self.received_of_parts({str(header["part"]): json.loads(payload)})

    def received_of_parts(self, contents: Any) -> None:
        """Pass on what parts on the rank have sent, if it is in the right form."""
        for name, content in contents.items() if isinstance(contents, dict) else ():
            if isinstance(content, dict):
                self.listener.part_sent(name, self, content)

    def _forget_cell(self) -> None:
        self.interrupted_at, self.ignores_interrupt = None, False
        self.asks, self.stopped_at = False, None

    def _on_sync(self, header: Header, _: bytes) -> None:
        self.send({"t": "synced", "id": header["id"]})

    def _on_answer(self, header: Header, payload: bytes) -> None:
        answer, _ = unpack(header, payload)
        if answer.get("ok"):
            self._questions.answer(answer["id"], answer)
        else:
            self._questions.refuse(answer["id"], JupyterDistError.from_dict(answer.get("error")))
