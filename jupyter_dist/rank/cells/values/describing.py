"""Describes a value by its type: shape, dtype, device, bytes, plain values, and a checksum of the rest."""

from __future__ import annotations

import sys
import zlib
from types import FunctionType
from typing import TYPE_CHECKING, Any

import torch

from .holders import Holder
from .opening import StepBudget, is_array, is_kind_of, is_module, is_one_of, is_tensor, name_of
from .tensors import device_of, dtype_of, is_any_tensor, shape_of
from .walk import MAX_CHARS, ValuePart, Walk, is_dtensor, text_of

if TYPE_CHECKING:
    from jupyter_dist.protocol.models.differences import VariableOnRank

MAX_STEPS_EACH = 4_000

_CONTAINERS = (list, tuple, dict, set, frozenset)
_SIZED = (*_CONTAINERS, str, bytes, bytearray)


def describe(value: Any, holder: Holder | None, left: StepBudget) -> VariableOnRank:
    """Return a description of a value without running code of its class."""
    row: VariableOnRank = {
        "type": name_of(type(value))[:MAX_CHARS],
        "kind": "",
        "shape": "",
        "dtype": "",
        "device": "",
        "bytes": None,
        "value": "",
        "content": "",
        "unseen": "",
    }
    text = text_of(value)
    if text is not None and (is_kind_of(value, FunctionType) or is_kind_of(value, type)):
        row["content"] = f"{zlib.crc32(text.encode()):08x}"  # a reader cannot use the checksum of code
    elif text is not None:
        row["value"] = text
    else:
        steps = StepBudget(min(MAX_STEPS_EACH, left.left))
        given = steps.left
        walk = Walk(value, steps, is_brief=True)
        left.left -= given - steps.left
        _describe_content(value, walk, row)
    if is_one_of(value, _SIZED):
        row["shape"] = str(len(value))
    if is_one_of(value, (str, bytes, bytearray)):
        row["bytes"] = sys.getsizeof(value)
    if holder is not None:
        _describe_memory(holder, row)
    return row


def _describe_content(value: Any, walk: Walk, row: VariableOnRank) -> None:
    """Add the description of the value's parts, and the reason if some were not looked at."""
    row["content"] = f"{_checksum(walk.nodes):08x}"
    row["unseen"] = _unseen(walk)
    if is_any_tensor(value):
        _describe_tensor(value, row)
    elif is_module(value):
        _describe_module(walk, row)
    else:
        opened = any(node.what != "closed" for node in walk.nodes) and not is_kind_of(value, FunctionType)
        row["kind"] = "container" if is_one_of(value, _CONTAINERS) else "object" if opened else ""
        row["value"] = _preview(walk.nodes)


def _checksum(nodes: list[ValuePart]) -> int:
    """Return a checksum over all parts that were looked at; tensors count with their shape and dtype."""
    checksum = 0
    for node in nodes:
        text = f"{dtype_of(node.value)}{shape_of(node.value)}" if node.what == "tensor" else node.text
        checksum = zlib.crc32(f"{node.path}\0{text}\0".encode(), checksum)
    return checksum


def _unseen(walk: Walk) -> str:
    """Return the parts that the checksum does not cover."""
    tensors = sum(node.what == "tensor" for node in walk.nodes)
    closed = [node for node in walk.nodes if node.what == "closed"]
    words = [f"the numbers of {tensors} tensor{'s' if tensors > 1 else ''}"] if tensors else []
    if closed:
        rest = f" and {len(closed) - 1} more" if len(closed) > 1 else ""
        words.append(f"{closed[0].path[:MAX_CHARS] or 'it'} ({closed[0].text}){rest}")
    if not walk.is_whole:
        words.append("what comes after its first values")
    return "; ".join(words)


def _preview(nodes: list[ValuePart]) -> str:
    """Return the first plain values."""
    words: list[str] = []
    size = 0
    for node in nodes:
        if node.what != "value" or size > MAX_CHARS:
            continue
        words.append(node.text if node.path.isdigit() or not node.path else f"{node.path}={node.text}")
        size += len(words[-1]) + 2
    text = ", ".join(words)
    return text if len(text) <= MAX_CHARS else f"{text[: MAX_CHARS - 1]}\u2026"


def _describe_memory(holder: Holder, row: VariableOnRank) -> None:
    """Add the bytes of the storages that the variable holds, not the size of its shape: a view shares its storage."""
    if holder.holding.bytes_by or row["kind"] in ("tensor", "array", "module"):
        row["bytes"] = holder.holding.num_bytes
    if holder.also:
        row["shares"] = holder.also
    if parts := holder.holding.parts:
        row["parts"] = parts


def _describe_tensor(value: Any, row: VariableOnRank) -> None:
    if not is_kind_of(value, torch.Tensor):
        row["kind"] = "array"
        if is_array(value):
            row["shape"], row["dtype"] = str(shape_of(value)), dtype_of(value)
        return
    row["kind"] = "tensor"
    if not is_tensor(value) and not is_dtensor(value):
        return
    row["dtype"], row["device"] = dtype_of(value), device_of(value)
    if value.is_nested:
        return
    row["shape"] = str(shape_of(value))
    if is_tensor(value) and value.layout is torch.strided and value.numel() == 1 and value.device.type == "cpu":
        row["value"] = repr(value.item())[:MAX_CHARS]
        row["unseen"] = ""


def _describe_module(walk: Walk, row: VariableOnRank) -> None:
    tensors = [node.value for node in walk.nodes if node.what == "tensor"]
    dtypes, devices = {dtype_of(leaf) for leaf in tensors}, {device_of(leaf) for leaf in tensors}
    row["kind"] = "module"
    row["shape"] = f"{len(tensors)} tensors" if len(tensors) != 1 else "1 tensor"
    row["dtype"], row["device"] = ", ".join(sorted(dtypes)[:3]), ", ".join(sorted(devices)[:3])
    modes = {node.text for node in walk.nodes if node.path.rpartition(".")[2] == "training"}
    grads = [node.text for node in walk.nodes if node.path.rpartition(".")[2] == "requires_grad"]
    words = ["eval"] if modes == {"False"} else ["train and eval"] if len(modes) > 1 else []
    if frozen := grads.count("False"):
        words.append(f"{frozen} of {len(grads)} without gradients")
    row["value"] = ", ".join(words)
