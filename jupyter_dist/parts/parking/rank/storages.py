"""The storages of this process that can be moved, and what must stay where it is, with the reason.

A storage is the memory that a tensor and its views share. It can be emptied and filled again under the same objects,
as FSDP does. This is wrong for memory that something else than a tensor refers to by its address.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from jupyter_dist.protocol.accelerators import SHARING_LIBRARIES
from jupyter_dist.rank.cells.values.opening import is_kind_of
from jupyter_dist.rank.cells.values.storages import gradient_of, parts_with_storage
from jupyter_dist.rank.collectives import captures
from jupyter_dist.rank.guard.own import gc

MIB = 1 << 20


@dataclass
class FoundStorages:
    """The storages on one kind of device."""

    movable: list[Any] = field(default_factory=list)
    left_bytes: Counter[str] = field(default_factory=Counter)  # by the reason

    @property
    def num_bytes(self) -> int:
        """The size of what can be moved."""
        return sum(storage.nbytes() for storage in self.movable)

    def sentences(self) -> list[str]:
        """Return a sentence for each reason why memory stays where it is."""
        return [f"{_size(size)} stay where they are: {why}." for why, size in sorted(self.left_bytes.items())]


def find_storages(device_type: str) -> FoundStorages:
    """Return the storages of all tensors of this process on this kind of device (main thread)."""
    found = FoundStorages()
    seen: set[tuple[Any, int]] = set()
    # Not by variables: tensors are in models, optimizers, closures and lists. No code of users runs: types are compared
    # by identity.
    for value in gc.get_objects():
        if is_kind_of(value, torch.Tensor):
            for tensor in _with_gradient(value):
                _add(found, seen, tensor, device_type)
    return found


def why_addresses_matter() -> str | None:
    """Return a reason why addresses of tensors must not change, as they do when storages are moved; or None."""
    if captures.has_captured():
        return "a graph of the device was captured, which replays with the addresses of its tensors"
    for name in SHARING_LIBRARIES:
        if name in sys.modules:
            return f"{name} is imported, which may share the memory of tensors by its address"
    return None


def _with_gradient(value: Any) -> Iterator[Any]:
    for tensor in parts_with_storage(value):
        yield tensor
        gradient = gradient_of(tensor)
        if gradient is not None:
            yield from parts_with_storage(gradient)


def _add(found: FoundStorages, seen: set[tuple[Any, int]], tensor: Any, device_type: str) -> None:
    if tensor.device.type != device_type:
        return
    try:
        storage = tensor.untyped_storage()
        size = int(storage.nbytes())
    except (RuntimeError, NotImplementedError):  # a wrapper of a transform has none
        return
    place = (storage.device, int(storage.data_ptr()))
    if place in seen or not size:
        return
    seen.add(place)
    why = _why_not(storage)
    if why is None:
        found.movable.append(storage)
    else:
        found.left_bytes[why] += size


def _why_not(storage: Any) -> str | None:
    if storage.device.type == "cpu" and storage.is_shared():
        return "they are shared with other processes"
    if not storage.resizable():
        return "a NumPy array, a file or another library shares them"
    return None


def _size(num_bytes: int) -> str:
    return f"{num_bytes / MIB:.0f} MiB" if num_bytes >= MIB else f"{num_bytes} bytes"
