"""Reads the journal: forward from a sequence number, or backward in pages of one rank."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from pathlib import Path

from jupyter_dist.protocol.ranks import expand_ranks
from jupyter_dist.protocol.specs import MAX_SEQ
from jupyter_dist.transport.frames import LENGTHS, MAX_HEADER_BYTES, MAX_PAYLOAD_BYTES, Header, encode_frame

from .blocks import Block, read_blocks
from .record import MARKER, PREFIX_BYTES, Record, junk_length, scan
from .sound import is_wide
from .wide import of_rank, ranks_of
from .writer import SEGMENT_BYTES, segment_path

READ_BYTES = 1 << 20
# The limit of a writer; a rank may have appended more.
MAX_SEGMENT_BYTES = SEGMENT_BYTES + MAX_HEADER_BYTES + MAX_PAYLOAD_BYTES
# In pages each record counts at least this much: short ones cost the time of parsing, not of their bytes.
LEAST_RECORD_BYTES = 512
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
        self._offset = self._offset_after(since)
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

    @property
    def position(self) -> tuple[int, int]:
        """The segment that is read, and the offset in it up to which it has been read."""
        return self._segment, self._offset

    def close(self) -> None:
        """Close the open segment."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _offset_after(self, since: int) -> int:
        """Return where to start in the segment: at the block with the record after `since`, if its index is right."""
        path = segment_path(self._directory, self._segment)
        if since < self._segment or (fd := _open_segment(path)) < 0:
            return 0
        try:
            blocks = [block for block in read_blocks(path, os.fstat(fd).st_size) if 0 < block.first_seq <= since + 1]
            return blocks[-1].start if blocks and _read_block(fd, blocks[-1]) is not None else 0
        finally:
            os.close(fd)

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


def rank_page(directory: Path, rank: int, before: int | None, max_bytes: int) -> tuple[list[Record], bool]:
    """Return the last records of `rank` before sequence number `before` that fit in `max_bytes`, oldest first.

    A short record counts as LEAST_RECORD_BYTES. Returns at least one record if there is one. The flag says whether
    there are older ones.
    """
    page: deque[Record] = deque()
    size = 0
    for segment in reversed([first for first, _ in segments(directory) if before is None or first < before]):
        with closing(_backward(directory, segment, rank, MAX_SEQ if before is None else before)) as found:
            for record in found:
                size += max(len(record.frame), LEAST_RECORD_BYTES)
                if page and size > max_bytes:
                    return list(page), True
                page.appendleft(record)
    return list(page), False


def execution_records(directory: Path, execution_id: str, first_seq: int, last_seq: int | None) -> Iterator[Record]:
    """Yield the records of one execution, from its `begin` up to `last_seq`.

    Without that up to where the journal ends now, or until each of its ranks has ended a later execution: until then a
    thread that it left may have printed. A journal that is written faster than it is read has no other end.
    """
    end = _end(directory) if last_seq is None else None
    busy: set[int] | None = None
    with closing(JournalCursor(directory, first_seq - 1)) as cursor:
        while (records := cursor.read()) and busy != set():
            for record in records:
                header = record.header
                if last_seq is not None and header["seq"] > last_seq:
                    return
                if header.get("execution_id") == execution_id:
                    if header["kind"] == "begin":
                        busy = (busy or set()) | set(expand_ranks(header["ranks"]))  # a later one adds ranks
                    yield record
                elif busy and header["kind"] == "rank_end":
                    busy.difference_update(ranks_of(header) or ())
            if end is not None and cursor.position >= end:
                return


def _end(directory: Path) -> tuple[int, int]:
    """Return the newest segment and its size; zeros if the journal is gone."""
    for first_seq, path in segments(directory)[-1:]:
        with suppress(FileNotFoundError):
            return first_seq, path.lstat().st_size
    return 0, 0


def _backward(directory: Path, segment: int, rank: int, before: int) -> Generator[Record, None, None]:
    """Yield the records of a segment that belong in the log of a rank, newest first, from those before a number."""
    path = segment_path(directory, segment)
    fd = _open_segment(path)
    if fd < 0:
        return
    # Found without parsing it; any other spelling of a header is not the writer's.
    pattern = re.compile(rb'"kind":"begin"|"ranks":|"rank":(?:%d|null)[,}]' % rank)
    with open(fd, "rb") as file:
        for block in reversed(read_blocks(path, os.fstat(fd).st_size)):
            if block.first_seq >= before or not block.may_concern(rank):
                continue
            data = _read_block(fd, block)
            is_right = data is not None
            if data is None:  # the index is wrong
                data = file.read(MAX_SEGMENT_BYTES)
            # Do not stop at the first one: a number out of order is forged, and later records may be valid.
            records = (record for record in scan(data, 0, pattern) if record.header["seq"] < before)
            found = [_of_rank(record, rank) for record in records if _concerns(record.header, rank)]
            yield from reversed(found)
            if not is_right:
                return
            before = min([before, *(record.header["seq"] for record in found)])


def _concerns(header: Header, rank: int) -> bool:
    concerned = ranks_of(header)
    return concerned is None or rank in concerned


def _of_rank(record: Record, rank: int) -> Record:
    """Return the record of one of its ranks."""
    if not is_wide(record.header):
        return record
    header, payload = of_rank(record.header, record.payload, rank)
    return Record(encode_frame(header, payload), header, record.next_offset)


def _read_block(fd: int, block: Block) -> bytes | None:
    """Return the bytes of a block; None unless a record is at its start and at its end, as its index says."""
    data = os.pread(fd, block.end - block.start, block.start)
    if block.first_seq:
        first = next(scan(data), None)
        if first is None or first.header["seq"] != block.first_seq:
            return None
    is_right = data[: len(MARKER)] in (MARKER, b"") and os.pread(fd, len(MARKER), block.end) in (MARKER, b"")
    return data if is_right else None
