"""The past output of a group, read from the files of its journal: the agent writes them on the server's machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from jupyter_dist.journal.ends import Ends, Span, first_and_last
from jupyter_dist.journal.reader import execution_records, rank_page
from jupyter_dist.journal.records.record import Check
from jupyter_dist.journal.records.wide import of_rank
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models import machine, models
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.server.cells.python import is_empty
from jupyter_dist.server.cells.runs import RecordedRun
from jupyter_dist.server.folding.viewstore import Record
from jupyter_dist.system.limits import within
from jupyter_dist.transport.frames import MAX_PAYLOAD_BYTES, FrameDecoder

from .executions import Executions
from .logs import MAX_RING_BYTES, LogReader, LogRing, concerned_ranks
from .pastruns import Codes, journal_runs, needed_runs, run_of

MAX_VIEW_BYTES = 64 << 20  # records read for a view: far more than it shows
READ_SECONDS = 60.0  # a disk that takes longer for one read is broken
MAX_READS_AT_ONCE = 2  # each takes a few times MAX_VIEW_BYTES of memory
MAX_HISTORY_CHARS = 4 << 20

T = TypeVar("T")


class PrintedRecords(NamedTuple):
    """The first records of an execution and, of a huge one, the last, with the number of bytes left out between."""

    first: list[Record]
    last: list[Record]
    unread_bytes: int


class History:
    """Pages of logs, records of executions, and the rings of logs that are followed.

    The agent writes each record to a file before it sends it, so the files are never behind what this server has.
    Records that did not fit on a full disk are in no file: they are shown when they arrive, and only then.
    """

    def __init__(self, journal: Path, executions: Executions, check: Check) -> None:
        self._journal = journal
        self._executions = executions
        self._check = check  # records that fail are skipped
        self._rings: dict[int, LogRing] = {}
        self._filling = asyncio.Lock()
        self._reads = asyncio.Semaphore(MAX_READS_AT_ONCE)

    async def fetch_code(self, execution_id: str) -> None:
        """Cache the code of an execution; it stays unknown if it is no longer stored."""
        span = self._executions.span(execution_id)
        if span is not None and not self._executions.has_code(execution_id):
            code = await self._read(partial(self._begun_code, span))
            if code is not None:
                self._executions.set_code(execution_id, code)

    async def execution_records(self, execution_id: str) -> list[Record]:
        """Return all records of an execution (of a huge one: the first and last)."""
        async with self._reads:
            found = await self.printed(execution_id, MAX_VIEW_BYTES)
        records = [*found.first, *found.last]
        for record, payload in records[:1]:
            if record["kind"] == "begin":
                self._executions.set_code(execution_id, payload.decode("utf-8", "replace"))
        return records

    async def printed(self, execution_id: str, max_bytes: int) -> PrintedRecords:
        """Return the records of an execution; see PrintedRecords."""
        span = self._executions.span(execution_id)
        if span is None:
            return PrintedRecords([], [], 0)
        return await self._read(partial(self._records, span, max_bytes))

    async def runs(self) -> tuple[list[RecordedRun], dict[str, str]]:
        """Return the runs of cells that were not undone, oldest first, and the code of the last run of each cell.

        Raises:
            JupyterDistError: `too_large`.
        """
        known, found = await self._known_runs()
        runs = [run for run in known if not run.is_undone]
        codes = Codes()
        missing: list[Span] = []
        for run in needed_runs(runs):
            code = found.get(run.execution_id, self._executions.code(run.execution_id))
            codes.add(run.execution_id, code)
            if not code and (span := self._executions.span(run.execution_id)) is not None:
                missing.append(span)
        await self._read(partial(self._add_codes, missing, codes))
        return runs, codes.found

    async def cells(self, number: int) -> list[machine.HistoryCell]:
        """Return up to `number` of the most recent cells, oldest first, limited to MAX_HISTORY_CHARS of code."""
        runs, codes = await self._known_runs()
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

    def log_chunks(self, rank: int, world_size: int) -> Iterator[list[models.LogRecord]]:
        """Yield the full log of a rank, about a megabyte of the journal at a time. Reads files: call it in a thread."""
        return LogReader(rank, self._executions.counts, MAX_PAYLOAD_BYTES).chunks(
            self._journal, world_size, self._check
        )

    async def ring(self, rank: int) -> LogRing:
        """Return the ring of a rank's newest records, which is fed from now on."""
        async with self._filling:
            if rank not in self._rings:
                # The ring is fed while the page is read, so only older records are prepended.
                ring = self._rings[rank] = LogRing(rank, self._executions.counts)
                try:
                    ring.prepend(*await self._page(rank, None, MAX_RING_BYTES))
                except BaseException:
                    del self._rings[rank]
                    raise
            return self._rings[rank]

    def feed(self, record: dict[str, Any], payload: bytes, world_size: int) -> list[int]:
        """Feed a live record to the logs that are followed, of a wide record each rank's part; return their ranks."""
        if not self._rings:  # most records: they are not looked at for each of a thousand ranks
            return []
        concerned = concerned_ranks(record, world_size)
        followed = [rank for rank in self._rings if rank in concerned]
        for rank in followed:
            self._rings[rank].feed(*of_rank(record, payload, rank))
        return followed

    # -- files ------------------------------------------------------------------------------------------------

    async def _read(self, read: Callable[[], T]) -> T:
        """Run a function that reads the journal's files in a thread.

        Raises:
            JupyterDistError: `internal`, `timed_out`: the disk fails, or does not answer.
        """
        try:
            return await within(READ_SECONDS, asyncio.to_thread(read))
        except asyncio.TimeoutError as err:
            message = say("The group's output could not be read from its files within %1 s.", f"{READ_SECONDS:g}")
            raise JupyterDistError("timed_out", message, say("Look at the disk of %1.", self._journal)) from err
        except OSError as err:
            message = say("The group's output cannot be read from its files: %1.", err.strerror or err)
            raise JupyterDistError("internal", message, say("Look at the disk of %1.", self._journal)) from err

    def _records(self, span: Span, max_bytes: int) -> PrintedRecords:
        ends: Ends = first_and_last(self._journal, span, max_bytes, self._check)
        found = list(FrameDecoder().feed(ends.data))
        return PrintedRecords(found[: ends.num_first], found[ends.num_first :], ends.skipped_bytes)

    def _add_codes(self, spans: list[Span], codes: Codes) -> None:
        """Add the code of executions, where it is still stored. Raises JupyterDistError `too_large`."""
        for span in spans:
            codes.add(span.execution_id, self._begun_code(span) or "")

    def _begun_code(self, span: Span) -> str | None:
        """Return the code in an execution's `begin` record; None if the record is no longer stored."""
        seq = span.begin_seq
        with closing(execution_records(self._journal, span.execution_id, seq, seq, self._check)) as records:
            return next((record.payload.decode("utf-8", "replace") for record in records), None)

    async def _known_runs(self) -> tuple[list[RecordedRun], dict[str, str]]:
        """Return the runs of cells, oldest first: of the executions that the agent has reported to this server.

        If the agent had ended before, they are the runs in the journal, with their code.
        """
        known = self._executions.all()
        if not known:
            return await self._read(partial(journal_runs, self._journal, self._check))
        begun = [model for model in known if model["started_at"] is not None and not model["silent"]]
        begun.sort(key=lambda model: self._executions.begin_seq(model["id"]) or 0)
        return [run_of(model) for model in begun], {}

    async def _code(self, execution_id: str) -> str:
        await self.fetch_code(execution_id)
        return self._executions.code(execution_id)

    async def _page(self, rank: int, before: int | None, max_bytes: int) -> tuple[list[Record], bool]:
        records, more = await self._read(partial(rank_page, self._journal, rank, before, max_bytes, self._check))
        return [(record.header, record.payload) for record in records], more


def _history_cell(run: RecordedRun, code: str) -> machine.HistoryCell:
    return {
        "execution_id": run.execution_id,
        "execution_count": run.count,
        "ranks": run.ranks,
        "notebook": run.notebook,
        "cell_id": run.cell_id,
        "code": code,
    }
