"""Contents of any size in chunks: large ones are cut, small ones are put together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from . import devicehash
from .chunks import CHUNK_BYTES, SMALL_BYTES, ChunkStore, WrittenChunks, changed, cut, in_threads
from .hashing import DEVICE

Piece = list[object]  # as a manifest has it: the name of a chunk, the first byte in it, the number of bytes

Bytes = Callable[[], memoryview]


@dataclass
class _Job:
    """A chunk to write, and the pieces that are in it."""

    data: Bytes
    num_bytes: int
    name: Callable[[], str] | None = None  # computes the name where reading is slow
    pieces: list[Piece] = field(default_factory=list)


class BlobWriter:
    """Collects contents, and writes them all at the end, in a few threads."""

    def __init__(self, store: ChunkStore) -> None:
        self._store = store
        self._jobs: list[_Job] = []
        self._common: tuple[bytearray, _Job] | None = None
        self.written = WrittenChunks()

    @property
    def num_bytes(self) -> int:
        """The number of bytes of all contents."""
        return sum(job.num_bytes for job in self._jobs)

    def add_parts(self, parts: Iterable[bytes | bytearray]) -> list[Piece]:
        """Add a content that is in parts; the pieces have their names when `write` has returned."""
        return [piece for part in parts for piece in self._add_part(part)]

    def add(
        self,
        num_bytes: int,
        read: Callable[[int, int], memoryview],
        name: Callable[[int, int], str] | None = None,
    ) -> list[Piece]:
        """Add a content that is read when it is written.

        Args:
            num_bytes: of the content.
            read: returns so many bytes from a position.
            name: returns the name of a chunk of so many bytes from a position, where that is faster than to read it.
        """
        if num_bytes < SMALL_BYTES:
            return self._add_small(bytes(read(0, num_bytes))) if num_bytes else []
        return [
            self._add_large(_Job(partial(read, at, size), size, None if name is None else partial(name, at, size)))
            for at, size in cut(num_bytes)
        ]

    def write(self, progress: Callable[[int, int], None] | None = None, first: float = 0.0) -> None:
        """Write all chunks that the store lacks.

        Args:
            progress: called with the bytes that are written, and all that are to be.
            first: where to begin, as a part of all: ranks with equal contents begin at different places, so that each
                writes a part of them.
        """
        total, done = self.num_bytes, [0]
        place = int(first * len(self._jobs))

        def write_one(job: _Job) -> None:
            name = self._put(job)
            for piece in job.pieces:
                piece[0] = name
            done[0] += job.num_bytes
            if progress is not None:
                progress(min(done[0], total), total)

        in_threads([*self._jobs[place:], *self._jobs[:place]], write_one)

    def _put(self, job: _Job) -> str:
        if job.name is None:
            return self._store.put(job.data(), self.written)
        name = job.name()
        self._store.put_named(name, job.num_bytes, job.data, self.written)
        return name

    def _add_part(self, part: bytes | bytearray) -> list[Piece]:
        view = memoryview(part)
        return self.add(view.nbytes, lambda at, size: view[at : at + size])

    def _add_large(self, job: _Job) -> Piece:
        piece: Piece = ["", 0, job.num_bytes]
        job.pieces.append(piece)
        self._jobs.append(job)
        return piece

    def _add_small(self, data: bytes) -> list[Piece]:
        if self._common is None or len(self._common[0]) + len(data) > CHUNK_BYTES:
            contents = bytearray()
            self._common = contents, _Job(lambda: memoryview(contents), 0)
            self._jobs.append(self._common[1])
        contents, job = self._common
        piece: Piece = ["", len(contents), len(data)]
        contents += data
        job.num_bytes += len(data)
        job.pieces.append(piece)
        return [piece]


class BlobReader:
    """Reads contents from their pieces."""

    def __init__(self, store: ChunkStore) -> None:
        self._store = store
        self._common: dict[str, memoryview] = {}

    def read(self, pieces: list[Piece], target: memoryview, *, checks_device_hashes: bool = True) -> None:
        """Read a content into memory of its size.

        Args:
            pieces: of the content.
            target: the memory.
            checks_device_hashes: False if the caller checks chunks that devices have named, on a device.
        """
        position = 0
        for name, start, size in pieces:
            assert isinstance(name, str) and isinstance(start, int) and isinstance(size, int)  # noqa: PT018
            part = target[position : position + size]
            if size >= SMALL_BYTES:
                is_checked = checks_device_hashes or not name.startswith(DEVICE)
                self._store.read_into(name, part, is_checked=is_checked)
            else:
                part[:] = self._chunk(name)[start : start + size]
            position += size

    def _chunk(self, name: str) -> memoryview:
        if name not in self._common:
            contents = bytearray(self._store.size_of(name))
            self._store.read_into(name, memoryview(contents))
            self._common[name] = memoryview(contents)
        return self._common[name]


def check_on_device(data: Any, pieces: list[Piece]) -> None:
    """Check the chunks that a device has named, on the device of a tensor which has their contents.

    Raises:
        JupyterDistError: `cannot_restore`; a chunk is damaged.
    """
    position = 0
    for name, _, size in pieces:
        assert isinstance(name, str) and isinstance(size, int)  # noqa: PT018
        if name.startswith(DEVICE) and name != DEVICE + devicehash.digest(data[position : position + size]):
            raise changed(name)
        position += size
