"""Reads the journal: forward from a sequence number, or backward in pages of one rank."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from jupyter_dist.protocol.ranks import expand_ranks
from jupyter_dist.protocol.specs import MAX_SEQ
from jupyter_dist.transport.frames import LENGTHS, MAX_HEADER_BYTES, MAX_PAYLOAD_BYTES, Header

from .record import PREFIX_BYTES, Record, junk_length, scan
from .writer import SEGMENT_BYTES, segment_path

READ_BYTES = 1 << 20
# The limit of a writer; a rank may have appended more.
MAX_SEGMENT_BYTES = SEGMENT_BYTES + MAX_HEADER_BYTES + MAX_PAYLOAD_BYTES
_IS_SEQ = re.compile(r"[0-9]{20}")


def segments(directory: Path) -> list[tuple[int, Path]]:
    """Return the segments on disk, oldest first, each with its first sequence number."""
    return sorted((int(path.stem), path) for path in directory.glob("*.jd") if _IS_SEQ.fullmatch(path.stem))


class JournalCursor:
    """A position in the journal, to read on as it grows."""

    def __init__(self, directory: Path, since: int = 0) -> None:
        """Start after record `since` (0: at the beginning)."""
        self._directory = directory
        self.since = self._floor = since
        self._segment = max((first for first, _ in segments(directory) if first <= since + 1), default=0)
        self._offset = 0
        self._fd = -1

    def read(self, last_seq: int | None = None) -> list[Record]:
        """Return the next records, about a megabyte; empty if there are no more for now.

        A caller that knows the number of the last record passes it, so that calls at the end are cheap.
        """
        # A number beyond the writer's last one is forged; following it would skip real records.
        # Without the writer's number, records are read in the order of the file.
        until = MAX_SEQ if last_seq is None else last_seq
        while self.since < until:
            records = self._read_segment()
            least = self._floor if last_seq is None else self.since
            wanted = [record for record in records if least < record.header["seq"] <= until]
            if wanted:
                self.since = wanted[-1].header["seq"]
                return wanted
            if not records and not self._next_segment(until):
                break
        return []

    def close(self) -> None:
        """Close the open segment."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _read_segment(self) -> list[Record]:
        if self._fd < 0:
            self._fd = _open_segment(segment_path(self._directory, self._segment))
            if self._fd < 0:
                return []
        while True:
            data = _read_records_bytes(self._fd, self._offset)
            records = list(scan(data, self._offset))
            if records:
                self._offset = records[-1].next_offset
                return records
            if len(data) < READ_BYTES or (skipped := junk_length(data)) == 0:
                return []
            self._offset += skipped

    def _next_segment(self, until: int) -> bool:
        later = [first for first, _ in segments(self._directory) if self._segment < first <= until]
        if not later:
            return False
        self.close()
        self._segment, self._offset = later[0], 0
        return True


def _open_segment(path: Path) -> int:
    """Return a descriptor of a segment; -1 if it does not exist, or is not a regular file (a rank may replace it)."""
    try:
        # Non-blocking: opening a pipe with that name would block forever.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as err:
        if err.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO):
            return -1
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        return -1
    return fd


def _read_records_bytes(fd: int, offset: int) -> bytes:
    """Read about READ_BYTES, or more for one large record at `offset`."""
    data = os.pread(fd, READ_BYTES, offset)
    if len(data) < PREFIX_BYTES + LENGTHS.size:
        return data
    header_length, payload_length = LENGTHS.unpack_from(data, PREFIX_BYTES)
    if header_length > MAX_HEADER_BYTES or payload_length > MAX_PAYLOAD_BYTES:
        return data  # damaged
    needed = PREFIX_BYTES + LENGTHS.size + header_length + payload_length
    # A damaged length reads at most the largest record; scan() then finds the next valid one.
    return os.pread(fd, needed, offset) if needed > len(data) == READ_BYTES else data


def concerns_rank(header: Header, rank: int) -> bool:
    """Whether a record belongs in the log of `rank`: its own, notes of the group, `begin` and `end` of its cells."""
    if header["kind"] == "begin":
        return rank in expand_ranks(header["ranks"])  # valid: checked by scan()
    if header["kind"] == "end":
        return False  # the rank's own rank_end records it
    return header.get("rank") in (rank, None)


def rank_page(directory: Path, rank: int, before: int | None, max_bytes: int) -> tuple[list[Record], bool]:
    """Return the last records of `rank` before sequence number `before` that fit in `max_bytes`, oldest first.

    Returns at least one record if there is one. The flag says whether there are older ones.
    """
    page: deque[Record] = deque()
    size = 0
    for segment in reversed([first for first, _ in segments(directory) if before is None or first < before]):
        found = _segment_records(directory, segment, before, lambda header: concerns_rank(header, rank))
        for record in reversed(found):
            if page and size + len(record.frame) > max_bytes:
                return list(page), True
            page.appendleft(record)
            size += len(record.frame)
    return list(page), False


def execution_records(directory: Path, execution_id: str, first_seq: int, last_seq: int | None) -> Iterator[Record]:
    """Yield the records of one execution, which lie between its `begin` and the end of the journal or `last_seq`."""
    with closing(JournalCursor(directory, first_seq - 1)) as cursor:
        while records := cursor.read():
            for record in records:
                header = record.header
                if last_seq is not None and header["seq"] > last_seq:
                    return
                if header.get("execution_id") == execution_id:
                    yield record


def _segment_records(
    directory: Path, first_seq: int, before: int | None, wanted: Callable[[Header], bool]
) -> list[Record]:
    fd = _open_segment(segment_path(directory, first_seq))
    if fd < 0:
        return []
    with open(fd, "rb") as file:
        data = file.read(MAX_SEGMENT_BYTES)
    found = []
    for record in scan(data):
        header = record.header
        # Do not stop: a number out of order is forged, and later records may be valid.
        if (before is None or header["seq"] < before) and wanted(header):
            found.append(record)
    return found
