"""The memory of tensors and arrays before a cell: bytes, copied only if they have changed since the last copy.

Bytes are compared and copied by the C library: a tensor's counter of versions misses what numpy, extensions and
collectives write. Devices are behind `DeviceBytes`: their storages are copied to the host and compared on the device.
"""

from __future__ import annotations

import ctypes
import warnings
from typing import Any

import torch

from .mementos import Memento

_libc = ctypes.CDLL(None)
_libc.memcmp.argtypes = _libc.memmove.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_libc.memmove.restype = ctypes.c_void_p
CHUNK_BYTES = 64 << 20  # of a comparison on a device


class StorageBytes(Memento):
    """The bytes of a storage of a tensor."""

    phase = 2
    __slots__ = ("copy", "size")

    def __init__(self, value: torch.UntypedStorage) -> None:
        super().__init__(value)
        self.size = value.nbytes()
        self.num_bytes = self.size + 200
        self.copy: torch.Tensor | None = None

    def take(self) -> None:
        """Copy the bytes."""
        self.copy = torch.empty(self.size, dtype=torch.uint8)
        if self.value.device.type == "cpu":
            _libc.memmove(self.copy.data_ptr(), self.value.data_ptr(), self.size)
        else:
            DeviceBytes(self.value).copy_to(self.copy)

    def differs(self) -> bool:
        """Whether the storage has another size or other bytes now."""
        if self.value.nbytes() != self.size or self.copy is None:
            return True
        if self.size == 0:
            return False
        if self.value.device.type == "cpu":
            return bool(_libc.memcmp(self.copy.data_ptr(), self.value.data_ptr(), self.size))
        return not DeviceBytes(self.value).equal(self.copy)

    def obstacle(self) -> str | None:
        """Return why the storage cannot have its size again."""
        if self.value.nbytes() != self.size and not self.value.resizable():
            return "the memory of a tensor has another size now, which cannot be changed back"
        return None

    def restore(self) -> None:
        """Write the bytes back."""
        if self.value.nbytes() != self.size:
            self.value.resize_(self.size)
        if self.size == 0 or self.copy is None:
            return
        if self.value.device.type == "cpu":
            _libc.memmove(self.value.data_ptr(), self.copy.data_ptr(), self.size)
        else:
            DeviceBytes(self.value).copy_from(self.copy)


class DeviceBytes:
    """The bytes of a storage on a device, as a tensor: the one place where undo touches devices."""

    def __init__(self, storage: torch.UntypedStorage) -> None:
        self._bytes = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)

    def copy_to(self, host: torch.Tensor) -> None:
        """Copy to the host; waits for work that the device has queued on the current stream."""
        host.copy_(self._bytes)

    def copy_from(self, host: torch.Tensor) -> None:
        """Copy from the host."""
        self._bytes.copy_(host)

    def equal(self, host: torch.Tensor) -> bool:
        """Whether the bytes are these; a part at a time, because the device may be nearly full."""
        for start in range(0, host.numel(), CHUNK_BYTES):
            part = host[start : start + CHUNK_BYTES].to(self._bytes.device)
            if not torch.equal(self._bytes[start : start + CHUNK_BYTES], part):
                return False
        return True


class ArrayBytes(Memento):
    """The bytes of a numpy array that owns its memory, or the references of one with objects."""

    phase = 2
    __slots__ = ("copy", "shape", "size")

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.size = int(value.nbytes)
        self.shape = value.shape
        self.num_bytes = self.size + 200
        self.copy: Any = None

    def take(self) -> None:
        """Copy the elements, in the order in which they are in memory."""
        self.copy = _array_copy(self.value)

    def differs(self) -> bool:
        """Whether the array has another size or other bytes now; elements that are objects are compared by identity."""
        if self.copy is None or self.value.nbytes != self.size:
            return True
        return self.size > 0 and bool(_libc.memcmp(_address(self.copy), _address(self.value), self.size))

    def obstacle(self) -> str | None:
        """Return why the memory cannot have its size again."""
        if self.value.nbytes != self.size and not self.value.flags.owndata:
            return "a numpy array has memory of another size now, which belongs to another object"
        return None

    def restore(self) -> None:
        """Write the elements back."""
        if self.value.nbytes != self.size:
            type(self.copy).resize(self.value, self.shape, refcheck=False)
        if self.size == 0:
            return
        if self.value.dtype.hasobject:
            was_writeable = self.value.flags.writeable
            self.value.flags.writeable = True
            self.value[...] = self.copy  # which counts references
            self.value.flags.writeable = was_writeable
        else:
            _libc.memmove(_address(self.value), _address(self.copy), self.size)


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
