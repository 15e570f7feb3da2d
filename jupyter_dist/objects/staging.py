"""Large tensors on a device are copied into the file of an exchange in chunks, through pinned memory.

Without it they are copied twice: into new memory of the process, whose pages must be allocated (0.6 s for each GiB on
an H100), and from there into the file.
"""

from __future__ import annotations

import ctypes
import mmap
import pickle
import sys
from collections.abc import Iterator
from typing import Any

from jupyter_dist.protocol.accelerators import DEVICE_TYPES

MIN_BYTES = 4 << 20
CHUNK_BYTES = 64 << 20
_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)  # of Linux; Python 3.10 does not name it

_pinned: list[Any] = []  # two chunks, kept: pinning memory takes as long as copying it


class OnDevice(mmap.mmap):
    """The place of a tensor's bytes in a pickle. They are not in it: `parts` copies them from the device."""

    storage: Any

    @classmethod
    def of(cls, storage: Any) -> OnDevice:
        """Return the place of this storage. Its pages are never used, so it takes no memory."""
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE
        place = cls(-1, storage.nbytes(), flags=flags)
        place.storage = storage
        return place


def is_staged(storage: Any) -> bool:
    """Whether a tensor's storage is copied in chunks."""
    return bool(storage.device.type in DEVICE_TYPES and storage.nbytes() >= MIN_BYTES)


def parts(piece: memoryview) -> Iterator[memoryview]:
    """Yield the bytes of a piece in order; each part is valid until the next one is asked for."""
    if isinstance(piece.obj, OnDevice):
        yield from chunks_of(piece.obj.storage)
    else:
        yield piece


def chunks_of(storage: Any) -> Iterator[memoryview]:
    """Yield the bytes of a storage on a device in order; each chunk is valid until the next one is asked for."""
    torch = sys.modules["torch"]
    module = getattr(torch, storage.device.type)
    with module.device(storage.device), torch.no_grad():
        source = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
        if not _pinned:
            _pinned.extend(_chunks(torch))
        under_way: tuple[Any, Any] | None = None  # the chunk that the device copies while the one before is written
        for number, start in enumerate(range(0, source.numel(), CHUNK_BYTES)):
            size = min(CHUNK_BYTES, source.numel() - start)
            chunk = _pinned[number % 2][:size]
            chunk.copy_(source[start : start + size], non_blocking=True)
            copied = module.Event()
            copied.record()
            if under_way is not None:
                yield _written(*under_way)
            under_way = chunk, copied
        if under_way is not None:
            yield _written(*under_way)


def _chunks(torch: Any) -> list[Any]:
    try:
        return [torch.empty(CHUNK_BYTES, dtype=torch.uint8, pin_memory=True) for _ in range(2)]
    except RuntimeError:  # this process may not pin memory
        return [torch.empty(CHUNK_BYTES, dtype=torch.uint8) for _ in range(2)]


def _written(chunk: Any, copied: Any) -> memoryview:
    """Return the bytes of a chunk once the device has copied them."""
    copied.synchronize()
    return pickle.PickleBuffer((ctypes.c_ubyte * chunk.numel()).from_address(chunk.data_ptr())).raw()
