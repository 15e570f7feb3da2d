"""How tensors, storages and arrays are written: their bytes go to blocks, and the stream has the rest."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch

from jupyter_dist.rank.collectives.torch_compat import has_hooks

from . import marks
from .memory import MemoryTable

Reduced = Any  # what __reduce__ returns

_CHANGES = "was saved without "


class TensorReducer:
    """Reduces tensors, storages and arrays for one stream.

    Attributes:
        blocks: the numbers of the blocks that the stream names.
        notes: what of tensors is not saved.
    """

    def __init__(self, table: MemoryTable) -> None:
        self._table = table
        self.blocks: set[int] = set()
        self.notes: set[str] = set()
        self.by_kind: dict[type, Callable[[Any], Reduced]] = {
            torch.UntypedStorage: self._reduce_storage,
            torch.storage.TypedStorage: self._reduce_typed_storage,
            torch.Generator: _reduce_generator,
        }
        numpy = sys.modules.get("numpy")
        if numpy is not None and hasattr(numpy, "ndarray"):
            self.by_kind[numpy.ndarray] = self._reduce_array

    def reduce_tensor(self, tensor: torch.Tensor) -> Reduced:
        """Reduce a tensor of any class: as torch does, and with its gradient."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about hooks: they are noted
            reduced = tensor.__reduce_ex__(2)
        self._note(tensor)
        grad = tensor.grad if tensor.is_leaf and tensor.requires_grad else None
        if grad is None or not isinstance(reduced, tuple) or any(part is not None for part in reduced[2:]):
            return reduced
        return (*reduced[:2], {"grad": grad}, None, None, marks.set_tensor)

    def _note(self, tensor: torch.Tensor) -> None:
        if not tensor.is_leaf:
            self.notes.add(f"a tensor {_CHANGES}its autograd graph: backward() through it needs its cell again")
        if has_hooks(tensor):
            self.notes.add(f"a tensor {_CHANGES}its hooks: register them again")

    def _block_of(self, storage: Any) -> int:
        number = self._table.add_storage(storage)
        self.blocks.add(number)
        return number

    def _reduce_storage(self, storage: Any) -> Reduced:
        return marks.storage, (self._block_of(storage),)

    def _reduce_typed_storage(self, storage: Any) -> Reduced:
        return marks.storage, (self._block_of(storage._untyped_storage), storage.dtype)

    def _reduce_array(self, array: Any) -> Reduced:
        if array.dtype.hasobject:
            return NotImplemented
        base = array.base
        if type(base) is type(array) and not base.dtype.hasobject and _is_one_piece(base):
            offset = _address(array) - _address(base)
            place = (offset, array.dtype, array.shape, array.strides, array.flags.writeable)
            return marks.array_view, (base, *place)
        start, num_bytes = _extent(array)
        number = self._table.add_array(start, num_bytes, array)
        self.blocks.add(number)
        place = (_address(array) - start, array.dtype, array.shape, array.strides, array.flags.writeable)
        return marks.array, (number, bool(array.flags.owndata), *place)


def _reduce_generator(generator: torch.Generator) -> Reduced:
    if generator is torch.default_generator:
        return getattr, (torch, "default_generator")
    return marks.generator, (str(generator.device), generator.get_state())


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def _is_one_piece(array: Any) -> bool:
    return bool(array.flags.c_contiguous or array.flags.f_contiguous)


def _extent(array: Any) -> tuple[int, int]:
    """Return the address and the number of the bytes between the first and the last byte of an array."""
    if not array.size:
        return _address(array), 0
    low = high = _address(array)
    for length, stride in zip(array.shape, array.strides, strict=True):
        low += min((length - 1) * stride, 0)
        high += max((length - 1) * stride, 0)
    return low, high + array.itemsize - low
