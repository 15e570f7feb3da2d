"""The tensors and arrays in a value: itself, a module's parameters and buffers, the items of lists and dictionaries.

Only exact types are opened: a subclass may run code of users for every access. Attributes of modules are read from
their dictionaries, past `__getattr__`, properties and hooks.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import torch

MAX_LEAVES = 10_000
MAX_DEPTH = 60

Leaf = tuple[str, Any]  # the path within the value, and the tensor or array

_dict_of = torch.nn.Module.__dict__["__dict__"].__get__
_get_mro = type.__dict__["__mro__"].__get__


def is_kind_of(value: Any, kind: type) -> bool:
    """Return whether its type is `kind` or derived from it, by identity.

    `isinstance` may ask the object for its class, and `in` compares classes, which may be code of a metaclass.
    """
    return any(base is kind for base in _get_mro(type(value)))


def is_one_of(value: Any, kinds: tuple[type, ...]) -> bool:
    """Return whether its type is one of these, by identity."""
    return any(type(value) is kind for kind in kinds)


def is_module(value: Any) -> bool:
    """Return whether it is a torch module."""
    return is_kind_of(value, torch.nn.Module)


def is_tensor(value: Any) -> bool:
    """Return whether it is a plain tensor or parameter."""
    return type(value) is torch.Tensor or type(value) is torch.nn.Parameter


def is_array(value: Any) -> bool:
    """Return whether it is a plain numpy array."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and type(value) is getattr(numpy, "ndarray", None)


def leaves(value: Any) -> tuple[list[Leaf], int]:
    """Return the tensors and arrays in a value by path, each once, and how many things were left out.

    Left out are tensors of other types (sharded, sparse, quantized, without data), arrays of objects, and what is more
    than MAX_LEAVES.
    """
    found: list[Leaf] = []
    left_out = 0
    seen: set[int] = set()
    for path, leaf in _walk("", value, seen, 0):
        if len(found) < MAX_LEAVES and _has_numbers(leaf):
            found.append((path, leaf))
        else:
            left_out += 1
    return found, left_out


def _walk(path: str, value: Any, seen: set[int], depth: int) -> Iterator[Leaf]:
    if id(value) in seen or depth > MAX_DEPTH:
        return
    if is_tensor(value) or is_array(value) or is_kind_of(value, torch.Tensor):
        seen.add(id(value))
        yield path, value
        return
    children = list(_children(value))
    if children:
        seen.add(id(value))
    for name, child in children:
        yield from _walk(f"{path}.{name}" if path else name, child, seen, depth + 1)


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    if type(value) is dict:
        yield from ((str(key), item) for key, item in list(value.items()) if is_one_of(key, (str, int)))
    elif is_one_of(value, (list, tuple)):
        yield from ((str(number), item) for number, item in enumerate(value))
    elif is_module(value):
        attributes = _dict_of(value)
        for kind in ("_parameters", "_buffers", "_modules"):
            members = attributes.get(kind)
            if type(members) is dict:
                yield from ((name, item) for name, item in members.items() if type(name) is str and item is not None)


def _has_numbers(leaf: Any) -> bool:
    if is_tensor(leaf):
        strided = leaf.layout is torch.strided and not leaf.is_nested
        return strided and not leaf.is_quantized and leaf.device.type != "meta"
    return is_array(leaf) and leaf.dtype.kind in "biufc"


def shape_of(leaf: Any) -> list[int]:
    """Return its shape."""
    return [int(size) for size in leaf.shape]


def dtype_of(leaf: Any) -> str:
    """Return its dtype without the package: float32."""
    return str(leaf.dtype).removeprefix("torch.")


def bytes_of(leaf: Any) -> int:
    """Return how many bytes its elements take."""
    return int(leaf.numel() * leaf.element_size()) if is_tensor(leaf) else int(leaf.nbytes)


def count_of(leaf: Any) -> int:
    """Return its number of elements."""
    return int(leaf.numel()) if is_tensor(leaf) else int(leaf.size)
