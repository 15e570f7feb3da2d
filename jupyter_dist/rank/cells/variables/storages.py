"""The memory that a value holds: storages of tensors, buffers of arrays, large texts and lists; each once.

Views share a storage, so sizes are those of storages, not of shapes. As in leaves.py, no code of users runs: types are
read, and attributes are read from the instance's dictionary. Every walk ends after a number of steps.
"""

from __future__ import annotations

import itertools
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType, GetSetDescriptorType, MethodType, ModuleType
from typing import Any

import torch

from jupyter_dist.rank.collectives.torch_compat import local_tensor

from .leaves import MAX_DEPTH, is_array, is_tensor

Storage = tuple[str, int]  # its device and address

PARTS = ("parameters", "buffers", "gradients", "state")
MIN_PLAIN_BYTES = 1 << 20  # of texts, and of lists themselves: smaller ones are not worth a line

_TEXTS = (str, bytes, bytearray)
_DICTIONARIES = (dict, OrderedDict, defaultdict)
_SEQUENCES = (list, tuple, set, frozenset, deque)
_CODE = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)
_PARTS_OF_MODULE = {"_parameters": "parameters", "_buffers": "buffers"}
_PARTS_OF_OPTIMIZER = {"state": "state"}
_get_mro = type.__dict__["__mro__"].__get__
_get_dict = type.__dict__["__dict__"].__get__


def _ids(*types: type) -> frozenset[int]:
    """Return what to look types up by: their own hash and comparison may be code of a metaclass."""
    return frozenset(map(id, types))


_PLAIN_IDS = _ids(int, float, bool, complex, type(None), slice, range, type, torch.dtype, torch.device, torch.Size)
_TEXT_IDS, _DICTIONARY_IDS, _SEQUENCE_IDS = _ids(*_TEXTS), _ids(*_DICTIONARIES), _ids(*_SEQUENCES)
_CLOSED_IDS = _ids(*_CODE, torch.Tensor)  # with their subclasses: not opened


@dataclass
class Steps:
    """How many more objects a walk may look at."""

    left: int


@dataclass
class Holding:
    """The storages that a value holds, with their sizes, and to which part of a module or optimizer each belongs."""

    bytes_by: dict[Storage, int] = field(default_factory=dict)
    part_of: dict[Storage, str] = field(default_factory=dict)
    is_whole: bool = True  # False: the walk ended before it had seen everything

    @property
    def num_bytes(self) -> int:
        """All of it, each storage once."""
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


def held_by(value: Any, steps: Steps, outside: Iterable[int] = ()) -> Holding:
    """Return the memory that a value holds, itself and through what it contains.

    Args:
        value: what to look at.
        steps: how far; reduced by what was looked at.
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
        children = [] if _add(holding, one, part) else list(itertools.islice(_children(one, part), steps.left))
        steps.left -= len(children)
        todo.extend((child, of_part, depth + 1) for child, of_part in children)
        if is_tensor(one) and (gradient := _gradient(one)) is not None:
            todo.append((gradient, "gradients", depth + 1))
    return holding


def _add(holding: Holding, value: Any, part: str) -> bool:
    """Add the value's own memory; return whether it contains nothing else."""
    kind = id(type(value))
    if is_tensor(value):
        _add_tensor(holding, value, part)
        return True
    if is_array(value):
        _add_array(holding, value, part)
        return True
    if kind in _TEXT_IDS or kind in _DICTIONARY_IDS or kind in _SEQUENCE_IDS:
        size = sys.getsizeof(value)
        if size >= MIN_PLAIN_BYTES:
            holding.add(("cpu", id(value)), size, part)
        return kind in _TEXT_IDS
    local = local_tensor(value)
    if local is not None and is_tensor(local):
        _add_tensor(holding, local, part)
        return True
    return any(id(base) in _CLOSED_IDS for base in _get_mro(type(value)))


def _add_tensor(holding: Holding, tensor: Any, part: str) -> None:
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.device.type == "meta":
        return
    try:
        storage = tensor.untyped_storage()
        holding.add((str(tensor.device), int(storage.data_ptr())), int(storage.nbytes()), part)
    except (RuntimeError, NotImplementedError):  # a wrapper of a transform has none
        return


def _add_array(holding: Holding, array: Any, part: str) -> None:
    """Add the memory of an array: that of the one that it is a view of, or of the tensor that it came from."""
    while is_array(array.base):
        array = array.base
    if is_tensor(array.base):
        _add_tensor(holding, array.base, part)
    else:
        holding.add(("cpu", int(array.__array_interface__["data"][0])), int(array.nbytes), part)


def _gradient(tensor: Any) -> Any:
    return tensor.grad if tensor.requires_grad and tensor.is_leaf else None


def _children(value: Any, part: str) -> Iterator[tuple[Any, str]]:
    kind = type(value)
    if id(kind) in _DICTIONARY_IDS:
        yield from _of_part(dict.values(value), part)
    elif id(kind) in _SEQUENCE_IDS:
        yield from _of_part(value, part)
    else:
        parts = _parts_of(kind)
        for name, attribute in attributes_of(value).items():
            if parts is _PARTS_OF_OPTIMIZER and name == "param_groups":
                yield from _parameters_of(attribute)
            else:
                yield attribute, parts.get(name, part) if type(name) is str else part


def _parts_of(kind: type) -> dict[str, str]:
    for base in _get_mro(kind):
        if base is torch.nn.Module:
            return _PARTS_OF_MODULE
        if base is torch.optim.Optimizer:
            return _PARTS_OF_OPTIMIZER
    return {}


def _of_part(values: Iterable[Any], part: str) -> Iterator[tuple[Any, str]]:
    return ((value, part) for value in values if id(type(value)) not in _PLAIN_IDS)


def _parameters_of(groups: Any) -> Iterator[tuple[Any, str]]:
    """Yield what an optimizer changes: the parameters in its groups, which belong to a model as well."""
    if type(groups) is list:
        yield from ((group.get("params"), "parameters") for group in groups if type(group) is dict)


def attributes_of(value: Any) -> dict[Any, Any]:
    """Return the instance's dictionary of attributes, past properties and `__getattr__`; empty if it has none."""
    for base in _get_mro(type(value)):
        descriptor = _get_dict(base).get("__dict__")
        if descriptor is None:
            continue
        if type(descriptor) is not GetSetDescriptorType:
            return {}
        try:
            found = descriptor.__get__(value)
        except (AttributeError, TypeError):
            return {}
        return found if type(found) is dict else {}
    return {}
