"""The index of a segment: where each block of about 64 KiB begins, and which ranks have records in it.

A hint, and only that: readers check each place that it names, and read the whole segment where one is wrong or where
there is no index (a damaged file, bytes that a rank wrote into the journal).
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import zlib
from pathlib import Path
from typing import NamedTuple

from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.transport.frames import Header

from .records.wide import ranks_of

BLOCK_BYTES = 64 << 10
MAX_INDEX_BYTES = 4 << 20  # far more than a segment's index has: 64 ranks take 40 bytes a block


class Block(NamedTuple):
    """Consecutive records of a segment."""

    start: int  # offset in the segment
    end: int
    first_seq: int  # 0: unknown, these are the records after the last block that is indexed
    ranks: RankSet | None  # None: any

    def may_concern(self, rank: int) -> bool:
        """Whether a record in the block may belong in the log of this rank."""
        return self.ranks is None or rank in self.ranks


class BlockWriter:
    """Writes the index of one segment as the segment grows. A full disk ends it; what is there stays valid."""

    def __init__(self, segment: Path, start: int) -> None:
        """`start` is the size of the segment."""
        self._start = self._end = start
        self._first_seq = 0
        self._ranks: set[int] | None = set()
        self._fd = -1
        with contextlib.suppress(OSError):
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
            self._fd = os.open(index_path(segment), flags, 0o600)

    def add(self, header: Header, num_bytes: int) -> None:
        """Add the record that was just written."""
        self._first_seq = self._first_seq or header["seq"]
        self._end += num_bytes
        if self._ranks is not None:
            concerned = ranks_of(header)
            if concerned is None:
                self._ranks = None
            else:
                self._ranks.update(concerned)
        if self._end - self._start >= BLOCK_BYTES:
            self._write()

    def close(self) -> None:
        """Write the last block. Idempotent."""
        if self._end > self._start:
            self._write()
        self._close()

    def _close(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            with contextlib.suppress(OSError):  # a network file system reports lost data here
                os.close(fd)

    def _write(self) -> None:
        ranks = "*" if self._ranks is None else str(RankSet(self._ranks)) or "-"
        line = _line(f"{self._start} {self._end} {self._first_seq} {ranks}")
        try:
            if self._fd >= 0 and os.write(self._fd, line) < len(line):
                raise OSError(errno.ENOSPC, "the index is cut off")
        except OSError:
            self._close()
        self._start, self._first_seq, self._ranks = self._end, 0, set()


def index_path(segment: Path) -> Path:
    """Return the file with the index of a segment."""
    return segment.with_suffix(".ix")


def read_blocks(segment: Path, size: int) -> list[Block]:
    """Return the blocks of a segment of that size, in order; the last block has the records that no index covers."""
    found: list[Block] = []
    end = 0
    for line in _read_index(index_path(segment)).splitlines(keepends=True):
        block = _parse(line)
        if block is None or block.start != end or not end < block.end <= size:
            break
        found.append(block)
        end = block.end
    return [*found, Block(end, size, 0, None)]


def _line(text: str) -> bytes:
    return f"{zlib.crc32(text.encode()):08x} {text}\n".encode()


def _parse(line: bytes) -> Block | None:
    try:
        text = line.decode("ascii")[9:-1]
        start, end, first_seq, ranks = text.split(" ")
        if line != _line(text):
            return None
        known = None if ranks == "*" else RankSet.from_text(ranks if ranks != "-" else "")
        return Block(int(start), int(end), int(first_seq), known)
    except ValueError:
        return None


def _read_index(path: Path) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        return os.pread(fd, MAX_INDEX_BYTES, 0) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    finally:
        os.close(fd)
