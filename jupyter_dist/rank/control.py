"""The requests of the agent to a rank, answered in the side thread."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import words_of
from jupyter_dist.protocol.wire import road
from jupyter_dist.rank.cells.comms import WidgetComms
from jupyter_dist.rank.cells.interrupt import CurrentExecution, Interrupter
from jupyter_dist.rank.cells.looks import life, whereabouts
from jupyter_dist.rank.cells.runner import Runner
from jupyter_dist.rank.cells.stdin import Stdin
from jupyter_dist.rank.collectives.diagnosis import counters, flight, mainthread, waiting
from jupyter_dist.rank.collectives.diagnosis.records import IncompleteCollective
from jupyter_dist.rank.guard import folders
from jupyter_dist.rank.guard.own import json, os, time, traceback
from jupyter_dist.rank.guard.surroundings import Surroundings
from jupyter_dist.rank.ipython.tracebacks import safe_name
from jupyter_dist.rank.output.outbox import Outbox
from jupyter_dist.rank.output.readable import check_readable
from jupyter_dist.transport.frames import Header, pack

from .collectives.process_group import RevivedGroups
from .memory import MemoryCounters
from .part import LaterRequest, RankParts, RankRequest
from .place import NewPlace

MAX_CELLS = 100


def _in_words(err: BaseException) -> str:
    """Return the message of an exception, whose class may be the user's."""
    try:
        return f"{type(err).__name__}: {err}"[:500]
    except Exception:
        return safe_name(err)


class MainThreadEnded(BaseException):
    """The main thread has ended, as by `pthread_exit`: this rank can run nothing more."""


