"""Executions and their queue. Pure, so that the rules for order and failure can be tested without processes."""

from __future__ import annotations

import hashlib
import itertools
import math
import sys
import time
import zlib
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.ranks import format_ranks
from jupyter_dist.protocol.specs import ExecutionSpec
from jupyter_dist.protocol.states import EXECUTION_LIFE, FINAL_EXECUTION_STATES, ExecutionState, RankStatus, outcome

from .asking import Asking

if TYPE_CHECKING:
    from jupyter_dist.protocol import models
    from jupyter_dist.protocol.memory import CellMemory

MAX_HEAD_BYTES = 10_000  # how much of a cell is searched for its first line
MAX_LINE = 200

Status = tuple[RankStatus, "float | None"]  # and the seconds


class Execution:
    """One cell that is queued, running or done on a set of ranks. Thousands are kept: they are small."""

    __slots__ = (
        "_ended_statuses",
        "_memory",
        "_num_running",
        "_seconds",
        "_statuses",
        "asking",
        "began",
        "begin_seq",
        "code",
        "code_checksum",
        "end_seq",
        "ended_at",
        "error",
        "execution_count",
        "fingerprint",
        "line",
        "queued_at",
        "spec",
        "started_at",
        "state",
        "verdict",
        "waits_for",
        "warning",
    )

    def __init__(self, spec: ExecutionSpec, code: bytes) -> None:
        self.spec = _shared(spec)
        self.code: bytes | None = code  # None: only the journal has it, which saves memory here
        self.line = first_line(code)
        self.code_checksum = f"{zlib.crc32(code):08x}"
        self.fingerprint = hashlib.blake2b(code + repr((list(spec.ranks), spec.call)).encode(), digest_size=16).digest()
        self.state: ExecutionState = "queued"
        # While it is not final; afterwards the same, packed: one cell of 64 ranks takes 1 kB then, not 8.
        self._statuses: dict[int, Status] | None = dict.fromkeys(spec.ranks, ("queued", None))
        self._num_running = 0
        self._ended_statuses: tuple[RankStatus, ...] = ()
        self._seconds: array[float] = array("d")  # not a number: unknown
        self._memory: dict[int, CellMemory] | None = None  # of ranks on which it changed much
        self.execution_count: int | None = None
        self.queued_at = time.time()
        self.started_at: float | None = None
        self.began = 0.0  # monotonic
        self.ended_at: float | None = None
        self.begin_seq: int | None = None
        self.end_seq: int | None = None
        self.error: JupyterDistError | None = None
        self.verdict: models.Verdict | None = None  # while it runs, and ranks wait for others
        self.asking: Asking | None = None  # while it runs, and may ask for input
        self.warning: str | None = None  # it calls what all ranks must call, and is for some
        self.waits_for: str | None = None  # while it is queued: the cell that it waits for

    @property
    def id(self) -> str:
        """The execution id."""
        return self.spec.execution_id

    @property
    def is_final(self) -> bool:
        """Whether it has ended."""
        return self.state in FINAL_EXECUTION_STATES

    @property
    def stops_others(self) -> bool:
        """Whether the cells queued after it must not run, because of how it ended."""
        return self.state != "ok" and self.spec.stop_on_error

    @property
    def statuses(self) -> dict[int, Status]:
        """Return the status of each rank, and the seconds that its part took if it has ended there."""
        if self._statuses is not None:
            return self._statuses
        alike = len(self._ended_statuses) == 1
        ended = itertools.repeat(self._ended_statuses[0]) if alike else iter(self._ended_statuses)
        return {
            rank: (status, None if math.isnan(seconds) else seconds)
            for rank, status, seconds in zip(self.spec.ranks, ended, self._seconds, strict=False)
        }

    @property
    def num_running(self) -> int:
        """How many ranks have not finished their part, of an execution that has begun."""
        return self._num_running

    @property
    def running_ranks(self) -> list[int]:
        """The ranks that have not finished their part."""
        return [rank for rank, (status, _) in self.statuses.items() if status == "running"]

    def claims(self, later: Execution) -> set[int]:
        """The ranks that a later execution cannot have yet.

        A rank that finished its part is free for other notebooks. Cells of one notebook wait for each other's outcome.
        """
        same_notebook = self.spec.notebook is not None and self.spec.notebook == later.spec.notebook
        if self.state != "running" or same_notebook or later.spec.after == self.id:
            return set(self.spec.ranks)
        return set(self.running_ranks)

    def start(self, execution_count: int) -> None:
        """Mark it as running on every rank."""
        self._enter("running")
        self.execution_count = execution_count
        self.asking = Asking() if self.spec.allow_stdin else None
        self.started_at, self.began = time.time(), time.monotonic()
        self._statuses = dict.fromkeys(self.spec.ranks, ("running", None))
        self._num_running = len(self._statuses)

    def extend(self, ranks: Iterable[int]) -> None:
        """Mark it as running on more ranks."""
        self.spec = replace(self.spec, ranks=sorted({*self.spec.ranks, *ranks}))
        known = self.statuses
        self._statuses = {rank: known.get(rank, ("running", None)) for rank in self.spec.ranks}
        self._num_running = len(self.running_ranks)
        self.verdict = None

    def ranks_ended(self, ranks: Sequence[int], status: RankStatus, seconds: Sequence[float | None]) -> bool:
        """Record how it ended on ranks; return True for the last ones."""
        statuses = self.statuses
        for rank, one in zip(ranks, seconds, strict=True):
            if statuses[rank][0] == "running":
                statuses[rank] = (status, one)
                self._num_running -= 1
            if self.asking is not None:
                self.asking.drop(rank)
        return self._num_running == 0

    def rank_memory(self, rank: int, changed: CellMemory) -> None:
        """Record what it did to the memory of a rank."""
        if self._memory is None:
            self._memory = {}
        self._memory[rank] = changed

    def finish(self, state: ExecutionState | None = None, error: JupyterDistError | None = None) -> None:
        """End it with the outcome of its ranks, or with `state` if it was aborted before it ran."""
        statuses = list(self.statuses.values())
        if state is not None:
            statuses = [
                (state, seconds) if status in ("queued", "running") else (status, seconds)
                for status, seconds in statuses
            ]
        self._enter(state or outcome([status for status, _ in statuses]))
        self._pack(statuses)
        self.asking = None
        self.error = error or self.error
        self.ended_at = time.time()

    def _pack(self, statuses: list[Status]) -> None:
        kinds = {status for status, _ in statuses}
        alike = len(kinds) == 1
        self._ended_statuses = (kinds.pop(),) if alike else tuple(status for status, _ in statuses)
        self._seconds = array("d", (math.nan if seconds is None else seconds for _, seconds in statuses))
        self._statuses = None

    def model(self) -> dict[str, Any]:
        """Return the Execution of docs/api.md; the server adds `group`."""
        return {
            "id": self.id,
            "ranks": format_ranks(self.spec.ranks),
            "state": self.state,
            "line": self.line,
            "code_checksum": self.code_checksum,
            "cell_id": self.spec.cell_id,
            "notebook": self.spec.notebook,
            "owner": self.spec.owner,
            "execution_count": self.execution_count,
            "queued_at": self.queued_at,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
            "statuses": self._folded_statuses(),
            "rank_seconds": {str(rank): seconds for rank, (_, seconds) in self.statuses.items() if seconds is not None},
            **({"rank_memory": {str(rank): one for rank, one in self._memory.items()}} if self._memory else {}),
            "silent": self.spec.silent,
            "error": self.error.to_dict() if self.error else None,
            "waits_for": self.waits_for,
            **({"warning": self.warning} if self.warning else {}),
            **({"verdict": self.verdict} if self.verdict else {}),
            **({"asking": asking} if self.asking is not None and (asking := self.asking.model()) else {}),
            "begin_seq": self.begin_seq,
            "end_seq": self.end_seq,
        }

    def _enter(self, state: ExecutionState) -> None:
        EXECUTION_LIFE.check(self.state, state)
        self.state, self.waits_for, self.verdict = state, None, None

    def _folded_statuses(self) -> list[models.RanksStatus]:
        """Return one entry per status, with the seconds of the slowest rank."""
        by_status: dict[RankStatus, dict[int, float]] = {}
        for rank, (status, seconds) in self.statuses.items():
            by_status.setdefault(status, {})[rank] = seconds or 0.0
        return [
            {
                "ranks": format_ranks(parts),
                "status": status,
                "seconds": max(parts.values()) if status in FINAL_EXECUTION_STATES else None,
            }
            for status, parts in by_status.items()
        ]


