"""Lists a rank's variables by their types: shape, dtype, device, bytes, and the value of plain ones."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch

from jupyter_dist.protocol.accelerators import DEVICE_TYPES

from .holders import Held, Holder
from .leaves import dtype_of, is_array, is_kind_of, is_module, is_one_of, is_tensor, leaves, shape_of

if TYPE_CHECKING:
    from jupyter_dist.protocol.differences import VariableOnRank

MAX_NAMES = 2000
MAX_CHARS = 80
MAX_BITS = 256

_SHOWN = (bool, float, complex, type(None))
_SIZED = (list, tuple, dict, set, frozenset, str, bytes, bytearray)
_get_name = type.__dict__["__name__"].__get__


def list_variables(
    namespace: dict[Any, Any], hidden: Iterable[str], held: Held
) -> tuple[dict[str, VariableOnRank], int]:
    """Return what the names stand for that cells have made, and how many more there are than MAX_NAMES."""
    unshown = set(hidden)
    names = [
        name
        for name, value in list(namespace.items())
        if type(name) is str and not name.startswith("_") and name not in unshown
        if not is_kind_of(value, ModuleType)
    ]
    holders = held.variables()
    rows = {name: describe(namespace[name], holders.get(name)) for name in names[:MAX_NAMES]}
    return rows, max(0, len(names) - MAX_NAMES)


def describe(value: Any, holder: Holder | None) -> VariableOnRank:
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
        row |= {"kind": "array", "shape": str(shape_of(value)), "dtype": dtype_of(value)}
    elif is_module(value):
        _describe_module(value, row)
    else:
        _describe_plain(value, row)
    if holder is not None:
        _describe_memory(holder, row)
    return row


def _describe_memory(holder: Holder, row: VariableOnRank) -> None:
    """Add the bytes of the storages that it holds: not those of its shape, which a view does not hold alone."""
    if holder.holding.bytes_by or row["kind"] in ("tensor", "array", "module"):
        row["bytes"] = holder.holding.num_bytes
    if holder.also:
        row["shares"] = holder.also
    if parts := holder.holding.parts:
        row["parts"] = parts


def _describe_tensor(tensor: Any, row: VariableOnRank) -> None:
    row["kind"], row["dtype"], row["device"] = "tensor", dtype_of(tensor), _device(tensor.device)
    if tensor.layout is not torch.strided or tensor.is_nested:
        row["kind"] = ""  # its elements cannot be compared
        return
    row["shape"] = str(shape_of(tensor))
    if tensor.numel() == 1 and tensor.device.type == "cpu":
        row["value"] = repr(tensor.item())[:MAX_CHARS]


def _describe_module(module: Any, row: VariableOnRank) -> None:
    found, _ = leaves(module)
    tensors = [leaf for _, leaf in found]
    dtypes, devices = {dtype_of(leaf) for leaf in tensors}, {_device(leaf.device) for leaf in tensors}
    row["kind"] = "module"
    row["shape"] = f"{len(tensors)} tensors" if len(tensors) != 1 else "1 tensor"
    row["dtype"], row["device"] = ", ".join(sorted(dtypes)[:3]), ", ".join(sorted(devices)[:3])


def _describe_plain(value: Any, row: VariableOnRank) -> None:
    if is_one_of(value, _SHOWN) or (type(value) is int and value.bit_length() <= MAX_BITS):
        row["value"] = repr(value)
    elif type(value) is str:
        row["value"] = repr(value[:MAX_CHARS]) + ("\u2026" if len(value) > MAX_CHARS else "")
    if is_one_of(value, _SIZED):
        row["shape"] = str(len(value))
    if is_one_of(value, (str, bytes, bytearray)):
        row["bytes"] = sys.getsizeof(value)
    if is_one_of(value, (list, tuple, dict)):
        row["kind"] = "container"


def _device(device: torch.device) -> str:
    """Return the device; without its index if it is the rank's own, which is another on every rank."""
    is_own = device.type in DEVICE_TYPES and device.index == getattr(torch, device.type).current_device()
    return device.type if is_own else str(device)
