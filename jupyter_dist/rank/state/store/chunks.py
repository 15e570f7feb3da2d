"""A folder of chunks: files that are named by the hash of their contents, so equal contents are stored once.

All ranks of a group share it. A chunk is written under another name and renamed, so a file
with the name of a chunk is whole.
"""

from __future__ import annotations

import contextlib
import ctypes
import re
import secrets
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.rank.guard.own import os
from jupyter_dist.system.files.owned import OwnFolder
from jupyter_dist.system.files.valuefiles import CHUNK_NAME

from .hashing import Hasher

T = TypeVar("T")

CHUNK_BYTES = 16 << 20
SMALL_BYTES = 64 << 10  # below this, contents go with others into a common chunk
MAX_THREADS = 4


@dataclass
class WrittenChunks:
    """What was written to a store.

    Attributes:
        names: all chunks that were put.
        num_bytes: of the chunks that the store lacked before.
    """

    names: set[str] = field(default_factory=set)
    num_bytes: int = 0


class ChunkStore:
    """The chunks in a folder, `<folder>/chunks`."""

    def __init__(self, folder: OwnFolder) -> None:
        self._above = folder
        self._folder: OwnFolder | None = None
        self._judged: set[str] = set()  # the folders in it
        self._hasher = Hasher()
        self._lock = threading.Lock()

    def put(self, data: memoryview, written: WrittenChunks) -> str:
        """Store a chunk, unless it is there; return its name. Any thread may call this.

        The contents may be memory that another thread of the user changes meanwhile: then a copy is stored.
        """
        name = self._hasher.name_of(data)
        folder, path = self._place_of(name, creates=True)
        if not _is_there(folder, path, data.nbytes):
            _write(folder, path, data)
            if self._hasher.name_of(data) != name:
                os.unlink(path, dir_fd=folder)
                return self.put(memoryview(bytes(data)), written)
            with self._lock:
                written.num_bytes += data.nbytes
        with self._lock:
            written.names.add(name)
        return name

    def put_named(self, name: str, num_bytes: int, read: Callable[[], memoryview], written: WrittenChunks) -> None:
        """Store a chunk whose name is known, unless it is there: then its contents are not read."""
        folder, path = self._place_of(name, creates=True)
        is_there = _is_there(folder, path, num_bytes)
        if not is_there:
            _write(folder, path, read())
        with self._lock:
            written.names.add(name)
            written.num_bytes += 0 if is_there else num_bytes

    def read_into(self, name: str, target: memoryview, *, is_checked: bool = True) -> None:
        """Read a whole chunk, and check it, unless the caller does.

        Raises:
            JupyterDistError: `cannot_restore`; it is missing or damaged. `not_yours`.
        """
        fd = self._open(name)
        try:
            done = 0
            while done < target.nbytes and (number := os.readv(fd, [target[done:]])):
                done += number
            is_longer = bool(os.read(fd, 1))
        finally:
            os.close(fd)
        if done < target.nbytes or is_longer:
            raise _damaged(say("The chunk %1 of the save has another size.", name))
        if is_checked and not self._hasher.is_named(name, target):
            raise changed(name)

    def size_of(self, name: str) -> int:
        """Return the size of a chunk.

        Raises:
            JupyterDistError: `cannot_restore`; it is missing. `not_yours`.
        """
        fd = self._open(name)
        try:
            return os.fstat(fd).st_size
        finally:
            os.close(fd)

    def make_durable(self) -> None:
        """Wait until the disk has all files of its file system, other programs' files too.

        This takes a fraction of the time of an fsync() for each of many chunks.
        """
        if ctypes.CDLL(None, use_errno=True).syncfs(self._chunks(creates=True).fd) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(self._above.path))

    def _chunks(self, *, creates: bool = False) -> OwnFolder:
        with self._lock:
            if self._folder is None:
                self._folder = self._above.inner("chunks", creates=creates)
            return self._folder

    def _place_of(self, name: str, *, creates: bool = False) -> tuple[int, str]:
        """Return the descriptor of the folder of all chunks, and the path of a chunk from there, which was judged."""
        inner, chunks = _checked(name)[1:3], self._chunks(creates=creates)
        if inner not in self._judged:
            try:
                chunks.judge(inner)
            except FileNotFoundError:
                if not creates:
                    raise
                with contextlib.suppress(FileExistsError):
                    os.mkdir(inner, 0o700, dir_fd=chunks.fd)
                chunks.judge(inner)
            self._judged.add(inner)
        return chunks.fd, f"{inner}/{name}"

    def _open(self, name: str) -> int:
        try:
            path = self._place_of(name)[1]
            return self._chunks().open(path)
        except OSError as err:
            raise _damaged(say("The chunk %1 of the save cannot be read (%2).", name, err.strerror)) from err


def _checked(name: str) -> str:
    """Return the name of a chunk: it becomes a part of a path."""
    if not re.fullmatch(CHUNK_NAME, name):
        raise _damaged(say("The chunk %1 of the save has a name that none can have.", repr(name[:80])))
    return name


def _write(folder: int, path: str, data: memoryview) -> None:
    aside = f"{path}.{secrets.token_hex(8)}.partial"
    try:
        write_file(aside, data, folder=folder)
        os.rename(aside, path, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(aside, dir_fd=folder)
        raise


def write_file(path: str, data: memoryview, durable: bool = False, folder: int | None = None) -> None:
    """Write a new file that only its owner can read, and wait for the disk if it is to be durable."""
    flags = os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    fd = os.open(path, flags, 0o600, dir_fd=folder)
    try:
        done = 0
        while done < data.nbytes:  # one call writes at most 2 GiB
            done += os.write(fd, data[done:])
        if durable:
            os.fsync(fd)
    finally:
        os.close(fd)


def cut(num_bytes: int, size: int = CHUNK_BYTES) -> Iterator[tuple[int, int]]:
    """Yield the first byte and the number of bytes of each chunk of a large content."""
    for start in range(0, num_bytes, size):
        yield start, min(size, num_bytes - start)


def num_threads() -> int:
    """Return how many threads hash, write or read: as many as this process may use cores, up to a few."""
    return max(1, min(MAX_THREADS, len(os.sched_getaffinity(0))))


def in_threads(jobs: Iterable[T], work: Callable[[T], object]) -> None:
    """Call `work` with each job, in a few threads; an error is raised when all threads have stopped."""
    todo = deque(jobs)

    def work_off() -> None:
        try:
            while True:
                try:
                    job = todo.popleft()
                except IndexError:  # another thread may have taken the last one
                    return
                work(job)
        except BaseException:
            todo.clear()
            raise

    if len(todo) <= 1:
        work_off()
        return
    with ThreadPoolExecutor(num_threads(), "jupyter_dist-chunks") as pool:
        # Not a future for each job, which takes longer than to read a small chunk.
        futures = [pool.submit(work_off) for _ in range(num_threads())]
        try:
            for future in futures:
                future.result()
        except BaseException:
            todo.clear()
            raise


def _is_there(folder: int, path: str, num_bytes: int) -> bool:
    try:
        return bool(os.stat(path, dir_fd=folder, follow_symlinks=False).st_size == num_bytes)
    except OSError:
        return False


def changed(name: str) -> JupyterDistError:
    """Return the error for a chunk whose contents do not have its hash."""
    return _damaged(say("The chunk %1 of the save was changed after it was saved.", name))


def _damaged(message: str) -> JupyterDistError:
    return JupyterDistError("cannot_restore", message, say("Restore another save: this one is not whole."))