def _shared(spec: ExecutionSpec) -> ExecutionSpec:
    """Return the spec with the strings that the cells of a notebook have in common only once in memory."""

    def intern(text: str | None) -> str | None:
        return text and sys.intern(text)

    return replace(spec, cell_id=intern(spec.cell_id), notebook=intern(spec.notebook), owner=intern(spec.owner))


def first_line(code: bytes) -> str:
    """Return the first line that is not empty: what a cell is listed by."""
    lines = (line.strip() for line in code[:MAX_HEAD_BYTES].decode("utf-8", "replace").splitlines())
    return next((line[:MAX_LINE] for line in lines if line), "")


class ExecutionQueue:
    """First come, first served on every rank; cells for disjoint rank sets run at the same time."""

    MAX_KEPT = 2000

    def __init__(self) -> None:
        self._executions: dict[str, Execution] = {}  # oldest first
        self._unfinished: dict[str, Execution] = {}  # those that were not final at the last check

    def __iter__(self) -> Iterator[Execution]:
        return iter(list(self._executions.values()))

    def after(self, execution_id: str | None) -> list[Execution]:
        """Return those queued after the given one; all, if that one is no longer kept."""
        ids = list(self._executions)
        start = ids.index(execution_id) + 1 if execution_id in self._executions else 0
        return [self._executions[later] for later in ids[start:]]

    def add(self, execution: Execution) -> None:
        """Queue it. Of those that have ended, the oldest are dropped beyond MAX_KEPT; their journal is kept."""
        self._drop_finished()
        self._executions[execution.id] = self._unfinished[execution.id] = execution
        surplus = max(0, len(self._executions) - len(self._unfinished) - self.MAX_KEPT)
        finished = (old.id for old in self._executions.values() if old.is_final)
        for old_id in list(islice(finished, surplus)):
            del self._executions[old_id]

    def get(self, execution_id: str) -> Execution:
        """Return an execution. Raises JupyterDistError `unknown_execution`."""
        if execution_id not in self._executions:
            raise JupyterDistError(
                "unknown_execution",
                f"There is no execution '{execution_id[:80]}' in this group.",
                "Only the last 2000 are kept; its output is still in the rank's log.",
            )
        return self._executions[execution_id]

    def find(self, execution_id: str | None) -> Execution | None:
        """Return an execution, or None."""
        return self._executions.get(execution_id or "")

    def in_state(self, *states: ExecutionState) -> list[Execution]:
        """Return the executions in one of these (non-final) states, oldest first."""
        self._drop_finished()
        return [execution for execution in self._unfinished.values() if execution.state in states]

    def startable(self) -> list[Execution]:
        """Return the queued executions that share no rank with an earlier one."""
        running = self.in_state("running")
        claimed: set[int] = set()  # by those that are queued
        found = []
        for execution in self.in_state("queued"):
            ranks = set(execution.spec.ranks)
            if claimed.isdisjoint(ranks) and all(earlier.claims(execution).isdisjoint(ranks) for earlier in running):
                found.append(execution)
            claimed |= ranks
        return found

    def name_waits(self, is_held: bool = False) -> list[Execution]:
        """Note what the first queued execution of each notebook waits for: a cell that runs, or one queued before it.

        Returns those for which that changed. `is_held`: the process group has to be re-created when no cell runs.
        """
        running, before = self.in_state("running"), list[Execution]()
        seen: set[str | None] = set()
        changed = []
        for execution in self.in_state("queued"):
            text = None
            if execution.spec.notebook not in seen:
                text = _held_by(running) if is_held and running else _wait_of(execution, [*running, *before])
            seen.add(execution.spec.notebook)
            before.append(execution)
            if text != execution.waits_for:
                execution.waits_for = text
                changed.append(execution)
        return changed

    def queued_behind(self, failed: Execution) -> list[Execution]:
        """Return the executions that a failure aborts: those queued after it in its notebook, or `after` it."""
        return [
            later
            for later in self.after(failed.id)
            if later.state == "queued"
            and (later.spec.after == failed.id or None is not later.spec.notebook == failed.spec.notebook)
        ]

    def _drop_finished(self) -> None:
        for ended in [key for key, execution in self._unfinished.items() if execution.is_final]:
            del self._unfinished[ended]


