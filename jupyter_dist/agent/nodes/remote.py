"""A node as the head sees it: its ranks' channels and pipes, fed from the link, and the questions to its agent.

To the head, a rank of a node looks like a local one: RankProcess (agent/processes/rank_process.py) gets the same
bytes from its link as from the channel and pipes of a process here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from jupyter_dist.agent.processes import records
from jupyter_dist.agent.processes.death import Ending
from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.agent.processes.records import RankRecord
from jupyter_dist.agent.processes.starters import StartedRank
from jupyter_dist.agent.processes.starting.outside import SeenOutside
from jupyter_dist.agent.processes.starting.process import SETTLE_SECONDS, OnExit, ProcessHandle, ending_of
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import join, say, with_words, words_of
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.protocol.states import NodeState
from jupyter_dist.protocol.wire.specs import RankSpec
from jupyter_dist.transport.frames import MAX_PAYLOAD_BYTES, FrameDecoder, Header, pack, unpack
from jupyter_dist.transport.questions import Questions
from jupyter_dist.transport.tasks import start_task

from .files import FileDoor
from .link.hello import one_line
from .link.sockets import LinkConversation
from .stores import LinkStores

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jupyter_dist.protocol.models import models

MAX_KEPT_BYTES = 32 << 20  # for a node whose link is cut
MAX_PENDING_BYTES = 2 * MAX_PAYLOAD_BYTES  # of messages of ranks that are not complete
CHUNK_BYTES = 256 << 10
FORK_SECONDS = 320.0  # its zygote may have to import first (processes/starters.py)
USAGE_SECONDS = 2.0
MAX_SEEN = 200  # characters
TRIAL_ANSWER_SECONDS = 15.0
GONE = "its node agent ended"
FLAPS, FLAP_SECONDS = 3, 60.0  # a link that is lost so often within this time is not cut, but loses packets

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class NodeProcessHandle(ProcessHandle):
    """A rank's process on a node."""

    of: RemoteNode | None = field(default=None, compare=False, repr=False)
    number: int = 0

    def kill(self) -> None:
        """Have its node agent kill it."""
        if self.of is not None:
            self.of.send({"t": "kill", "p": self.number})

    def interrupt(self) -> None:
        """Have its node agent interrupt its cell by a signal."""
        if self.of is not None:
            self.of.send({"t": "interrupt", "p": self.number})

    async def look(self, seconds: float, knows_line: bool) -> SeenOutside | None:
        """Have its node agent look at the process from outside."""
        return None if self.of is None else await self.of.look(self.number, seconds, knows_line)

    async def line_if_running(self) -> list[dict[str, Any]]:
        """Return nothing: by a link, that would take too long."""
        return []

    async def usage(self) -> tuple[int, float] | None:
        """Return the memory and CPU time that its node agent reads."""
        return None if self.of is None else await self.of.usage(self.number)


class RemoteProcess:
    """The channel to a rank of a node, over the node's link (a RankChannel), and what is known of its process."""

    def __init__(self, number: int, node: RemoteNode) -> None:
        self.number = number
        self.handle: NodeProcessHandle | None = None
        self.ending: Ending | None = None  # before its start was answered
        self._node = node
        self.rank: RankProcess | None = None  # receives the messages
        self._decoder = FrameDecoder()
        self._early: list[bytes | RankRecord] = []  # what has arrived before `listen`
        self._is_over = False

    def listen(self, rank: RankProcess) -> None:
        """Begin to pass on messages and output, including earlier ones."""
        self.rank = rank
        early, self._early = self._early, []
        for arrived in early:
            self.receive(arrived)

    def receive(self, arrived: bytes | RankRecord) -> None:
        """Handle bytes of the rank's channel, or a record of it."""
        if self.rank is None:
            if not self._is_over:
                self._early.append(arrived)
        elif isinstance(arrived, RankRecord):
            records.handle_or_lose([self.rank], arrived)
        elif not arrived:
            self.rank.lost_channel()
        elif not self.rank.is_mute:
            self._decode(self.rank, arrived)

    def _decode(self, rank: RankProcess, data: bytes) -> None:
        try:
            for header, payload in self._decoder.feed(data):
                records.receive(rank, header, payload)
        except Exception:  # whatever another machine sends, only this rank is affected
            log.exception("Rank %d sent an invalid message", rank.rank)
            rank.lost_channel()

    async def read_last(self) -> None:
        """Do nothing: a node agent passes on all that a rank has written before it reports the rank's end."""

    def send(self, frame: bytes, *, is_cell: bool = False) -> None:
        """Send an encoded message to the rank; ignored when it has ended."""
        if not self._is_over:
            self._node.send_to_rank(self.number, frame, is_cell=is_cell)

    def close(self) -> None:
        """Receive no more messages, and close the rank's channel. Idempotent."""
        if not self._is_over:
            self._node.send({"t": "close", "p": self.number})
        self.ended()

    @property
    def pending_bytes(self) -> int:
        """Return how many bytes are kept of the rank's messages: before `listen`, or of an incomplete one."""
        early = sum(one.num_bytes if isinstance(one, RankRecord) else len(one) for one in self._early)
        return early + (self._decoder.pending_bytes if self.rank is not None else 0)

    def refuse(self) -> None:
        """Have the rank ended: its messages are not kept any more."""
        if self.rank is not None:
            self.rank.lost_channel()
        self.ended()

    def ended(self) -> None:
        """Handle the end of the process: later messages to it are dropped. Idempotent."""
        self._early.clear()
        self._is_over = True
        self.rank = None


