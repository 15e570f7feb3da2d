"""What a rank keeps of its parts of DTensors, in memory that its agent holds open beyond the end of the process."""

from __future__ import annotations

import contextlib
import mmap
from bisect import bisect
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

from jupyter_dist.rank.collectives.revival.shards import dtensor
from jupyter_dist.rank.collectives.torch_compat import local_tensor, storage_id, without_functions
from jupyter_dist.rank.guard.own import os
from jupyter_dist.rank.state.parts import likeness, listed, memory_files, ways_to_dtensors, world_size

from .memory import DeviceBytes, MemoryPiece, MemoryState, StorageBytes

_CHUNK_BYTES = 64 << 20
_ALIGNMENT = 64


class SharedPiece(MemoryPiece):
    """A copy of a part of some memory, in a memory file."""

    __slots__ = ("_room", "offset")

    def __init__(self, size: int, room: SharedRoom) -> None:
        self.offset, self.saved = room.take(size)
        self.hash = None
        self.num_holders = 0
        self._room = room

    def __del__(self) -> None:
        """Give the room back."""
        self._room.give(self.size, self.offset)


class SharedRoom:
    """A memory file for pieces. The room of a piece that is gone is for the next piece of the same size."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._starts: list[int] = []
        self._chunks: list[torch.Tensor] = []
        self._used = self._end = 0
        self._free: dict[int, list[int]] = {}

    def piece(self, size: int) -> MemoryPiece:
        """Return a new piece; one of this process alone if there is no more room."""
        try:
            return SharedPiece(size, self)
        except (OSError, ValueError):
            return MemoryPiece(size)

    def take(self, size: int) -> tuple[int, torch.Tensor]:
        """Return room for so many bytes: its offset in the file, and its memory."""
        if free := self._free.get(size):
            offset = free.pop()
        else:
            length = -(-max(size, 1) // _ALIGNMENT) * _ALIGNMENT
            if self._used + length > self._end:
                self._grow(max(length, _CHUNK_BYTES))
            offset, self._used = self._used, self._used + length
        number = bisect(self._starts, offset) - 1
        first = offset - self._starts[number]
        return offset, self._chunks[number][first : first + size]

    def _grow(self, length: int) -> None:
        start, size = self._end, -(-length // mmap.PAGESIZE) * mmap.PAGESIZE
        os.ftruncate(self.fd, start + size)
        self._chunks.append(torch.frombuffer(mmap.mmap(self.fd, size, offset=start), dtype=torch.uint8))
        self._starts.append(start)
        self._used, self._end = start, start + size

    def give(self, size: int, offset: int) -> None:
        """Take room back."""
        self._free.setdefault(size, []).append(offset)


class KeptPart(NamedTuple):
    """A DTensor that a cell reaches, and what is kept of its part."""

    way: str
    tensor: Any
    state: MemoryState


class PartsOfCell:
    """The parts of DTensors that are kept for the cell that runs. Without DTensors there are no memory files."""

    def __init__(self) -> None:
        self._room: SharedRoom | None = None
        self._list = -1

    def files(self) -> list[int]:
        """Return the descriptors of this process, once it has DTensors: of the list of parts, and of their bytes."""
        if self._room is None and dtensor() is not None:
            with contextlib.suppress(OSError):  # a kernel without such files, or no descriptors
                self._list, fd = memory_files()
                self._room = SharedRoom(fd)
        return [] if self._room is None else [self._list, self._room.fd]

    def choose(self, namespace: Mapping[str, Any], states: Mapping[Any, Any]) -> list[KeptPart]:
        """Return the parts whose memory is among these states, which from now on copy into the memory file."""
        found: list[KeptPart] = []
        self.files()
        if self._room is None:
            return found
        for way, tensor in ways_to_dtensors(namespace, world_size()).items():
            local = local_tensor(tensor)
            if type(local) is torch.Tensor:
                key = storage_id(local.untyped_storage())
                state = states.get((key, StorageBytes)) or states.get((key, DeviceBytes))
                if state is not None:
                    state.make_piece = self._room.piece
                    found.append(KeptPart(way, tensor, state))
        return found

    def publish(self, execution_id: str, parts: list[KeptPart]) -> None:
        """Write the list of the parts that are kept for an execution."""
        if self._room is None:
            return
        with without_functions():
            found = {one.way: described for one in parts if (described := _described(one)) is not None}
        os.pwrite(self._list, listed(execution_id, found), 0)


def _described(part: KeptPart) -> dict[str, Any] | None:
    pieces = part.state.pieces
    if not all(isinstance(piece, SharedPiece) for piece in pieces):
        return None
    local = local_tensor(part.tensor)
    return {
        "like": likeness(part.tensor),
        "place": [list(local.shape), list(local.stride()), local.storage_offset()],
        "pieces": [[piece.offset, piece.size] for piece in pieces if isinstance(piece, SharedPiece)],
    }
