"""The memory of tensors and arrays before a cell: bytes, copied only where they have changed since the last copy.

Every byte is looked at: a tensor's counter of versions misses what numpy, extensions and collectives write. Before a
cell, memory is compared with the copy by its hash, which reads half as many bytes; undo itself compares all bytes.
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable
from operator import is_
from typing import Any

import torch

from jupyter_dist.rank.state.graph.memory import bytes_at
from jupyter_dist.rank.state.store import devicehash
from jupyter_dist.rank.state.store.hashing import fast_hash

from .mementos import Memento

_libc = ctypes.CDLL(None)
_libc.memcmp.argtypes = _libc.memmove.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_libc.memmove.restype = ctypes.c_void_p
PIECE_BYTES = 4 << 20


class MemoryPiece:
    """A copy of a part of some memory, which the states of several cells share while the part does not change."""

    __slots__ = ("hash", "num_holders", "saved")

    def __init__(self, size: int) -> None:
        self.saved = torch.empty(size, dtype=torch.uint8)
        self.hash: str | None = None  # of the copy; None: it is compared byte by byte
        self.num_holders = 0

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self.saved.numel()


class MemoryState(Memento):
    """The bytes of some memory, in pieces: what has not changed since the state before is shared with it."""

    phase = 2
    __slots__ = ("_before", "_changed", "make_piece", "pieces", "size")

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.size = self.size_now()
        self.num_bytes = 200  # without its pieces
        self.pieces: list[MemoryPiece] = []
        self._before: list[MemoryPiece] = []
        self._changed: list[int] = []
        self.make_piece: Callable[[int], MemoryPiece] = MemoryPiece

    def plan(self, before: MemoryState | None) -> int:
        """Compare the memory with the state before, if there is one; return how many bytes have to be copied."""
        number = -(-self.size // PIECE_BYTES)
        if before is None or before.size != self.size:
            self._changed = list(range(number))
        else:
            self._before = before.pieces
            self._changed = [n for n in range(number) if not self._is_unchanged(n * PIECE_BYTES, before.pieces[n])]
        return sum(map(self._length, self._changed))

    def take(self) -> None:
        """Copy the pieces that have changed."""
        self.pieces = list(self._before) or [MemoryPiece(0)] * -(-self.size // PIECE_BYTES)
        for number in self._changed:
            piece = self.pieces[number] = self.make_piece(self._length(number))
            self.read(number * PIECE_BYTES, piece)
        self._before, self._changed = [], []

    def now(self) -> MemoryState:
        """Return the present bytes, which share the pieces that are the same."""
        state = type(self)(self.value)
        state.plan(self)
        state.take()
        return state

    def _is_unchanged(self, offset: int, piece: MemoryPiece) -> bool:
        if piece.hash is None:
            return self.equal(offset, piece)
        return self.hash_at(offset, piece.size) == piece.hash

    def _length(self, number: int) -> int:
        return min(PIECE_BYTES, self.size - number * PIECE_BYTES)

    def differs(self) -> bool:
        """Whether the memory has another size or other bytes now."""
        if self.size_now() != self.size:
            return True
        return any(not self.equal(number * PIECE_BYTES, piece) for number, piece in enumerate(self.pieces))

    def restore(self) -> None:
        """Write the pieces that differ."""
        if self.size_now() != self.size:
            self.resize()
        for number, piece in enumerate(self.pieces):
            if not self.equal(number * PIECE_BYTES, piece):
                self.write(number * PIECE_BYTES, piece)

    def address(self) -> int:
        """Return the address of the memory."""
        raise NotImplementedError

    def size_now(self) -> int:
        """Return the size of the memory."""
        raise NotImplementedError

    def resize(self) -> None:
        """Give the memory its size again."""
        raise NotImplementedError

    def hash_at(self, offset: int, size: int) -> str | None:
        """Return the hash of the bytes at an offset; None if no fast hash is installed."""
        function = fast_hash()
        return None if function is None else function(bytes_at(self.address() + offset, size))

    def equal(self, offset: int, piece: MemoryPiece) -> bool:
        """Whether the bytes at an offset are these."""
        return not _libc.memcmp(piece.saved.data_ptr(), self.address() + offset, piece.size)

    def read(self, offset: int, piece: MemoryPiece) -> None:
        """Copy the bytes at an offset, and hash the copy: a thread of the user may change the memory meanwhile."""
        _libc.memmove(piece.saved.data_ptr(), self.address() + offset, piece.size)
        function = fast_hash()
        piece.hash = None if function is None else function(bytes_at(piece.saved.data_ptr(), piece.size))

    def write(self, offset: int, piece: MemoryPiece) -> None:
        """Write the bytes at an offset."""
        _libc.memmove(self.address() + offset, piece.saved.data_ptr(), piece.size)


class StorageBytes(MemoryState):
    """The bytes of a storage of a tensor."""

    __slots__ = ()

    def address(self) -> int:
        """Return the address of the storage."""
        return int(self.value.data_ptr())

    def size_now(self) -> int:
        """Return the size of the storage."""
        return int(self.value.nbytes())

    def resize(self) -> None:
        """Give the storage its size again."""
        self.value.resize_(self.size)

    def obstacle(self) -> str | None:
        """Return why the storage cannot have its size again."""
        if self.value.nbytes() != self.size and not self.value.resizable():
            return "the memory of a tensor has another size now, which cannot be changed back"
        return None


class DeviceBytes(StorageBytes):
    """The bytes of a storage on a device, copied to the host: the one place where undo touches devices."""

    __slots__ = ()

    def _part(self, offset: int, size: int) -> torch.Tensor:
        """Return a part of the storage as a tensor, when the device has done what cells have queued on any stream."""
        device = self.value.device
        getattr(torch, device.type).synchronize(device)
        return torch.empty(0, dtype=torch.uint8, device=device).set_(self.value, offset, (size,), (1,))

    def hash_at(self, offset: int, size: int) -> str | None:
        """Return the hash of the bytes at an offset, computed on the device: the copy stays on the host."""
        return devicehash.digest(self._part(offset, size))

    def equal(self, offset: int, piece: MemoryPiece) -> bool:
        """Whether the bytes at an offset are these: compared on the device."""
        part = self._part(offset, piece.size)
        return torch.equal(part, piece.saved.to(part.device))

    def read(self, offset: int, piece: MemoryPiece) -> None:
        """Copy the bytes at an offset to the host, and hash the same bytes on the device."""
        part = self._part(offset, piece.size).clone()
        piece.saved.copy_(part)
        piece.hash = devicehash.digest(part)

    def write(self, offset: int, piece: MemoryPiece) -> None:
        """Write the bytes at an offset."""
        self._part(offset, piece.size).copy_(piece.saved)


class ArrayBytes(MemoryState):
    """The bytes of a numpy array that owns its memory, without gaps and objects."""

    __slots__ = ("_shape",)

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self._shape = value.shape

    def address(self) -> int:
        """Return the address of the first element in memory."""
        return _address(self.value)

    def size_now(self) -> int:
        """Return the size of the array."""
        return int(self.value.nbytes)

    def resize(self) -> None:
        """Give the array its size again."""
        _ndarray().resize(self.value, self._shape, refcheck=False)

    def obstacle(self) -> str | None:
        """Return why the memory cannot have its size again."""
        if self.value.nbytes != self.size and not self.value.flags.owndata:
            return "a numpy array has memory of another size now, which belongs to another object"
        return None


class ArrayItems(Memento):
    """The elements of a numpy array of objects, or of one with gaps in memory that belongs to no object."""

    phase = 2
    __slots__ = ("saved",)

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.saved = _array_copy(value)
        self.num_bytes = int(value.nbytes) + 200

    def differs(self) -> bool:
        """Whether an element is another now; objects are compared by identity."""
        value, saved = self.value, self.saved
        if value.shape != saved.shape or value.dtype != saved.dtype:
            return True
        if value.dtype.hasobject:
            return not all(map(is_, value.ravel().tolist(), saved.ravel().tolist()))
        return bool(value.tobytes() != saved.tobytes())

    def restore(self) -> None:
        """Write the elements back."""
        if self.value.shape != self.saved.shape:
            _ndarray().resize(self.value, self.saved.shape, refcheck=False)
        was_writeable = self.value.flags.writeable
        self.value.flags.writeable = True
        self.value[...] = self.saved
        self.value.flags.writeable = was_writeable


def _array_copy(value: Any) -> Any:
    import numpy as np  # torch runs without it

    return np.array(value, order="K", copy=True, subok=False)


def _address(value: Any) -> int:
    return int(value.__array_interface__["data"][0])


class ArrayLayout(Memento):
    """Shape, strides and type of a numpy array, which can be set in place."""

    phase = 1
    __slots__ = ("saved",)

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.saved = self._now()

    def _now(self) -> tuple[Any, ...]:
        value = self.value
        return value.shape, value.strides, value.dtype, value.flags.writeable

    def differs(self) -> bool:
        """Whether the layout is another now."""
        return self._now() != self.saved

    def restore(self) -> None:
        """Set the layout."""
        shape, strides, dtype, writeable = self.saved
        value = self.value
        if (value.shape, value.strides, value.dtype) != (shape, strides, dtype):
            size = 1
            for length in shape:
                size *= length
            if value.size * value.itemsize != size * dtype.itemsize:
                _ndarray().resize(value, shape, refcheck=False)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # numpy discourages it, and has no other way
                value.dtype = dtype
                value.shape = shape
                if value.strides != strides:
                    value.strides = strides
        if value.flags.writeable != writeable:
            value.flags.writeable = writeable


def _ndarray() -> Any:
    import numpy as np

    return np.ndarray
