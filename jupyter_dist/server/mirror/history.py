"""The past output of a group: records from the agent, or from the journal's files if the agent does not answer."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from jupyter_dist.journal.ends import Ends, Span, first_and_last
from jupyter_dist.journal.reader import rank_page
from jupyter_dist.journal.wide import of_rank
from jupyter_dist.protocol import machine, models
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.server.folding.viewstore import Record
from jupyter_dist.server.script.runs import Run
from jupyter_dist.server.script.translate import is_empty
from jupyter_dist.server.spawner.directories import GroupDirectory
from jupyter_dist.transport.frames import FrameDecoder, Header

from .executions import Executions
from .link import PACKED_PROTOCOL, AgentLink
from .logs import MAX_RING_BYTES, LogReader, LogRing
from .pastruns import Codes, journal_runs, needed_runs, run_of

MAX_VIEW_BYTES = 64 << 20  # records read for a view: far more than it shows
FETCH_SECONDS = 30.0
# Its agent has ended, is stopped, or no longer keeps an old execution.
_UNANSWERED = ("agent_unreachable", "timed_out", "unknown_execution")
MAX_READS_AT_ONCE = 2  # each takes a few times MAX_VIEW_BYTES of memory
MAX_HISTORY_CHARS = 4 << 20


class Printed(NamedTuple):
    """The first records of an execution and, of a huge one, the last, with the number of bytes left out between."""

    first: list[Record]
    last: list[Record]
    unread_bytes: int


class History:
    """Pages of logs, records of executions, and the rings of logs that are followed."""

    def __init__(
        self, directory: GroupDirectory, link: AgentLink, executions: Executions, is_sound: Callable[[Header], bool]
    ) -> None:
        self._directory = directory
        self._link = link
        self._executions = executions
        self._is_sound = is_sound  # other records are skipped
        self._rings: dict[int, LogRing] = {}
        self._filling = asyncio.Lock()
        self._reads = asyncio.Semaphore(MAX_READS_AT_ONCE)

    async def fetch_code(self, execution_id: str) -> None:
        """Load the code of an execution; it stays unknown if it is no longer stored."""
        with contextlib.suppress(JupyterDistError):
            if self._link.answers and self._link.protocol >= PACKED_PROTOCOL:
                _, payload = await self._link.request("code", execution_id=execution_id)
                self._executions.set_code(execution_id, payload.decode("utf-8", "replace"))
            else:
                await self.execution_records(execution_id)

    async def execution_records(self, execution_id: str) -> list[Record]:
        """Return all records of an execution (of a huge one: the first and last)."""
        async with self._reads:
            found = await self._records(execution_id, MAX_VIEW_BYTES)
        records = [*found.first, *found.last]
        for record, payload in records[:1]:
            if record["kind"] == "begin":
                self._executions.set_code(execution_id, payload.decode("utf-8", "replace"))
        return records

    async def printed(self, execution_id: str, max_bytes: int) -> Printed:
        """Return the records of an execution; see Printed."""
        return await self._records(execution_id, max_bytes)

    async def _records(self, execution_id: str, max_bytes: int) -> Printed:
        """Ask the agent for that much; without an answer, read as much of the journal."""
        fields = {"execution_id": execution_id, "max_bytes": max_bytes}
        if (answered := await self._ask("execution_records", **fields)) is not None:
            answer, payload = answered
            # An older agent does not say how many are the first.
            ends = Ends(payload, answer.get("head_records", sys.maxsize), answer["skipped_bytes"])
            return await asyncio.to_thread(self._printed, ends)
        span = self._executions.span(execution_id)
        if span is None:
            return Printed([], [], 0)
        return await asyncio.to_thread(self._read, span, max_bytes)

    async def _ask(self, t: str, **fields: Any) -> tuple[Header, bytes] | None:
        """Return what the agent answers; None where the journal's files have to do. Raises JupyterDistError."""
        if not self._link.answers:
            return None
        try:
            return await self._link.request(t, timeout_seconds=FETCH_SECONDS, **fields)
        except JupyterDistError as err:
            if err.code not in _UNANSWERED:
                raise
            return None

    def _printed(self, ends: Ends) -> Printed:
        found = list(FrameDecoder().feed(ends.data))
        first, last = found[: ends.num_first], found[ends.num_first :]
        return Printed(self._sound(first), self._sound(last), ends.skipped_bytes)

    def _read(self, span: Span, max_bytes: int) -> Printed:
        return self._printed(first_and_last(self._directory.journal_path, span, max_bytes))

    async def runs(self) -> tuple[list[Run], dict[str, str]]:
        """Return all runs of cells that are known, oldest first, and the code of those that a script may need.

        Raises:
            JupyterDistError: `too_large`.
        """
        if not self._link.answers:
            return await asyncio.to_thread(journal_runs, self._directory.journal_path, self._is_sound)
        begun = [model for model in self._executions.all() if model["started_at"] is not None and not model["silent"]]
        begun.sort(key=lambda model: self._executions.begin_seq(model["id"]) or 0)
        runs = [run_of(model) for model in begun]
        codes = Codes()
        for run in needed_runs(runs):
            if not self._executions.has_code(run.execution_id):
                await self.fetch_code(run.execution_id)
            codes.add(run.execution_id, self._executions.code(run.execution_id))
        return runs, codes.found

    async def cells(self, number: int) -> list[machine.HistoryCell]:
        """Return the last cells that ran, oldest first, as many as asked for and as fit into MAX_HISTORY_CHARS."""
        if self._link.answers:
            begun = [m for m in self._executions.all() if m["started_at"] is not None and not m["silent"]]
            begun.sort(key=lambda model: self._executions.begin_seq(model["id"]) or 0)
            runs, codes = [run_of(model) for model in begun], dict[str, str]()
        else:
            runs, codes = await asyncio.to_thread(journal_runs, self._directory.journal_path, self._is_sound)
        found: list[machine.HistoryCell] = []
        left = MAX_HISTORY_CHARS
        for run in reversed(runs):
            code = codes[run.execution_id] if run.execution_id in codes else await self._code(run.execution_id)
            left -= len(code)
            if len(found) == number or left < 0:
                break
            if not is_empty(code):  # calls of clients have a comment as their code
                found.append(_history_cell(run, code))
        return found[::-1]

    async def _code(self, execution_id: str) -> str:
        if self._link.answers and not self._executions.has_code(execution_id):
            await self.fetch_code(execution_id)
        return self._executions.code(execution_id)

    async def log_page(self, rank: int, before: int | None, max_bytes: int) -> models.LogPage:
        """Return the page of docs/api.md."""
        records, more = await self._page(rank, before, max_bytes)
        reader = LogReader(rank, self._executions.counts)
        converted = (reader.convert(header, payload) for header, payload in records)
        return {
            "records": [record for record in converted if record is not None],
            "seq": records[-1][0]["seq"] if records else (before or 1) - 1,
            "first": records[0][0]["seq"] if records else None,
            "more": more,
        }

    async def ring(self, rank: int) -> LogRing:
        """Return the ring of a rank's newest records, which is fed from now on."""
        async with self._filling:
            if rank not in self._rings:
                # It is fed while the page is fetched, so only older records are prepended.
                ring = self._rings[rank] = LogRing(rank, self._executions.counts)
                try:
                    ring.prepend(*await self._page(rank, None, MAX_RING_BYTES))
                except BaseException:
                    del self._rings[rank]
                    raise
            return self._rings[rank]

    def feed(self, rank: int, record: dict[str, Any], payload: bytes) -> bool:
        """Feed a live record; return whether that log is followed."""
        ring = self._rings.get(rank)
        if ring is None:
            return False
        ring.feed(*of_rank(record, payload, rank))
        return True

    async def _page(self, rank: int, before: int | None, max_bytes: int) -> tuple[list[Record], bool]:
        if (answered := await self._ask("page", rank=rank, before=before, max_bytes=max_bytes)) is not None:
            answer, payload = answered
            return self._sound(FrameDecoder().feed(payload)), bool(answer["more"])
        journal = self._directory.journal_path
        records, more = await asyncio.to_thread(rank_page, journal, rank, before, max_bytes)
        return self._sound((record.header, record.payload) for record in records), more

    def _sound(self, records: Iterable[Record]) -> list[Record]:
        return [record for record in records if self._is_sound(record[0])]


def _history_cell(run: Run, code: str) -> machine.HistoryCell:
    return {
        "execution_id": run.execution_id,
        "execution_count": run.count,
        "ranks": run.ranks,
        "notebook": run.notebook,
        "cell_id": run.cell_id,
        "code": code,
    }
