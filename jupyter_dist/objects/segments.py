"""Files whose pages are kept for the next exchange: allocating new ones takes three times as long as copying."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import mmap
import os
import tempfile
import weakref
from collections.abc import Sequence

from . import files

MAX_KEPT_BYTES = 1 << 30
MAX_KEPT_PART = 4  # at most a quarter of shared memory: NCCL and DataLoader workers need it, too
KEEP_SECONDS = 60.0
SHARED_MEMORY = "/dev/shm"  # noqa: S108  (files there have no name)


class Segment:
    """An unnamed file, which disappears when its owner ends in any way."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._close = weakref.finalize(self, os.close, file)
        self._mapping: mmap.mmap | None = None
        self.size_bytes = os.fstat(file).st_size
        self.expiry: asyncio.TimerHandle | None = None

    @property
    def path(self) -> str:
        """Return the path where processes of this user can open the file, as long as it is open here."""
        return f"/proc/{os.getpid()}/fd/{self._file}"

    @property
    def is_free(self) -> bool:
        """Whether no process reads the file: each holds a lock while it has the file mapped."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        fcntl.flock(self._file, fcntl.LOCK_UN)
        return True

    @property
    def is_written(self) -> bool:
        """Whether the file was written since it was cleared."""
        return any(os.pread(self._file, 8, 0))

    def clear(self) -> None:
        """Clear the content; the pages are kept."""
        os.pwrite(self._file, bytes(8), 0)

    def write(self, pieces: Sequence[memoryview]) -> None:
        """Replace the content. Raises OSError if there is no space."""
        if files.size_of(pieces) > self.size_bytes:
            self._mapping = None
            os.lseek(self._file, 0, os.SEEK_SET)
            files.write(self._file, pieces)
            self.size_bytes = os.fstat(self._file).st_size
            return
        if self._mapping is None:
            self._mapping = files.mapped(self._file)
        with memoryview(self._mapping) as view:
            files.put(pieces, view)

    def close(self) -> None:
        """Release the pages once no process has them mapped. Idempotent."""
        self._mapping = None
        self._close()


class Segments:
    """The segments that one client keeps for its next exchange, for a minute; not thread-safe."""

    def __init__(self) -> None:
        self._kept: list[Segment] = []

    def take(self, size_bytes: int = 0) -> Segment | None:
        """Remove and return the free segment that fits best; without a size, the largest."""
        if 0 < size_bytes < files.MIN_WARM_BYTES:
            return None
        free = [segment for segment in self._kept if segment.size_bytes >= size_bytes and segment.is_free]
        if not free:
            return None
        segment = min(free, key=lambda found: found.size_bytes if size_bytes else -found.size_bytes)
        self._drop(segment)
        return segment

    def keep(self, segment: Segment) -> None:
        """Keep a segment; the oldest ones are released to make room."""
        most = _most_kept()
        if not files.MIN_WARM_BYTES <= segment.size_bytes <= most:
            segment.close()
            return
        segment.expiry = asyncio.get_running_loop().call_later(KEEP_SECONDS, self._expire, segment)
        self._kept.append(segment)
        while sum(kept.size_bytes for kept in self._kept) > most:
            self._expire(self._kept[0])

    def close(self) -> None:
        """Release all pages. Idempotent."""
        while self._kept:
            self._expire(self._kept[0])

    def _drop(self, segment: Segment) -> None:
        self._kept.remove(segment)
        if segment.expiry is not None:
            segment.expiry.cancel()
            segment.expiry = None

    def _expire(self, segment: Segment) -> None:
        self._drop(segment)
        segment.close()


def _most_kept() -> int:
    if not os.access(SHARED_MEMORY, os.W_OK):
        return MAX_KEPT_BYTES
    memory = os.statvfs(SHARED_MEMORY)
    return min(MAX_KEPT_BYTES, memory.f_blocks * memory.f_frsize // MAX_KEPT_PART)


def parent_folders() -> list[str | None]:
    """Return the folders for files of an exchange, memory first; None is the system's temporary folder."""
    return [SHARED_MEMORY, None] if os.access(SHARED_MEMORY, os.W_OK) else [None]


def filled(segment: Segment | None, pieces: Sequence[memoryview]) -> Segment:
    """Return a segment with this content: the given one, else a new one, in memory if there is space.

    Raises:
        JupyterDistError: `cannot_send`, if there is no space.
    """
    if segment is not None:
        segment.write(pieces)
        return segment
    for parent in parent_folders():
        with tempfile.TemporaryFile(dir=parent, buffering=0) as file:
            segment = Segment(os.dup(file.fileno()))
        try:
            segment.write(pieces)
            return segment
        except OSError as err:
            segment.close()
            if err.errno != errno.ENOSPC or parent is None:
                raise files.cannot_write(err) from err
    raise AssertionError("the last folder has raised")
