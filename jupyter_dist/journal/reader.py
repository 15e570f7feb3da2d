"""Reads the journal: forward from a sequence number, or backward in pages of one rank."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.protocol.wire.specs import MAX_SEQ
from jupyter_dist.transport.frames import LENGTHS, MAX_HEADER_BYTES, MAX_PAYLOAD_BYTES, Header, encode_frame

from .blocks import Block, read_blocks
from .records.record import MARKER, PREFIX_BYTES, Check, Record, junk_length, scan
from .records.sound import is_numbered, is_sound, is_wide
from .records.wide import of_rank, ranks_of
from .writer import SEGMENT_BYTES, segment_path

READ_BYTES = 1 << 20
# The limit of a writer; a rank may have appended more.
MAX_SEGMENT_BYTES = SEGMENT_BYTES + MAX_HEADER_BYTES + MAX_PAYLOAD_BYTES
# In pages each record counts at least this much: short ones cost the time of parsing, not of their bytes.
LEAST_RECORD_BYTES = 512
# Far more than ranks have on the way when the agent gives them their next cell.
LATE_BYTES = 64 << 20
_IS_SEGMENT = re.compile(r"[0-9]{20}\.jd")


def segments(directory: Path) -> list[tuple[int, Path]]:
    """Return the segments on disk, oldest first, each with its first sequence number."""
    try:
        names = os.listdir(directory)  # not Path.glob, which takes a folder that it cannot read for an empty one
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted((int(name[:-3]), directory / name) for name in names if _IS_SEGMENT.fullmatch(name))


class JournalCursor:
    """A position in the journal, to read on as it grows."""

    def __init__(self, directory: Path, since: int = 0, check: Check = is_sound) -> None:
        """Start after record `since` (0: at the beginning); `check` validates the headers of records."""
        self._directory = directory
        self._check = check
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
            records = list(scan(data, self._offset, None, self._check))
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


def rank_page(
    directory: Path, rank: int, before: int | None, max_bytes: int, check: Check = is_sound
) -> tuple[list[Record], bool]:
    """Return the last records of `rank` before sequence number `before` that fit in `max_bytes`, oldest first.

    A short record counts as LEAST_RECORD_BYTES. Returns at least one record if there is one. The flag is true if there
    are older ones.
    """
    page: deque[Record] = deque()
    size = 0
    wanted = _of_log(rank, check)
    for segment in reversed([first for first, _ in segments(directory) if before is None or first < before]):
        with closing(_backward(directory, segment, wanted, MAX_SEQ if before is None else before)) as found:
            for record in found:
                size += max(len(record.frame), LEAST_RECORD_BYTES)
                if page and size > max_bytes:
                    return list(page), True
                page.appendleft(record)
    return list(page), False


def execution_records(
    directory: Path, execution_id: str, first_seq: int, last_seq: int | None, check: Check = is_sound
) -> Generator[Record, None, None]:
    """Yield the records of one execution, from its `begin` (or its `end`) up to `last_seq`.

    Without that up to where the journal ends now, or until the execution can have no more: see _Leavers. A journal that
    is written faster than it is read has no other end. Records of others are not parsed.
    """
    leavers = _Leavers(execution_id)
    pattern = re.compile(_naming(execution_id).pattern + rb'|"kind":"(?:begin|rank_end)"')
    for data, start in _forward(directory, first_seq):
        for record in scan(data, start, pattern, check):
            if record.header["seq"] < first_seq:
                continue
            if last_seq is not None and record.header["seq"] > last_seq:
                return
            leavers.take(record.header)
            if record.header.get("execution_id") == execution_id:
                yield record
        if leavers.are_gone(len(data)):
            return


def records_backward(
    directory: Path, execution_id: str, after: int, before: int, check: Check = is_sound
) -> Generator[Record, None, None]:
    """Yield the records of one execution between two numbers, newest first. Other records are not parsed."""
    wanted = _Wanted(_naming(execution_id), lambda _: True, lambda record: _record_of(execution_id, record), check)
    for segment in reversed([first for first, _ in segments(directory) if first < before]):
        with closing(_backward(directory, segment, wanted, before)) as found:
            yield from (record for record in found if record.header["seq"] > after)
        if segment <= after:
            return


def place_of(directory: Path, seq: int, offset: int) -> int:
    """Return how many bytes the journal has before an offset in the segment that has a record."""
    names = segments(directory)
    own = max((first for first, _ in names if first <= seq), default=0)
    for first, path in names:
        if first < own:
            with suppress(FileNotFoundError):  # the oldest are removed at the quota
                offset += path.lstat().st_size
    return offset


class _Leavers:
    """The ranks of an execution, which leave it: what a thread of it prints belongs to it until the next cell runs.

    That cell has begun on a rank at the latest when it has ended there, or when the journal has much after its `begin`:
    it may run for days.
    """

    def __init__(self, execution_id: str) -> None:
        self._execution_id = execution_id
        self._busy: set[int] | None = None  # have not ended a later one
        self._waiting: set[int] = set()  # have not begun a later one
        self._late_bytes = 0  # read since there are none

    def take(self, header: Header) -> None:
        """Take a record."""
        kind = header["kind"]
        if header.get("execution_id") == self._execution_id:
            # A later `begin` adds ranks. Without one, all of them are known at the end.
            if kind == "begin" or (kind == "end" and self._busy is None and header.get("ranks") is not None):
                ranks = RankSet.from_text(header["ranks"])
                self._busy = {*(self._busy or ()), *ranks}
                self._waiting.update(ranks)
        elif self._busy and kind == "rank_end":
            self._busy.difference_update(ranks_of(header) or ())
        elif kind == "begin":
            self._waiting.difference_update(RankSet.from_text(header["ranks"]))

    def are_gone(self, num_bytes: int) -> bool:
        """Whether there are no more records of the execution, after so many more bytes."""
        if self._busy is not None and not self._waiting:
            self._late_bytes += num_bytes
        return self._busy == set() or self._late_bytes > LATE_BYTES


class _Wanted(NamedTuple):
    """The records to find in the journal."""

    pattern: re.Pattern[bytes]  # without parsing; any other spelling of a header is not the writer's
    may_be_in: Callable[[Block], bool]
    part: Callable[[Record], Record | None]  # of a record what is wanted
    check: Check


def _naming(execution_id: str) -> re.Pattern[bytes]:
    """Return a pattern that occurs in the headers of an execution's records."""
    return re.compile(re.escape(f'"execution_id":{json.dumps(execution_id)}'.encode()))


