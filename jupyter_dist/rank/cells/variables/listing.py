"""Lists a rank's variables by their types: shape, dtype, device, bytes, and the value of plain ones."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch

from jupyter_dist.protocol.accelerators import DEVICE_TYPES

from .leaves import bytes_of, dtype_of, is_array, is_module, is_tensor, leaves, shape_of

if TYPE_CHECKING:
    from jupyter_dist.protocol.differences import VariableOnRank

MAX_NAMES = 2000
MAX_CHARS = 80
MAX_BITS = 256

_SIZED = (list, tuple, dict, set, frozenset, str, bytes, bytearray)
_get_name = type.__dict__["__name__"].__get__
_get_mro = type.__dict__["__mro__"].__get__


def list_variables(namespace: dict[Any, Any], hidden: Iterable[str]) -> tuple[dict[str, VariableOnRank], int]:
    """Return what the names stand for that cells have made, and how many more there are than MAX_NAMES."""
    unshown = set(hidden)
    names = [
        name
        for name, value in list(namespace.items())
        if type(name) is str and not name.startswith("_") and name not in unshown
        if ModuleType not in _get_mro(type(value))
    ]
    return {name: describe(namespace[name]) for name in names[:MAX_NAMES]}, max(0, len(names) - MAX_NAMES)


def describe(value: Any) -> VariableOnRank:
    """Return what is known of a value without running code of its class."""
    row: VariableOnRank = {
        "type": str.__getitem__(_get_name(type(value)), slice(MAX_CHARS)),
        "kind": "",
        "shape": "",
        "dtype": "",
        "device": "",
        "bytes": None,
        "value": "",
    }
    if is_tensor(value):
        _describe_tensor(value, row)
    elif is_array(value):
        row |= {"kind": "array", "shape": str(shape_of(value)), "dtype": dtype_of(value), "bytes": bytes_of(value)}
    elif is_module(value):
        _describe_module(value, row)
    else:
        _describe_plain(value, row)
    return row


def _describe_tensor(tensor: Any, row: VariableOnRank) -> None:
    row["kind"], row["dtype"], row["device"] = "tensor", dtype_of(tensor), _device(tensor.device)
    if tensor.layout is not torch.strided or tensor.is_nested:
        row["kind"] = ""  # its elements cannot be compared
        return
    row["shape"], row["bytes"] = str(shape_of(tensor)), bytes_of(tensor)
    if tensor.numel() == 1 and tensor.device.type == "cpu":
        row["value"] = repr(tensor.item())[:MAX_CHARS]


def _describe_module(module: Any, row: VariableOnRank) -> None:
    found, _ = leaves(module)
    tensors = [leaf for _, leaf in found]
    dtypes, devices = {dtype_of(leaf) for leaf in tensors}, {_device(leaf.device) for leaf in tensors}
    row["kind"] = "module"
    row["shape"] = f"{len(tensors)} tensors" if len(tensors) != 1 else "1 tensor"
    row["dtype"], row["device"] = ", ".join(sorted(dtypes)[:3]), ", ".join(sorted(devices)[:3])
    row["bytes"] = sum({_storage(leaf): bytes_of(leaf) for leaf in tensors}.values())


def _describe_plain(value: Any, row: VariableOnRank) -> None:
    kind = type(value)
    if kind in (bool, float, complex, type(None)) or (kind is int and value.bit_length() <= MAX_BITS):
        row["value"] = repr(value)
    elif kind is str:
        row["value"] = repr(value[:MAX_CHARS]) + ("\u2026" if len(value) > MAX_CHARS else "")
    if kind in _SIZED:
        row["shape"] = str(len(value))
    if kind in (str, bytes, bytearray):
        row["bytes"] = sys.getsizeof(value)
    if kind in (list, tuple, dict):
        row["kind"] = "container"


def _storage(tensor: Any) -> int:
    """Return what identifies a tensor's memory, so that tied parameters count once."""
    return int(tensor.data_ptr()) or id(tensor)


def _device(device: torch.device) -> str:
    """Return the device; without its index if it is the rank's own, which is another on every rank."""
    is_own = device.type in DEVICE_TYPES and device.index == getattr(torch, device.type).current_device()
    return device.type if is_own else str(device)