def lost_link(lost_at: Sequence[float]) -> str:
    """Return a sentence about a link that was lost at these times, the last of them now."""
    text = say("The link is lost; its ranks may still run.")
    if len(lost_at) < FLAPS or lost_at[-1] - lost_at[-FLAPS] > FLAP_SECONDS:
        return text
    flaps = say(
        "It was lost %1 times within %2 s. Where only large packets are lost, the MTU of an interface is larger than"
        " that of the network: compare 'ip link' with 'ping -M do -s 1472' to the head.",
        FLAPS,
        f"{FLAP_SECONDS:g}",
    )
    return join(text, flaps)


class NodeDoors(NamedTuple):
    """Where the messages of nodes go that are not about their ranks."""

    stores: LinkStores
    files: FileDoor
    arrived: records.ArrivedRecords  # of all nodes
    on_ending: Callable[[], object]  # a node was asked to end, and keeps running for a grace


class _ToRanks(NamedTuple):
    """A message to processes of ranks."""

    numbers: list[int]
    frame: bytes
    is_cell: bool


class RemoteNode:
    """One node of a group, from before its agent joins."""

    def __init__(self, node: int, ranks: range, on_exit: OnExit, doors: NodeDoors) -> None:
        self.node = node
        self.ranks = ranks
        self.room = len(ranks)  # the most ranks that it may have, after a resize
        self.state: NodeState = "waiting"
        self.lost_at: list[float] = []  # when its link was lost, the last times
        self.message: str | None = None
        self.session = ""  # of its agent; another agent may take its place after that has ended
        self.hello: Header = {}  # its agent's description of its machine
        self.identity = b""
        self.received_at = 0.0  # monotonic
        self._on_exit = on_exit
        self._doors = doors
        self._begin()

    def _begin(self) -> None:
        self.conversation = LinkConversation(MAX_KEPT_BYTES)
        self._processes: dict[int, RemoteProcess] = {}
        self._by_rank: dict[int, RemoteProcess] = {}  # the process of each rank that has one
        self._questions: Questions[tuple[Header, bytes]] = Questions()
        self._exits: set[asyncio.Task[None]] = set()
        self._pending: dict[int, int] = {}  # bytes of messages that are not complete, of each process with any
        self._to_ranks: _ToRanks | None = None  # what is sent to ranks in this turn
        self.warm: asyncio.Future[Header] = asyncio.get_running_loop().create_future()

    @property
    def host(self) -> str:
        """Return the name of its machine."""
        return str(self.hello.get("host") or "")

    @property
    def label(self) -> str:
        """Return how sentences call it."""
        return say("node %1 (%2)", self.node, self.host) if self.host else say("node %1", self.node)

    def model(self) -> models.NodeModel:
        """Return the Node of docs/api.md."""
        return {
            "node": self.node,
            "host": self.host or None,
            "state": self.state,
            "message": self.message,
            "message_words": words_of(self.message),
            "ranks": str(RankSet(self.ranks)),
            "address": self.hello.get("address"),
            "interface": self.hello.get("interface"),
            "devices": self.hello.get("devices") or [],
            "memory_bytes": self.hello.get("memory"),
        }

    def take_place(self, node: int, ranks: range) -> None:
        """Have another number, and these ranks; the ranks have their new numbers already."""
        self.node, self.ranks = node, ranks
        processes = [process for process in self._processes.values() if process.rank is not None]
        self._by_rank = {process.rank.rank: process for process in processes if process.rank is not None}
        if self.state in ("joined", "unreachable"):
            numbers = [[process.number, process.rank.rank] for process in processes if process.rank is not None]
            self.send({"t": "ranks", "numbers": numbers})

    # -- the link ---------------------------------------------------------------------------------------------

    def joined(self, session: str, hello: Header) -> None:
        """Take in a new agent."""
        if self.session:
            self._begin()
        self.session, self.hello = session, hello
        self.state, self.message = "joined", None

    def receive(self, header: Header, payload: bytes) -> None:
        """Handle a message of the node's agent, each once and in order."""
        self.received_at = time.monotonic()
        if self.conversation.take(header, payload):
            self._take(*unpack(header, payload))

    def send_to_rank(self, number: int, frame: bytes, *, is_cell: bool = False) -> None:
        """Send a message to a rank; ranks that get the same one in this turn of the event loop share it on the link."""
        if self._to_ranks is not None and self._to_ranks.frame is frame:
            self._to_ranks.numbers.append(number)
            return
        self._flush()
        self._to_ranks = _ToRanks([number], frame, is_cell)
        asyncio.get_running_loop().call_soon(self._flush)

    def send(self, header: Header, payload: bytes = b"") -> None:
        """Send a message to the node's agent, after the messages to its ranks."""
        self._flush()
        self.conversation.send(header, payload)

    def _flush(self) -> None:
        """Send the messages to ranks, in parts that the link takes."""
        if self._to_ranks is not None:
            (numbers, frame, is_cell), self._to_ranks = self._to_ranks, None
            header = {"t": "in", "ps": numbers, **({"cell": True} if is_cell else {})}
            for start in range(0, len(frame), CHUNK_BYTES):
                self.conversation.send(header, frame[start : start + CHUNK_BYTES])

    def _take(self, header: Header, payload: bytes) -> None:
        process = self._processes.get(int(header.get("p") or 0))
        if header["t"] == "records":
            self._take_records(header["records"], payload)
        elif header["t"] != "channel":
            self._handle(header, payload, process)
        elif process is not None:
            process.receive(payload)
            self._check_pending(process)

    def _take_records(self, headers: list[Header], payloads: bytes) -> None:
        start = 0
        for header in headers:
            end = start + header["bytes"]
            if not start <= end <= len(payloads):
                raise ValueError("records that do not fit their payloads")
            payload, start = payloads[start:end], end
            try:
                self._take_record(*records.from_node(header, payload))
            except Exception:  # those after it are of other ranks, or other cells
                log.exception("Node %d sent an invalid record", self.node)

    def _take_record(self, numbers: tuple[int, ...], record: RankRecord) -> None:
        if not set(numbers).issubset(self.ranks):
            raise ValueError("a record of ranks of another node")
        processes = [self._by_rank.get(number) for number in numbers]
        ranks = [process.rank for process in processes if process is not None and process.rank is not None]
        if len(ranks) == len(numbers):
            self._doors.arrived.add(self.node, ranks, record)
            return
        self._doors.arrived.handle()
        for index, process in enumerate(processes):
            if process is not None:  # the others have ended
                process.receive(record.of([index]))
                self._check_pending(process)

    def _check_pending(self, process: RemoteProcess) -> None:
        """Let go of a rank if the messages of this node that are not complete take too much memory together."""
        self._pending.pop(process.number, None)
        if num_bytes := process.pending_bytes:
            self._pending[process.number] = num_bytes
            if sum(self._pending.values()) > MAX_PENDING_BYTES:
                log.error("Node %d has sent more than %d bytes of unfinished messages", self.node, MAX_PENDING_BYTES)
                self._pending.pop(process.number)
                process.refuse()

    def _handle(self, header: Header, payload: bytes, process: RemoteProcess | None) -> None:
        if header["t"] == "answer":
            self._answered(header, payload)
        elif header["t"] == "exited" and process is not None:
            self._exited(process, _sound(ending_of(header)))
        elif header["t"] == "store":
            self._asked(int(header["c"]), header["q"], payload)
        elif header["t"] == "store_left":
            self._doors.stores.forget((self.session, int(header["c"])))
        elif header["t"] == "warm" and not self.warm.done():
            self.warm.set_result(header)
        elif header["t"] == "ending":
            self._doors.on_ending()

    def _asked(self, connection: int, question: Header, payload: bytes) -> None:
        """Answer the question of a rank, always: the rank waits."""

        def answer(header: Header, value: bytes) -> None:
            self.send({"t": "stored", "c": connection, "a": header}, value)

        try:
            if question.get("do") in ("fetch", "deliver"):
                self._doors.files.ask(self.ranks, question, payload, answer)
            else:
                self._doors.stores.ask((self.session, connection), question, payload, answer)
        except Exception as err:  # it comes from another machine, and may be anything
            answer({"ok": False, "error": f"The question cannot be answered: {err!r:.200}"}, b"")

    def _answered(self, header: Header, payload: bytes) -> None:
        if header.get("ok"):
            self._questions.answer(header["id"], (header, payload))
        else:
            self._questions.refuse(header["id"], JupyterDistError.from_dict(header.get("error")))

    def ended(self, reason: str) -> None:
        """Handle the end of its agent, and so of its ranks."""
        if self.state == "gone":
            return
        self.state, self.message = "gone", reason
        self.conversation.disconnected()
        error = JupyterDistError("start_failed", say("The agent of %1 is gone: %2.", self.label, reason))
        if not self.warm.done():
            self.warm.set_result({"t": "warm", "error": error.to_dict()})
        self._questions.fail(lambda: error)
        for process in list(self._processes.values()):
            self._exited(process, Ending(None, 9, because=reason))

    # -- its ranks --------------------------------------------------------------------------------------------

    async def start(self, number: int, spec: RankSpec) -> StartedRank:
        """Start a rank there.

        Raises:
            JupyterDistError: `start_failed`, naming the node.
        """
        process = self._processes[number] = self._by_rank[spec.rank] = RemoteProcess(number, self)
        try:
            header, _ = await self._ask("start", FORK_SECONDS, p=number, spec=spec.to_dict())
        except JupyterDistError as err:
            self._forget(process)
            message = say("Rank %1 on %2: %3", spec.rank, self.label, err.message)
            raise JupyterDistError("start_failed", message, err.hint) from err
        except asyncio.CancelledError:  # the start is given up: the rank must see that its channel is closed
            process.close()
            raise
        process.handle = NodeProcessHandle(header["pid"], header["started"], self.node, self, number)
        if process.ending is not None:
            self._report_exit(process.handle, process.ending)
        return StartedRank(process.handle, process)

    async def usage(self, number: int) -> tuple[int, float] | None:
        """Return memory and CPU time of a rank's process."""
        with contextlib.suppress(JupyterDistError):
            header, _ = await self._ask("usage", USAGE_SECONDS, p=number)
            return (int(header["memory"]), float(header["cpu"])) if header.get("memory") is not None else None
        return None

    async def look(self, number: int, seconds: float, knows_line: bool) -> SeenOutside | None:
        """Look at a rank's silent process from outside; None if nothing is known."""
        with contextlib.suppress(JupyterDistError):  # an agent of an earlier version does not know the question
            header, _ = await self._ask("look", USAGE_SECONDS, p=number, silent_seconds=seconds, knows_line=knows_line)
            frames = header.get("frames")
            is_known = isinstance(header.get("does"), str) and isinstance(frames, list)
            if is_known:
                return SeenOutside(with_words(header["does"][:MAX_SEEN], header.get("does_words")), header["frames"])
        return None

    async def settle(self) -> None:
        """Wait for the processes that its ended ranks had started."""
        with contextlib.suppress(JupyterDistError):
            await self._ask("settle", SETTLE_SECONDS + 5.0)

    async def free_port(self) -> int:
        """Return a port that is free there."""
        header, _ = await self._ask("port", FORK_SECONDS)
        return int(header["port"])

    async def ask_trial(self, kind: str, **fields: Any) -> Header:
        """Ask its agent for a part of a trial of connections between nodes; an empty answer if it does not answer."""
        with contextlib.suppress(JupyterDistError):
            return (await self._ask(kind, TRIAL_ANSWER_SECONDS, **fields))[0]
        return {}

    async def leave(self, seconds: float) -> None:
        """Have its agent end, after its ranks."""
        if self.state == "joined":
            with contextlib.suppress(JupyterDistError):
                await self._ask("bye", seconds)

    async def _ask(self, kind: str, seconds: float, **fields: Any) -> tuple[Header, bytes]:
        if self.state == "gone":
            raise JupyterDistError("start_failed", say("The agent of %1 is gone: %2.", self.label, self.message))

        def send(number: int) -> None:
            self.send(*pack({"t": kind, "id": number}, fields))

        try:
            return await self._questions.ask(send, seconds)
        except asyncio.TimeoutError as err:
            message = say("The agent of %1 did not answer within %2 s.", self.label, f"{seconds:g}")
            raise JupyterDistError("start_failed", message, say("Look at the link between the machines.")) from err

    def _forget(self, process: RemoteProcess) -> None:
        self._processes.pop(process.number, None)
        self._pending.pop(process.number, None)
        self._by_rank = {rank: other for rank, other in self._by_rank.items() if other is not process}
        process.ended()

    def _exited(self, process: RemoteProcess, ending: Ending) -> None:
        self._forget(process)
        if process.handle is None:
            process.ending = ending
        else:
            self._report_exit(process.handle, ending)

    def _report_exit(self, handle: NodeProcessHandle, ending: Ending) -> None:
        """Report the end of a process to its waiters, after its start was reported."""
        task = start_task(self._on_exit(handle, ending), f"exit of {handle.pid} on node {self.node}")
        self._exits.add(task)
        task.add_done_callback(self._exits.discard)


def _sound(ending: Ending) -> Ending:
    """Return the Ending of a rank from another machine's message, if it can be shown. Raises ValueError."""
    numbers = (ending.code, ending.signal, ending.peak_bytes)
    if not all(number is None or type(number) is int for number in numbers):
        raise ValueError(f"no end of a process: {numbers!r:.80}")
    return replace(ending, because=ending.because and one_line(ending.because))
