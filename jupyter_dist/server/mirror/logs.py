"""A rank's log as clients read it: converts journal records to LogRecords, and caches the newest ones."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, cast

from jupyter_dist.journal.reader import JournalCursor
from jupyter_dist.journal.records.record import Check
from jupyter_dist.journal.records.wide import of_rank, ranks_of
from jupyter_dist.protocol.models.models import LogRecord
from jupyter_dist.server.folding.content import MAX_BYTES, DamagedContentError, read_content
from jupyter_dist.server.folding.feeding.rankfeed import Decoders
from jupyter_dist.server.folding.views import rich_output

MAX_RING_BYTES = 256 * 1024
MAX_DROPPED_KNOWN = 10_000


class LogReader:
    """Turns the journal records of one rank, in order, into LogRecords."""

    def __init__(self, rank: int, counts: dict[str, int | None], max_bytes: int = MAX_BYTES) -> None:
        self._rank = rank
        self._counts = counts  # execution_count by execution id, owned by the group
        self._max_bytes = max_bytes  # limit on an output
        self._decoders = Decoders()

    def chunks(self, journal: Path, world_size: int, check: Check) -> Iterator[list[LogRecord]]:
        """Yield the full log, about a megabyte of the journal at a time. Reads files: call it in a thread."""
        with contextlib.closing(JournalCursor(journal, check=check)) as cursor:
            while records := cursor.read():
                mine = (r for r in records if self._rank in concerned_ranks(r.header, world_size))
                converted = (self.convert(*of_rank(record.header, record.payload, self._rank)) for record in mine)
                yield [record for record in converted if record is not None]

    def convert(self, record: dict[str, Any], payload: bytes) -> LogRecord | None:
        """Return the LogRecord, or None if there is nothing to show."""
        return cast("LogRecord | None", self._convert(record, payload))

    def _convert(self, record: dict[str, Any], payload: bytes) -> dict[str, Any] | None:
        kind = record["kind"]
        execution_id = record.get("execution_id")
        common = {
            "seq": record["seq"],
            "at": record["at"],
            "rank": self._rank,
            "execution_id": execution_id,
            "execution_count": self._counts.get(execution_id) if execution_id else None,
        }
        if kind == "stream":
            text = self._decoders.decode(record["name"], payload)
            return {**common, "kind": kind, "name": record["name"], "text": text}
        if kind == "begin":
            cell = {name: record.get(name) for name in ("execution_count", "notebook", "cell_id")}
            return {**common, **cell, "kind": kind, "code": payload.decode("utf-8", "replace")}
        if kind == "rank_end":
            return {**common, "kind": "end", "status": record["status"], "seconds": record.get("seconds")}
        if kind == "note":
            return {**common, "kind": kind, "text": payload.decode("utf-8", "replace")}
        if kind in ("display_data", "update_display_data", "execute_result", "error"):
            output_type = "display_data" if kind == "update_display_data" else kind
            with contextlib.suppress(DamagedContentError):
                content = read_content(payload, self._max_bytes)
                return {**common, "kind": "output", "output": rich_output(output_type, content)}
        return None


class LogRing:
    """The newest LogRecords of one rank, for its followers."""

    def __init__(self, rank: int, counts: dict[str, int | None]) -> None:
        self._rank = rank
        self._counts = counts
        self._reader = LogReader(rank, counts)
        self._records: deque[tuple[LogRecord, int]] = deque()
        self._dropped: deque[int] = deque(maxlen=MAX_DROPPED_KNOWN)
        self._bytes = 0
        self._floor = 0  # records before this one were never cached

    def prepend(self, records: Iterable[tuple[dict[str, Any], bytes]], more: bool) -> None:
        """Put older records before the live ones; `more`: there are even older records."""
        reader = LogReader(self._rank, self._counts)
        first_live = self._records[0][0]["seq"] if self._records else None
        older = []
        for record, payload in records:
            if first_live is not None and record["seq"] >= first_live:
                break
            converted = reader.convert(record, payload)
            if converted is not None:
                older.append((converted, len(payload) + 200))
        self._records.extendleft(reversed(older))
        self._bytes += sum(size for _, size in older)
        if more and self._records:
            self._floor = self._records[0][0]["seq"]

    def feed(self, record: dict[str, Any], payload: bytes) -> None:
        """Feed the next record of this rank."""
        converted = self._reader.convert(record, payload)
        if converted is None:
            return
        self._records.append((converted, len(payload) + 200))
        self._bytes += len(payload) + 200
        while self._bytes > MAX_RING_BYTES and len(self._records) > 1:
            dropped, size = self._records.popleft()
            self._dropped.append(dropped["seq"])
            self._bytes -= size

    def after(self, seq: int) -> tuple[list[LogRecord], int]:
        """Return the records after `seq`, and how many before them are no longer cached."""
        records: list[LogRecord] = []
        for record, _ in reversed(self._records):
            if record["seq"] <= seq:
                break
            records.append(record)
        never_here = int(seq < self._floor - 1)
        return records[::-1], sum(dropped > seq for dropped in self._dropped) + never_here


def concerned_ranks(record: dict[str, Any], world_size: int) -> Collection[int]:
    """Return the ranks whose log contains the record."""
    ranks = ranks_of(record)
    return range(world_size) if ranks is None else ranks


def log_text(records: Iterable[LogRecord]) -> str:
    """Return log records as plain text, for a download."""
    return "".join(_as_text(record) for record in records)


def _as_text(record: LogRecord) -> str:
    kind = record["kind"]
    if kind == "stream":
        return str(record["text"])
    if kind == "begin":
        quoted = "\n".join("# " + line for line in record["code"].splitlines())
        return f"\n# ---- [{record['execution_count']}] rank {record['rank']} ----\n{quoted}\n"
    if kind == "end":
        return f"# ---- {record['status']} ----\n"
    if kind == "note":
        return f"# {record['text']}\n"
    output = record["output"]
    if output["output_type"] == "error":
        return "\n".join(output["traceback"]) + "\n"
    plain = output["data"].get("text/plain", f"<{', '.join(sorted(output['data']))}>")
    return (plain if isinstance(plain, str) else "".join(plain)) + "\n"
