"""One execution: its spec, and its status on each rank. Pure."""

from __future__ import annotations

import hashlib
import itertools
import math
import sys
import time
import zlib
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.parts import in_json
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.protocol.states import EXECUTION_LIFE, FINAL_EXECUTION_STATES, ExecutionState, RankStatus, outcome
from jupyter_dist.protocol.wire.specs import ExecutionSpec

from .asking import Asking

if TYPE_CHECKING:
    from jupyter_dist.protocol.models import models
    from jupyter_dist.protocol.models.memory import CellMemory

MAX_HEAD_BYTES = 10_000  # how much of a cell is searched for its first line
MAX_LINE = 200

Status = tuple[RankStatus, "float | None"]  # and the seconds


class AgentExecution:
    """One cell that is queued, running or done on a set of ranks. Thousands are kept: they are small."""

    __slots__ = (
        "_added",
        "_ended_statuses",
        "_memory",
        "_num_running",
        "_seconds",
        "_statuses",
        "asking",
        "began",
        "begin_seq",
        "cannot_end",
        "code",
        "code_checksum",
        "end_seq",
        "ended_at",
        "error",
        "execution_count",
        "fingerprint",
        "line",
        "num_ranks",
        "queued_at",
        "refusal",
        "spec",
        "started_at",
        "state",
        "title",
        "undone_at",
        "waits_for",
        "warning",
    )

    def __init__(self, spec: ExecutionSpec, code: bytes) -> None:
        self.spec = _shared(spec)
        self.code: bytes | None = code  # None: only the journal has it, which saves memory here
        self.line = first_line(code)
        self.code_checksum = f"{zlib.crc32(code):08x}"
        self.fingerprint = hashlib.blake2b(
            code + repr((spec.expression or list(spec.ranks), spec.call)).encode(), digest_size=16
        ).digest()
        self.state: ExecutionState = "queued"
        # While it is not final; afterwards the same, packed: one cell of 64 ranks takes 1 kB then, not 8.
        self._statuses: dict[int, Status] | None = dict.fromkeys(spec.ranks, ("queued", None))
        self._num_running = 0
        self._ended_statuses: tuple[RankStatus, ...] = ()
        self._seconds: array[float] = array("d")  # not a number: unknown
        self._memory: dict[int, CellMemory] | None = None  # of ranks on which it changed much
        self.undone_at: float | None = None  # since then it does not count
        self.refusal = ""  # of a call: why a rank has not carried it out
        self.execution_count: int | None = None
        self.num_ranks: int | None = None  # of the group, when it began
        self.queued_at = time.time()
        self.started_at: float | None = None
        self.began = 0.0  # monotonic
        self.ended_at: float | None = None
        self.begin_seq: int | None = None
        self.end_seq: int | None = None
        self.error: JupyterDistError | None = None
        self.cannot_end = False  # a part has found that its ranks wait for what never comes
        self._added: dict[str, Any] | None = None  # what parts have added to its model
        self.asking: Asking | None = None  # while it runs, and may ask for input
        self.warning: str | None = None  # such as: it calls what all ranks must call, and is for some
        self.title = ""  # what a part calls it in sentences about other cells
        self.waits_for: str | None = None  # while it is queued: the cell that it waits for

    @property
    def id(self) -> str:
        """The execution id."""
        return self.spec.execution_id

    @property
    def is_final(self) -> bool:
        """Whether the execution has ended."""
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
    def running_ranks(self) -> RankSet:
        """The ranks that have not finished their part."""
        return RankSet(rank for rank, (status, _) in self.statuses.items() if status == "running")

    def start(self, execution_count: int) -> None:
        """Mark the execution as running on every rank."""
        self._enter("running")
        self.execution_count = execution_count
        self.asking = Asking() if self.spec.allow_stdin else None
        self.started_at, self.began = time.time(), time.monotonic()
        self._statuses = dict.fromkeys(self.spec.ranks, ("running", None))
        self._num_running = len(self._statuses)

    def move(self, ranks: RankSet) -> None:
        """Be for these ranks instead; it is queued."""
        self.spec = replace(self.spec, ranks=ranks)
        self._statuses = dict.fromkeys(ranks, ("queued", None))

    def extend(self, ranks: Iterable[int]) -> None:
        """Mark the execution as running on more ranks."""
        self.spec = replace(self.spec, ranks=self.spec.ranks | ranks)
        known = self.statuses
        self._statuses = {rank: known.get(rank, ("running", None)) for rank in self.spec.ranks}
        self._num_running = len(self.running_ranks)
        self.cannot_end = False

    def ranks_ended(self, ranks: Sequence[int], status: RankStatus, seconds: Sequence[float | None]) -> bool:
        """Record the status in which these ranks ended; return True if they were the last ones."""
        statuses = self.statuses
        for rank, one in zip(ranks, seconds, strict=True):
            if statuses[rank][0] == "running":
                statuses[rank] = (status, one)
                self._num_running -= 1
            if self.asking is not None:
                self.asking.drop(rank)
        return self._num_running == 0

    def rank_memory(self, rank: int, changed: CellMemory) -> None:
        """Record how much memory the execution added on a rank."""
        if self._memory is None:
            self._memory = {}
        self._memory[rank] = changed

    def add(self, name: str, value: Any) -> None:
        """Have a value in the model, under a name that no other part has; None or an empty one: no longer.

        Raises TypeError or ValueError if it is nothing for JSON: the execution could not be sent with it.
        """
        in_json(value)
        added = (
            {**(self._added or {}), name: value}
            if value
            else {k: v for k, v in (self._added or {}).items() if k != name}
        )
        self._added = added or None

    def added(self, name: str) -> Any:
        """Return the value that a part has in the model, or None."""
        return (self._added or {}).get(name)

    def finish(self, state: ExecutionState | None = None, error: JupyterDistError | None = None) -> None:
        """End the execution with the outcome of its ranks, or with `state` if it was aborted before it ran."""
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
        """Return the ExecutionModel of docs/api.md; the server adds `group`."""
        return {
            **(self._added or {}),
            "id": self.id,
            "ranks": str(self.spec.ranks),
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
            **({"num_ranks": self.num_ranks} if self.num_ranks is not None else {}),
            **({"warning": self.warning} if self.warning else {}),
            **({"undone_at": self.undone_at} if self.undone_at is not None else {}),
            **({"asking": asking} if self.asking is not None and (asking := self.asking.model()) else {}),
            "begin_seq": self.begin_seq,
            "end_seq": self.end_seq,
        }

    def _enter(self, state: ExecutionState) -> None:
        EXECUTION_LIFE.check(self.state, state)
        self.state, self.waits_for, self.cannot_end = state, None, False

    def _folded_statuses(self) -> list[models.RanksStatus]:
        """Return an entry for each status, with the seconds of the slowest rank."""
        by_status: dict[RankStatus, dict[int, float]] = {}
        for rank, (status, seconds) in self.statuses.items():
            by_status.setdefault(status, {})[rank] = seconds or 0.0
        return [
            {
                "ranks": str(RankSet(parts)),
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
