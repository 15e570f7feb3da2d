"""The memory below tensors and arrays: blocks, and which of them are parts of one memory.

A block is a storage of torch, or the bytes of an array. Blocks overlap where NumPy and torch share memory; then
they are parts of one memory, which is written once.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

import torch

from jupyter_dist.rank.collectives.torch_compat import devices_in_use
from jupyter_dist.rank.state.store import devicehash
from jupyter_dist.rank.state.store.hashing import DEVICE

_PLAIN_KINDS = "biufcmMSU"  # of dtypes whose short name is all of them


@dataclass
class MemoryBlock:
    """A storage, or the bytes of an array."""

    device: str
    start: int
    num_bytes: int
    owner: Any  # keeps the memory alive, so that no other block gets its address meanwhile
    is_array: bool
    layout: dict[str, Any] | None = None  # of the array that owns exactly these bytes


@dataclass
class Memory:
    """Bytes to write together.

    Attributes:
        blocks: their numbers; each is a part of these bytes.
        is_array: Whether an array owns the bytes when they are read, and not a storage of torch.
        layout: of that array, if the user has it.
    """

    device: str
    start: int
    num_bytes: int
    owner: Any
    is_array: bool
    is_pinned: bool = False
    is_shared: bool = False
    layout: dict[str, Any] | None = None
    blocks: list[int] = field(default_factory=list)

    def read(self, position: int, num_bytes: int) -> memoryview:
        """Return a part of the bytes: the memory itself, or a copy of what a device has."""
        if self.device == "cpu":
            return bytes_at(self.start + position, num_bytes)
        part = self._whole()[position : position + num_bytes].cpu()
        return memoryview(part.numpy()).cast("B")

    def name(self, position: int, num_bytes: int) -> str:
        """Return the name of a chunk with a part of the bytes, computed by their device."""
        return DEVICE + devicehash.digest(self._whole()[position : position + num_bytes])

    def _whole(self) -> torch.Tensor:
        return torch.empty(0, dtype=torch.uint8, device=self.device).set_(self.owner)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of a manifest."""
        return {
            "device": self.device,
            "num_bytes": self.num_bytes,
            "is_array": self.is_array,
            "is_pinned": self.is_pinned,
            "is_shared": self.is_shared,
            "layout": self.layout,
        }


class MemoryTable:
    """All blocks, numbered as they are found."""

    def __init__(self) -> None:
        self.blocks: list[MemoryBlock] = []
        self._numbers: dict[tuple[str, int, int], int] = {}
        self._memories: list[Memory] | None = None  # None: they may have changed

    def add_storage(self, storage: Any) -> int:
        """Return the number of the block that is this storage."""
        device = str(storage.device)
        return self._add(MemoryBlock(device, storage.data_ptr(), storage.nbytes(), storage, False))

    def add_array(self, start: int, num_bytes: int, owner: Any) -> int:
        """Return the number of the block that is the memory of this array."""
        return self._add(MemoryBlock("cpu", start, num_bytes, owner, True, _layout_of(owner)))

    def _add(self, block: MemoryBlock) -> int:
        if not block.num_bytes:  # storages without bytes have no address to compare
            key = (block.device, -id(block.owner), 0)
        else:
            key = (block.device, block.start, block.num_bytes)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.blocks)
            self.blocks.append(block)
            self._memories = None
        elif block.is_array:
            self._memories = None
            self.blocks[number].is_array = True
            self.blocks[number].layout = self.blocks[number].layout or block.layout
        return number

    def memories(self) -> list[Memory]:
        """Return all memory, in the order of the first block of each."""
        if self._memories is None:
            self._memories = self._found()
        return self._memories

    def _found(self) -> list[Memory]:
        found: list[Memory] = []
        known: Memory | None = None
        has_devices = bool(devices_in_use())
        for number in sorted(range(len(self.blocks)), key=self._place):
            block = self.blocks[number]
            if known is None or not _overlaps(known, block):
                known = Memory(block.device, block.start, block.num_bytes, block.owner, block.is_array)
                known.is_pinned, known.is_shared = _kind_of(block, has_devices)
                found.append(known)
            known.num_bytes = max(known.num_bytes, block.start + block.num_bytes - known.start)
            known.is_array = known.is_array or block.is_array
            known.blocks.append(number)
            if block.layout is not None and (block.start, block.num_bytes) == (known.start, known.num_bytes):
                known.layout = block.layout
        return sorted(found, key=lambda memory: min(memory.blocks))

    def _place(self, number: int) -> tuple[str, int, int]:
        block = self.blocks[number]
        return block.device, block.start, -block.num_bytes


def bytes_at(address: int, num_bytes: int) -> memoryview:
    """Return the bytes of this process at an address. Unlike `tensor.numpy()`, this leaves a storage resizable."""
    return memoryview((ctypes.c_char * num_bytes).from_address(address)).cast("B") if num_bytes else memoryview(b"")


def _layout_of(array: Any) -> dict[str, Any] | None:
    """Return the shape of an array that owns its memory; None if it does not, or its dtype has no short name."""
    flags = array.flags
    if not flags.owndata or not (flags.c_contiguous or flags.f_contiguous) or array.dtype.kind not in _PLAIN_KINDS:
        return None
    return {"dtype": array.dtype.str, "shape": list(array.shape), "order": "C" if flags.c_contiguous else "F"}


def _overlaps(memory: Memory, block: MemoryBlock) -> bool:
    end = memory.start + memory.num_bytes
    return bool(block.num_bytes) and memory.device == block.device and block.start < end


def _kind_of(block: MemoryBlock, has_devices: bool) -> tuple[bool, bool]:
    """Return whether the memory of a storage is pinned, and whether processes share it."""
    if block.is_array or block.device != "cpu":
        return False, False
    is_pinned = has_devices and bool(block.owner.is_pinned())
    return is_pinned, bool(block.owner.is_shared())
