"""The bytes of one journal record, and the recovery of records from damaged data."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from jupyter_dist.transport.frames import (
    LENGTHS,
    MAX_HEADER_BYTES,
    MAX_PAYLOAD_BYTES,
    FrameError,
    Header,
    decode_header,
)

from .sound import is_sound

MARKER = b"\xf0JDR"
_CRC = struct.Struct("!I")
Check = Callable[[Header], bool]  # whether to accept the record with this header
PREFIX_BYTES = len(MARKER) + _CRC.size


class Record(NamedTuple):
    """One record: its frame, its parsed header, and the offset of the next one in the file."""

    frame: bytes
    header: Header
    next_offset: int

    @property
    def payload(self) -> bytes:
        """The payload."""
        header_length, _ = LENGTHS.unpack_from(self.frame)
        return self.frame[LENGTHS.size + header_length :]


def record_prefix(frame: bytes) -> bytes:
    """Return the bytes before `frame` in the file."""
    return MARKER + _CRC.pack(zlib.crc32(frame))


def scan(
    data: bytes, base: int = 0, pattern: re.Pattern[bytes] | None = None, check: Check = is_sound
) -> Iterator[Record]:
    """Yield the complete records in `data`, which starts at offset `base` of its file.

    Damaged data, including forged records with a valid crc, is skipped up to the next marker with a matching crc and a
    valid header. An unfinished record at the end is left for the next read.

    Args:
        data: bytes of a segment.
        base: their offset in it.
        pattern: only records in whose encoded header it is found; parsing is most of the work.
        check: validates headers; records that fail are skipped like damaged ones.
    """
    start = 0
    while start >= 0:
        start = data.find(MARKER, start)
        if start < 0:
            return
        found = _frame_at(data, start)
        if found is None:
            start += 1  # damaged or unfinished: a later marker may still be valid
            continue
        end, header_end = found
        if pattern is not None and not pattern.search(data, start + PREFIX_BYTES + LENGTHS.size, header_end):
            start = end
            continue
        record = _record(data[start + PREFIX_BYTES : end], header_end - start - PREFIX_BYTES, base + end)
        if record is None or not check(record.header):
            start += 1
            continue
        yield record
        start = end


def junk_length(data: bytes) -> int:
    """Return how many bytes at the start of `data`, in which scan() found no record, can be skipped.

    0 if a record may start there and continue after the end of `data`.
    """
    start = data.find(MARKER)
    while 0 <= start < len(data) - PREFIX_BYTES - LENGTHS.size:
        body = start + PREFIX_BYTES + LENGTHS.size
        header_length, payload_length = LENGTHS.unpack_from(data, start + PREFIX_BYTES)
        is_possible = header_length <= MAX_HEADER_BYTES and payload_length <= MAX_PAYLOAD_BYTES
        if is_possible and body + header_length + payload_length > len(data):
            return start
        start = data.find(MARKER, start + 1)
    return max(0, len(data) - PREFIX_BYTES - LENGTHS.size)


def _frame_at(data: bytes, start: int) -> tuple[int, int] | None:
    """Return where the intact frame after the marker at `start` ends, and its header; None if there is none."""
    body = start + PREFIX_BYTES
    if len(data) < body + LENGTHS.size:
        return None
    header_length, payload_length = LENGTHS.unpack_from(data, body)
    if header_length > MAX_HEADER_BYTES or payload_length > MAX_PAYLOAD_BYTES:
        return None
    header_end = body + LENGTHS.size + header_length
    end = header_end + payload_length
    if len(data) < end or _CRC.unpack_from(data, start + len(MARKER))[0] != zlib.crc32(data[body:end]):
        return None
    return end, header_end


def _record(frame: bytes, header_end: int, next_offset: int) -> Record | None:
    try:
        header = decode_header(frame[LENGTHS.size : header_end])
    except FrameError:
        return None
    return Record(frame, header, next_offset)
