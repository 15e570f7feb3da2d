"""The memory that a value holds: storages of tensors, buffers of arrays, large texts and lists; each once.

Views share a storage, so sizes are the storages' and not the shapes'. The contents of objects are read by the rules of
opening.py: no code of users runs. Every walk ends after a number of steps.
"""

from __future__ import annotations

import itertools
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from jupyter_dist.rank.collectives.torch_compat import local_tensor

from .opening import MAX_DEPTH, StepBudget, children, ids, is_array, is_kind_of, is_tensor, module_of
from .tensors import look

Storage = tuple[str, int]  # its device and address

PARTS = ("parameters", "buffers", "gradients", "state")
MIN_PLAIN_BYTES = 1 << 20  # of texts, and of lists without their items: smaller ones are not worth a line

_TEXTS = (str, bytes, bytearray)
_DICTIONARIES = (dict, OrderedDict, defaultdict)
_SEQUENCES = (list, tuple, set, frozenset, deque)


_PLAIN_IDS = ids((int, float, bool, complex, type(None), slice, range, torch.dtype, torch.device, torch.Size))
_TEXT_IDS, _SIZED_IDS = ids(_TEXTS), ids((*_TEXTS, *_DICTIONARIES, *_SEQUENCES))


@dataclass
class Holding:
    """The storages that a value holds, with their sizes, and to which part of a module or optimizer each belongs."""

    bytes_by: dict[Storage, int] = field(default_factory=dict)
    part_of: dict[Storage, str] = field(default_factory=dict)
    is_whole: bool = True  # False: the walk ended before the end of the value

    @property
    def num_bytes(self) -> int:
        """The size of all storages, each counted once."""
        return sum(self.bytes_by.values())

    @property
    def parts(self) -> dict[str, int]:
        """Return the bytes of `parameters`, `buffers`, `gradients` and `state`, as far as there are any."""
        totals = dict.fromkeys(PARTS, 0)
        for storage, part in self.part_of.items():
            totals[part] += self.bytes_by[storage]
        return {part: size for part, size in totals.items() if size}

    def add(self, storage: Storage, size: int, part: str) -> None:
        """Add a storage; the first part that has it counts."""
        if size and storage not in self.bytes_by:
            self.bytes_by[storage] = size
            if part:
                self.part_of[storage] = part


_OURS = "jupyter_dist."


def held_by(value: Any, steps: StepBudget, outside: Iterable[int] = ()) -> Holding:
    """Return the memory that a value holds, itself and through its contents.

    Args:
        value: the value to look at.
        steps: the limit of the walk; reduced by the objects that were looked at.
        outside: ids of objects that are not part of any value, such as the namespace.
    """
    holding = Holding()
    seen = set(outside)
    todo: deque[tuple[Any, str, int]] = deque([(value, "", 0)])
    while todo:
        one, part, depth = todo.popleft()
        if id(type(one)) in _PLAIN_IDS or id(one) in seen:
            continue
        if steps.left <= 0 or depth > MAX_DEPTH:
            holding.is_whole = False
            break
        steps.left -= 1
        seen.add(id(one))
        if depth and module_of(type(one)).startswith(_OURS):  # what observes a model is no part of it
            continue
        _add(holding, one, part)
        found = (child for child in children(one) if id(type(child[1])) not in _PLAIN_IDS)
        parts = list(itertools.islice(found, steps.left))
        steps.left -= len(parts)
        todo.extend((child, of_part or part, depth + 1) for _, child, of_part in parts)
        if is_tensor(one) and (gradient := gradient_of(one)) is not None:
            todo.append((gradient, "gradients", depth + 1))
    return holding


def _add(holding: Holding, value: Any, part: str) -> None:
    """Add the value's own memory."""
    if is_tensor(value):
        _add_tensor(holding, value, part)
    elif is_array(value):
        _add_array(holding, value, part)
    elif id(type(value)) in _SIZED_IDS:
        size = sys.getsizeof(value)
        if size >= MIN_PLAIN_BYTES:
            holding.add(("cpu", id(value)), size, part)
    elif is_kind_of(value, torch.Tensor):
        _add_tensor(holding, value, part)


def parts_with_storage(value: Any) -> Iterator[Any]:
    """Yield the strided tensors that have the memory of a tensor: itself, or the parts of a sparse one or a subclass.

    Args:
        value: a tensor, also of a subclass: of a DTensor the local part is found.
    """
    if is_tensor(value):
        yield from _strided(value)
        return
    local = local_tensor(value)
    if local is not None:
        yield from _strided(local) if is_tensor(local) else ()
        return
    found = look(value)
    for one in (found.leaf, *(inner for _, inner in found.parts)):
        if is_tensor(one):
            yield from _strided(one)


def _strided(tensor: Any) -> Iterator[Any]:
    if tensor.is_nested or tensor.device.type == "meta":
        return
    if tensor.layout is torch.strided:
        yield tensor
    elif tensor.layout is not torch.sparse_coo or tensor.is_coalesced():  # else it would be copied
        for _, inner in look(tensor).parts:
            if is_tensor(inner):
                yield from _strided(inner)


def _add_tensor(holding: Holding, value: Any, part: str) -> None:
    for tensor in parts_with_storage(value):
        try:
            storage = tensor.untyped_storage()
            holding.add((str(tensor.device), int(storage.data_ptr())), int(storage.nbytes()), part)
        except (RuntimeError, NotImplementedError):  # a wrapper of a transform has none
            continue


def _add_array(holding: Holding, array: Any, part: str) -> None:
    """Add the memory of an array: for a view, the memory of its base array or tensor."""
    while is_array(array.base):
        array = array.base
    if is_tensor(array.base):
        _add_tensor(holding, array.base, part)
    else:
        holding.add(("cpu", int(array.__array_interface__["data"][0])), int(array.nbytes), part)


def gradient_of(tensor: Any) -> Any:
    """Return the gradient of a leaf; None if there is none."""
    try:
        return tensor.grad if tensor.requires_grad and tensor.is_leaf else None
    except RuntimeError:  # one of several views, whose base was changed in place: torch refuses to look
        return None