def _record_of(execution_id: str, record: Record) -> Record | None:
    return record if record.header.get("execution_id") == execution_id else None


def _of_log(rank: int, check: Check) -> _Wanted:
    """Return the description of the records in the log of a rank."""
    pattern = re.compile(rb'"kind":"begin"|"ranks":|"rank":(?:%d|null)[,}]' % rank)
    return _Wanted(
        pattern,
        lambda block: block.may_concern(rank),
        lambda record: _of_rank(record, rank) if _concerns(record.header, rank) else None,
        check,
    )


def _forward(directory: Path, first_seq: int) -> Iterator[tuple[bytes, int]]:
    """Yield the journal as it is now from the block of a record on: its bytes, and their place in their segment."""
    names = [first for first, _ in segments(directory) if first <= MAX_SEQ]
    begin = max((first for first in names if first <= first_seq), default=0)
    for segment in [first for first in names if first >= begin]:
        path = segment_path(directory, segment)
        if (fd := _open_segment(path)) < 0:
            continue
        with open(fd, "rb"):
            blocks = read_blocks(path, os.fstat(fd).st_size)
            indexed = [place for place, block in enumerate(blocks) if 0 < block.first_seq <= first_seq]
            start = blocks[indexed[-1]].start if indexed else 0
            for block in [block for block in blocks if block.start >= start]:
                if (data := _read_block(fd, block)) is None:  # the index is wrong
                    rest = 0 if block.start == start else block.start
                    yield os.pread(fd, MAX_SEGMENT_BYTES, rest), rest
                    break
                yield data, block.start


def _backward(directory: Path, segment: int, wanted: _Wanted, before: int) -> Generator[Record, None, None]:
    """Yield the wanted records of a segment, newest first, from the records before a number."""
    path = segment_path(directory, segment)
    fd = _open_segment(path)
    if fd < 0:
        return
    with open(fd, "rb"):
        for block in reversed(read_blocks(path, os.fstat(fd).st_size)):
            if block.first_seq >= before or not wanted.may_be_in(block):
                continue
            data, start = _read_block(fd, block), block.start
            is_right = data is not None
            if data is None:  # the index is wrong
                data, start = os.pread(fd, MAX_SEGMENT_BYTES, 0), 0
            # Do not stop at the first one: a number out of order is forged, and later records may be valid.
            sound = scan(data, start, wanted.pattern, wanted.check)
            earlier = (record for record in sound if record.header["seq"] < before)
            found = [part for record in earlier if (part := wanted.part(record)) is not None]
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
    """Return the bytes of a block; None unless records begin and end where its index has them."""
    if block.end - block.start > MAX_SEGMENT_BYTES:  # a rank may have made the file as long as it likes
        return None
    data = os.pread(fd, block.end - block.start, block.start)
    if block.first_seq:
        first = next(scan(data, 0, None, is_numbered), None)
        if first is None or first.header["seq"] != block.first_seq:
            return None
    is_right = data[: len(MARKER)] in (MARKER, b"") and os.pread(fd, len(MARKER), block.end) in (MARKER, b"")
    return data if is_right else None
