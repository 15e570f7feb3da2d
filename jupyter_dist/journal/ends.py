"""The first and the last records of an execution: what a view shows of it, however much lies between."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from jupyter_dist.protocol.wire.specs import MAX_SEQ

from .reader import execution_records, place_of, records_backward
from .records.record import PREFIX_BYTES, Check, Record
from .records.sound import is_sound


class Span(NamedTuple):
    """Where the journal has the records of an execution."""

    execution_id: str
    begin_seq: int
    end_seq: int | None  # of its `end`; None or 0 where there is none, or it is not known


class Ends(NamedTuple):
    """The first records of an execution and, of a huge one, the last."""

    data: bytes  # their frames
    num_first: int
    skipped_bytes: int  # of the journal after these, if records of the execution are left out there


class _Kept(NamedTuple):
    """What is kept of a record: its parsed header takes several times as much memory."""

    frame: bytes
    seq: int
    next_offset: int


def first_and_last(directory: Path, span: Span, max_bytes: int, check: Check = is_sound) -> Ends:
    """Return the records of an execution: all of them, or about as many bytes of the first as of the last ones.

    Those between are not read: a cell that runs for days may have written gigabytes.
    """
    first: list[_Kept] = []
    tail = _Tail(max_bytes // 2)
    left = max_bytes // 2
    with closing(execution_records(directory, span.execution_id, span.begin_seq, None, check)) as records:
        for record in records:
            left -= len(record.frame)
            if left < 0:
                _fill(tail, directory, span, first[-1].seq if first else span.begin_seq - 1, check)
                break
            first.append(_kept(record))
    last = list(tail.records)
    skipped = _bytes_between(directory, first, last) if tail.is_cut else 0
    return Ends(b"".join(record.frame for record in (*first, *last)), len(first), skipped)


def _fill(tail: _Tail, directory: Path, span: Span, after: int, check: Check) -> None:
    """Take the last records after a number: late output first, and then the records before the end, backward."""
    before = MAX_SEQ
    if span.end_seq:
        before = span.end_seq
        with closing(execution_records(directory, span.execution_id, span.end_seq, None, check)) as late:
            tail.append(record for record in late if record.header["seq"] > after)
    with closing(records_backward(directory, span.execution_id, after, before, check)) as earlier:
        tail.prepend(earlier)


class _Tail:
    """The last records that fit; at least one."""

    def __init__(self, max_bytes: int) -> None:
        self.records: deque[_Kept] = deque()
        self.is_cut = False  # there are earlier ones
        self._left = max_bytes

    def append(self, records: Iterable[Record]) -> None:
        """Add later ones; they come first."""
        for record in records:
            self.records.append(_kept(record))
            self._left -= len(record.frame)
            while self._left < 0 and len(self.records) > 1:
                self._left += len(self.records.popleft().frame)
                self.is_cut = True

    def prepend(self, records: Iterable[Record]) -> None:
        """Add earlier ones, newest first, as long as there is space."""
        if self.is_cut:
            return
        for record in records:
            self._left -= len(record.frame)
            if self._left < 0 and self.records:
                self.is_cut = True
                return
            self.records.appendleft(_kept(record))


def _kept(record: Record) -> _Kept:
    return _Kept(record.frame, record.header["seq"], record.next_offset)


def _bytes_between(directory: Path, first: list[_Kept], last: list[_Kept]) -> int:
    start = place_of(directory, first[-1].seq, first[-1].next_offset) if first else 0
    end = place_of(directory, last[0].seq, last[0].next_offset - len(last[0].frame) - PREFIX_BYTES)
    return max(0, end - start)
