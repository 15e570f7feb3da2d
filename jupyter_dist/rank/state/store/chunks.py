"""A folder of chunks: files that are named by the hash of their contents, so equal contents are stored once.

All saves of a folder and all ranks of a group share it. A chunk is written under another name and renamed, so a file
with the name of a chunk is whole.
"""

from __future__ import annotations

import contextlib
import ctypes
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.rank.guard.own import os

from .hashing import Hasher

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
    """The chunks in `<folder>/chunks`."""

    def __init__(self, folder: str) -> None:
        self._folder = os.path.join(folder, "chunks")
        self._hasher = Hasher()
        self._lock = threading.Lock()

    def path_of(self, name: str) -> str:
        """Return the path of a chunk."""
        return os.path.join(self._folder, name[1:3], name)

    def put(self, data: memoryview, written: WrittenChunks) -> str:
        """Store a chunk, unless it is there; return its name. Any thread may call this.

        The contents may be memory that another thread of the user changes meanwhile: then a copy is stored.
        """
        name = self._hasher.name_of(data)
        path = self.path_of(name)
        if not _is_there(path, data.nbytes):
            self._write(path, data)
            if self._hasher.name_of(data) != name:
                os.unlink(path)
                return self.put(memoryview(bytes(data)), written)
            with self._lock:
                written.num_bytes += data.nbytes
        with self._lock:
            written.names.add(name)
        return name

    def put_named(self, name: str, num_bytes: int, read: Callable[[], memoryview], written: WrittenChunks) -> None:
        """Store a chunk whose name is known, unless it is there: then its contents are not read."""
        path = self.path_of(name)
        is_there = _is_there(path, num_bytes)
        if not is_there:
            self._write(path, read())
        with self._lock:
            written.names.add(name)
            written.num_bytes += 0 if is_there else num_bytes

    def read_into(self, name: str, target: memoryview, *, is_checked: bool = True) -> None:
        """Read a whole chunk, and check it, unless the caller does.

        Raises:
            JupyterDistError: `cannot_restore`; it is missing or damaged.
        """
        try:
            fd = os.open(self.path_of(name), os.O_RDONLY | os.O_CLOEXEC)
        except OSError as err:
            raise _damaged(name, f"cannot be read ({err.strerror})") from err
        try:
            check_owner(fd, name)
            done = 0
            while done < target.nbytes and (number := os.readv(fd, [target[done:]])):
                done += number
            is_longer = bool(os.read(fd, 1))
        finally:
            os.close(fd)
        if done < target.nbytes or is_longer:
            raise _damaged(name, "has another size")
        if is_checked and not self._hasher.is_named(name, target):
            raise changed(name)

    def size_of(self, name: str) -> int:
        """Return the size of a chunk.

        Raises:
            JupyterDistError: `cannot_restore`; it is missing.
        """
        try:
            return os.stat(self.path_of(name)).st_size
        except OSError as err:
            raise _damaged(name, f"cannot be read ({err.strerror})") from err

    def make_durable(self) -> None:
        """Wait until the disk has all files of its file system, other programs' files too.

        This takes a fraction of the time of an fsync() for each of many chunks.
        """
        fd = os.open(self._folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if ctypes.CDLL(None, use_errno=True).syncfs(fd) != 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), self._folder)
        finally:
            os.close(fd)

    def _write(self, path: str, data: memoryview) -> None:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        aside = f"{path}.{secrets.token_hex(8)}.partial"
        try:
            write_file(aside, data)
            os.rename(aside, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(aside)
            raise


def check_owner(fd: int, name: str) -> None:
    """Refuse a file of another user: what is in a save may run code.

    Raises:
        JupyterDistError: `cannot_restore`.
    """
    owner = os.fstat(fd).st_uid
    if owner not in (os.geteuid(), 0):
        message = f"The file {name} of the save belongs to another user (uid {owner}), whose code a restore could run."
        raise JupyterDistError("cannot_restore", message, "Restore your own saves. If you trust this one, copy it.")


def write_file(path: str, data: memoryview, durable: bool = False) -> None:
    """Write a new file that only its owner can read, and wait for the disk if it is to be durable."""
    fd = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
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


def in_threads(jobs: Sequence[object], work: object) -> None:
    """Call `work` with each job, in a few threads; the first error is raised when all threads have stopped."""
    assert callable(work)
    if len(jobs) <= 1:
        for job in jobs:
            work(job)
        return
    with ThreadPoolExecutor(num_threads(), "jupyter_dist-chunks") as pool:
        futures = [pool.submit(work, job) for job in jobs]
        try:
            for future in futures:
                future.result()
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _is_there(path: str, num_bytes: int) -> bool:
    try:
        return bool(os.stat(path).st_size == num_bytes)
    except OSError:
        return False


def changed(name: str) -> JupyterDistError:
    """Return the error for a chunk whose contents do not have its hash."""
    return _damaged(name, "was changed after it was saved")


def _damaged(name: str, how: str) -> JupyterDistError:
    message = f"The chunk {name} of the save {how}."
    return JupyterDistError("cannot_restore", message, "Restore another save: this one is not whole.")