@dataclass
class Control:
    """The messages of docs/messaging.md, "Agent to rank", one method each."""

    rank: int
    outbox: Outbox
    runner: Runner
    interrupter: Interrupter
    stdin: Stdin
    comms: WidgetComms
    memory: MemoryCounters
    parts: RankParts
    surroundings: Surroundings
    namespace: dict[str, Any]
    # Over the store at this path; in another place after a resize. In the main thread.
    rejoin: Callable[[str, NewPlace], RevivedGroups]
    take_place: Callable[[NewPlace], None]
    replicas: Callable[[dict[str, Any]], dict[str, Any]]  # state/replicas.py
    leave: Callable[[float], None]
    peer_lost: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self._cells: deque[tuple[int, int]] = deque(maxlen=MAX_CELLS)  # when each came, and its number
        self._handlers: dict[str, Callable[[Header, bytes], None]] = {
            "execute": self._on_execute,
            "call": self._on_call,
            "interrupt": self._on_interrupt,
            "to_rank": self._on_to_rank,
            "part": self._on_message,
            "cut_off": self._on_cut_off,
            "sample": self._on_sample,
            "empty_cache": self._on_empty_cache,
            "report_memory": self._on_report_memory,
            "rejoin": self._on_rejoin,
            "take_place": self._on_take_place,
            "replicas": self._on_replicas,
            "peer_lost": self._on_peer_lost,
            "ping": self._on_ping,
            "stack": self._on_stack,
            "synced": self._on_synced,
            "shutdown": self._on_shutdown,
        }
        for name, answer in self.parts.requests.items():
            self._handlers.setdefault(name, partial(self._on_part, answer))
        for name, answer in self.parts.idle_requests.items():
            self._handlers.setdefault(name, partial(self._on_idle_part, answer))
        for name, answer_later in self.parts.later_requests.items():
            self._handlers.setdefault(name, partial(self._on_later_part, answer_later))

    def take_rank(self, rank: int) -> None:
        """Have another number from now on."""
        self.rank = rank

    def handle(self, header: Header, payload: bytes) -> None:
        """Handle a frame."""
        try:
            self._handlers[header["t"]](header, payload)
        except (Exception, SystemExit) as err:  # one bad request must not end the thread; its sender gets the error
            complain()
            self._refuse(header, err)
            self._end_cell_that_did_not_begin(header, err)

    def _end_cell_that_did_not_begin(self, header: Header, err: BaseException) -> None:
        """Reply to a cell that could not be submitted: the agent waits for its end, and later cells wait for it."""
        if header.get("t") in ("execute", "call"):
            words = f"The cell could not begin on this rank: {_in_words(err)}"
            reply = {"t": "reply", "execution_id": header["execution_id"], "status": "error", "seconds": 0.0}
            self.outbox.send({**reply, "ename": safe_name(err), "evalue": words, "process_group": "ok"})

    def _answer(self, header: Header, **fields: Any) -> None:
        """Answer a request, or report why the answer cannot be sent: the agent ends ranks with unreadable answers."""
        try:
            answer, payload = pack({"t": "answer", "id": header["id"], "ok": True}, fields)
            check_readable(payload)
            self.outbox.send(answer, payload)
        except (ValueError, TypeError, RecursionError) as err:  # too large, or no JSON
            self._refuse(header, err)

    def _refuse(self, header: Header, err: BaseException) -> None:
        if "id" in header:
            told = err if isinstance(err, JupyterDistError) else JupyterDistError("internal", _in_words(err))
            self.outbox.send(*pack({"t": "answer", "id": header["id"], "ok": False}, {"error": told.to_dict()}))

    def _on_execute(self, header: Header, payload: bytes) -> None:
        code = payload.decode("utf-8", "replace")
        execution = CurrentExecution(header["execution_id"], header["execution_count"], header["silent"], code)
        self._submit(execution, header)

    def _on_call(self, header: Header, payload: bytes) -> None:
        execution = CurrentExecution(header["execution_id"], header["execution_count"], header["silent"], "")
        execution.call = self.parts.checked(json.loads(payload))
        self._submit(execution, header)

    def _submit(self, execution: CurrentExecution, header: Header) -> None:
        execution.empty_cache, execution.allow_stdin = header["empty_cache"], header["allow_stdin"]
        execution.asked = header.get("parts") or {}
        if not execution.silent:
            self._cells.append((time.time_ns(), execution.execution_count))
        self.runner.submit(execution)

    def _on_to_rank(self, header: Header, payload: bytes) -> None:
        """Pass a message of a client to the code that handles it: one branch per kind of road.TO_RANK."""
        content = road.TO_RANK[header["kind"]].decode(payload)
        if header["kind"] == "input":
            self.stdin.take(header["number"], road.InputAnswer(text=content["text"]))
        else:
            self.comms.take(header["kind"], cast("road.CommContent", content))

    def _on_message(self, header: Header, payload: bytes) -> None:
        self.parts.received(header["part"], json.loads(payload))

    def _on_cut_off(self, header: Header, payload: bytes) -> None:
        self.parts.cut_off(header["part"], payload.decode("utf-8", "replace"))

    def _on_interrupt(self, header: Header, _: bytes) -> None:
        self.interrupter.request(header["execution_id"], header.get("frees", False))
        self.parts.interrupted()

    def _on_sample(self, header: Header, _: bytes) -> None:
        self._answer(header, **self.memory.sample())

    def _on_ping(self, header: Header, _: bytes) -> None:
        self._answer(header)

    def _on_stack(self, header: Header, _: bytes) -> None:
        if mainthread.has_ended():
            raise MainThreadEnded
        unfinished = flight.unfinished()
        outstanding = unfinished[0] if unfinished else None
        awaiting = self.runner.awaiting()
        stack, call = whereabouts.user_stack(self.namespace, awaiting), whereabouts.current_call(self.namespace)
        sleeps, is_idle = life.sleeps(), self.interrupter.current is None
        wait = waiting.current(unfinished, self.runner.awaits_a_thread(), polls=sleeps)
        self._answer(
            header,
            stack=stack,
            call=call,
            call_words=words_of(call),
            collective=outstanding and {name: outstanding[name] for name in ("name", "group", "seq")},
            wait=wait,
            begun=counters.collective_seq(),
            counts=waiting.counts(),
            records=waiting.records() if wait is not None or is_idle else [],
            left_over=self._left_over(outstanding),
            at=whereabouts.position(folders.PACKAGE),
            cpu_seconds=time.process_time(),  # of all threads: data that arrives takes some, a hang takes none
            comes=self.runner.comes_by_itself(is_idle),
            sleeps=sleeps or (bool(awaiting) and wait is None),
        )

    def _on_part(self, request: RankRequest, header: Header, payload: bytes) -> None:
        self._answer(header, **request(header, payload))

    def _on_idle_part(self, request: RankRequest, header: Header, payload: bytes) -> None:
        if self._cannot_look and (at_once := self.parts.busy_requests.get(header["t"])) is not None:
            self._on_part(at_once, header, payload)
            return
        self._in_main_thread(header, lambda: self._answer(header, **request(header, payload)))

    def _on_later_part(self, request: LaterRequest, header: Header, payload: bytes) -> None:
        request(header, payload, lambda fields: self._answer(header, **fields))

    def _left_over(self, outstanding: IncompleteCollective | None) -> dict[str, Any] | None:
        """Return the oldest incomplete collective if an earlier cell has begun it: a device still works on it."""
        cells = list(self._cells)
        if outstanding is None or not cells or outstanding["created_ns"] >= cells[-1][0]:
            return None
        count = next((count for began, count in reversed(cells) if began <= outstanding["created_ns"]), None)
        return {"name": outstanding["name"], "seq": outstanding["seq"], "cell": count}

    def _on_synced(self, header: Header, _: bytes) -> None:
        self.outbox.synced(header["id"])

    def _on_empty_cache(self, header: Header, _: bytes) -> None:
        self._in_main_thread(header, lambda: self._answer(header, freed_bytes=self.memory.release()))

    def _on_report_memory(self, header: Header, _: bytes) -> None:
        runner = self.runner
        runner.when_idle(lambda: runner.call_back(header["execution_id"], runner.shell.report_memory))

    def _on_rejoin(self, header: Header, payload: bytes) -> None:
        """Join another process group; after a resize, in the place that comes with the request."""

        def rejoin() -> None:
            self.interrupter.peer_news.all_live()
            revived = self.rejoin(header["store_path"], json.loads(payload))
            self._answer(header, **revived._asdict())

        self._in_main_thread(header, rejoin)

    def _on_replicas(self, header: Header, payload: bytes) -> None:
        """Compare or copy the variables of this rank, for ranks that a resize adds."""
        self._in_main_thread(header, lambda: self._answer(header, **self.replicas(json.loads(payload))))

    def _on_take_place(self, header: Header, payload: bytes) -> None:
        """Take a place without joining: a resize has failed, and not all ranks of before are there."""

        def take() -> None:
            self.take_place(json.loads(payload))
            self._answer(header)

        self._in_main_thread(header, take)

    @property
    def _cannot_look(self) -> bool:
        """Whether values cannot be looked at: a cell runs, or their memory is elsewhere."""
        return self.interrupter.current is not None or self.memory.is_away

    def _on_peer_lost(self, header: Header, _: bytes) -> None:
        self.interrupter.peer_news.lost(header.get("text") or f"Rank {header['rank']} {header['reason']}")
        self.peer_lost()

    def _in_main_thread(self, header: Header, work: Callable[[], None]) -> None:
        def guarded() -> None:
            try:
                work()
            except (Exception, SystemExit) as err:  # torch or a part may raise anything, and the agent must receive it
                complain()
                self._refuse(header, err)

        self.runner.when_idle(guarded)

    def _on_shutdown(self, header: Header, _: bytes) -> None:
        self.leave(float(header["seconds"]))


def complain() -> None:
    """Write the current exception to the pipe, because sys.stderr may be broken."""
    with contextlib.suppress(OSError):
        os.write(2, traceback.format_exc().encode("utf-8", "backslashreplace"))