def _wait_of(execution: Execution, earlier_ones: list[Execution]) -> str | None:
    """Return a sentence about the first of these that keeps it waiting; None if none does."""
    for earlier in earlier_ones:
        if not earlier.claims(execution).isdisjoint(execution.spec.ranks):
            is_same = None is not earlier.spec.notebook == execution.spec.notebook
            # A rank that has finished its part is free for others: a cell of the same notebook waits for the rest.
            ranks = earlier.running_ranks if is_same else earlier.claims(execution) & set(execution.spec.ranks)
            return f"Waits for {_ranks(ranks)}: {_name(earlier, is_same)}"
    return None


def _held_by(running: list[Execution]) -> str:
    """Return a sentence about what must end before the process group can be re-created."""
    busy = "; ".join(f"{_name(one, is_same=False)} on {_ranks(one.running_ranks)}" for one in running[:3])
    return f"Waits until the process group is re-created, when this has ended: {busy}"


def _ranks(ranks: Collection[int]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {format_ranks(ranks)}"


def _name(execution: Execution, is_same: bool) -> str:
    """Return how users call an execution of the same, or of another notebook."""
    kind = "a request" if execution.spec.silent else "a queued cell"
    cell = f"cell [{execution.execution_count}]" if execution.execution_count and not execution.spec.silent else kind
    of = "this notebook" if is_same else execution.spec.notebook
    return f"{cell} of {of}" if of else cell
