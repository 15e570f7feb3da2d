"""How tensors, storages and arrays are written: their bytes go to blocks, and the stream has the rest."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch

from jupyter_dist.rank.collectives.torch_compat import has_hooks, is_simple, simply_reduced, wrapper_parts

from . import marks
from .memory import MemoryTable

Reduced = Any  # what __reduce__ returns
Way = Callable[["TensorReducer", Any], Reduced]

_CHANGES = "was saved without "


class TensorReducer:
    """Reduces tensors, storages and arrays for one stream.

    Attributes:
        blocks: the numbers of the blocks that the stream names.
        notes: what of tensors is not written.
    """

    def __init__(self, table: MemoryTable) -> None:
        self._table = table
        self.blocks: set[int] = set()
        self.notes: set[str] = set()

    @staticmethod
    def way_of(kind: type) -> Way | None:
        """Return the method that reduces objects of a class; None if it is no class of tensors, storages or arrays."""
        if issubclass(kind, torch.Tensor):
            return TensorReducer._reduce_tensor
        numpy = sys.modules.get("numpy")
        return TensorReducer._reduce_array if kind is getattr(numpy, "ndarray", None) else _WAYS.get(kind)

    def _reduce_tensor(self, tensor: torch.Tensor) -> Reduced:
        """Reduce a tensor of any class: as torch does, and with its gradient."""
        is_hooked = has_hooks(tensor)
        if not is_hooked and is_simple(tensor):
            reduced = simply_reduced(tensor)
        elif not is_hooked and type(tensor) in _PLAIN and tensor.layout is torch.strided:
            reduced = tensor.__reduce_ex__(2)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about hooks: they are noted
                reduced = tensor.__reduce_ex__(2)
        self._note(tensor, is_hooked)
        reduced = _with_typed_storage(_without_lost_storage(tensor, reduced))
        state: dict[str, Any] = {}
        if tensor.is_leaf and tensor.grad is not None:  # also if it needs none any more
            state["grad"] = tensor.grad
        if type(tensor) in _PLAIN and tensor.layout is torch.strided and tensor.numel() and _is_empty(tensor):
            state["is_empty"] = True
        if not state or not isinstance(reduced, tuple) or any(part is not None for part in reduced[2:]):
            return reduced
        return (*reduced[:2], state, None, None, marks.set_tensor)

    def _note(self, tensor: torch.Tensor, is_hooked: bool) -> None:
        if not tensor.is_leaf:
            self.notes.add(f"a tensor {_CHANGES}its autograd graph: backward() through it needs its cell again")
        if is_hooked:
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

    def _reduce_generator(self, generator: torch.Generator) -> Reduced:
        if generator is torch.default_generator:
            return getattr, (torch, "default_generator")
        return marks.generator, (str(generator.device), generator.get_state())

    def _reduce_device(self, device: torch.device) -> Reduced:
        return marks.device, (str(device),)


_WAYS: dict[type, Way] = {
    torch.UntypedStorage: TensorReducer._reduce_storage,
    torch.storage.TypedStorage: TensorReducer._reduce_typed_storage,
    torch.Generator: TensorReducer._reduce_generator,
    torch.device: TensorReducer._reduce_device,
}
_PLAIN = (torch.Tensor, torch.nn.Parameter)


def _is_empty(tensor: torch.Tensor) -> bool:
    """Whether the memory of a tensor was given up, as FSDP does with parameters between their uses."""
    return tensor.device.type != "meta" and not tensor.is_nested and not tensor.untyped_storage().nbytes()


def _without_lost_storage(tensor: torch.Tensor, reduced: Reduced) -> Reduced:
    """Correct a tensor that wraps others and has an offset: torch takes the address of the wrapper for memory."""
    if not isinstance(reduced, tuple) or len(reduced[1]) != _PARTS_OF_SUBCLASS or reduced[1][1] is not type(tensor):
        return reduced
    storage = reduced[1][2][0] if reduced[1][2] else None
    if type(storage) is not torch.storage.TypedStorage or _has_memory(storage):
        return reduced
    parts = wrapper_parts(tensor)
    return reduced if parts is None else (reduced[0], (parts[0], reduced[1][1], parts[1], reduced[1][3]))


_PARTS_OF_SUBCLASS = 4  # function, class, arguments, state


def _has_memory(storage: Any) -> bool:
    try:
        storage._untyped_storage.data_ptr()
    except RuntimeError:
        return False
    return True


def _with_typed_storage(reduced: Reduced) -> Reduced:
    """Give torch a storage of its old class, which it expects also for tensors that it reduces without one."""
    if not isinstance(reduced, tuple) or not reduced[1]:
        return reduced
    first, *others = reduced[1]
    if type(first) is torch.UntypedStorage:
        first = torch.storage.TypedStorage(wrap_storage=first, dtype=torch.uint8, _internal=True)
    elif len(others) == _PARTS_OF_SUBCLASS - 1 and isinstance(others[0], type):  # also one with attributes
        others[1] = _with_typed_storage((first, others[1]))[1]
    return (reduced[0], (first, *others), *reduced[2:])


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
