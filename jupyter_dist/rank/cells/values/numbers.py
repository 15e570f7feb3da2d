"""Checksums and differences of tensors and arrays, a piece of at most a megabyte at a time, and for a short time only.

A rank keeps nothing between two requests: the server sends back where to continue. A cell that is submitted meanwhile
waits for one request at most.
"""

from __future__ import annotations

import ast
import base64
import ctypes
import sys
import zlib
from dataclasses import dataclass
from typing import Any

import torch

from jupyter_dist.protocol.accelerators import DEVICE_TYPES
from jupyter_dist.protocol.errors import JupyterDistError, bad_request
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.rank.guard.own import time

from .opening import StepBudget, is_tensor, key_name
from .tensors import bytes_of, count_of, dtype_of, facts_of, local_of
from .walk import MAX_NODES, ValuePart, Walk

PIECE_BYTES = 1 << 20
BUDGET_SECONDS = 0.25


def checksums(namespace: dict[Any, Any], asked: dict[str, Any]) -> dict[str, Any] | None:
    """Return the parts of a value, and the checksums of its tensors from a place on, for BUDGET_SECONDS.

    None if a device is busy with one of them. A place is the number of a tensor, the elements of it that are done, and
    their checksum; `next` is null at the end. The rest is in the answer to the first place: all tensors, the
    parts that cannot be compared, and one checksum of all plain values.
    """
    found = find(namespace, asked["name"])
    begun = time.monotonic()
    first, done, checksum = asked["start"]
    if any(is_device_busy(node.value) for node in found.tensors):
        return None
    answer: dict[str, Any] = {"checksums": [], "next": None}
    if (first, done) == (0, 0):
        answer |= _overview(found)
    tensors = found.tensors
    for number in range(first, len(tensors)):
        local = local_of(tensors[number].value)
        count, per_piece = count_of(local), _per_piece(local)
        while done < count:
            if time.monotonic() - begun > BUDGET_SECONDS:
                return {**answer, "next": [number, done, checksum]}
            checksum = _crc(_piece(local, done, min(done + per_piece, count)), checksum)
            done += per_piece
        answer["checksums"].append([number, checksum])
        done = checksum = 0
    return answer


def _overview(found: FoundParts) -> dict[str, Any]:
    closed = [node for node in found.nodes if node.what == "closed"]
    texts = [f"{path}\0{text}\0" for path, text in found.values.items()]
    return {
        "tensors": [facts_of(node.path, node.value) for node in found.tensors],
        "closed": [{"path": node.path, "why": node.text} for node in closed],
        "values": {"count": len(texts), "checksum": zlib.crc32("".join(texts).encode())},
        "is_whole": found.is_whole,
    }


def values(namespace: dict[Any, Any], asked: dict[str, Any]) -> dict[str, Any]:
    """Return the plain values, as text by path."""
    return {"values": find(namespace, asked["name"]).values}


def read(namespace: dict[Any, Any], asked: dict[str, Any]) -> dict[str, Any] | None:
    """Return a piece of a tensor from an element on, as base64; None if its device is busy."""
    leaf, start = local_of(_leaf(namespace, asked["name"], asked["path"])), asked["start"]
    if is_device_busy(leaf):
        return None
    piece = _piece(leaf, start, min(start + _per_piece(leaf), count_of(leaf)))
    return {"data": base64.b64encode(_memory(piece)).decode(), "dtype": dtype_of(leaf)}


def compare(namespace: dict[Any, Any], asked: dict[str, Any]) -> dict[str, Any] | None:
    """Compare a piece of a tensor with another rank's piece, which `read` returned there; None if the device is busy.

    Returns:
        `compared` and `different`: numbers of elements, by their bits; `max_abs`: the greatest finite difference.
    """
    name, start, dtype = asked["name"], asked["start"], asked["dtype"]
    leaf = local_of(_leaf(namespace, name, asked["path"]))
    if is_device_busy(leaf):
        return None
    raw = bytearray(base64.b64decode(asked["data"]))
    if dtype_of(leaf) != dtype or not raw:
        raise bad_request(say("'%1' has changed meanwhile.", name), say("Compare again."))
    size = bytes_of(leaf) // count_of(leaf)
    mine = _piece(leaf, start, min(start + len(raw) // size, count_of(leaf)))
    if len(_memory(mine)) != len(raw):
        raise bad_request(say("'%1' has changed meanwhile.", name), say("Compare again."))
    if not is_tensor(leaf):
        mine = torch.from_numpy(_wide(mine))
        theirs = torch.from_numpy(_wide(sys.modules["numpy"].frombuffer(raw, leaf.dtype)))
    else:
        theirs = torch.frombuffer(raw, dtype=leaf.dtype)
    different = _bits_differ(mine, theirs)
    wide = torch.complex128 if mine.is_complex() else torch.float64
    gaps = (mine.to(wide) - theirs.to(wide)).abs()[different]
    finite = gaps[torch.isfinite(gaps)]
    return {
        "compared": len(mine),
        "different": int(different.sum()),
        "max_abs": float(finite.max()) if len(finite) else None,
        "nonfinite": len(finite) < len(gaps),
    }


@dataclass(frozen=True)
class FoundParts:
    """The parts of the value under a name or a path."""

    nodes: list[ValuePart]
    is_whole: bool

    @property
    def tensors(self) -> list[ValuePart]:
        """The tensors, in order."""
        return [node for node in self.nodes if node.what == "tensor"]

    @property
    def values(self) -> dict[str, str]:
        """The plain values as text, by path."""
        return {node.path: node.text for node in self.nodes if node.what == "value"}


def find(namespace: dict[Any, Any], name: str) -> FoundParts:
    """Return the parts of a named value, such as `model`, `model.weight` or `states[0]["lr"]`; no code of users runs.

    Raises:
        JupyterDistError: `not_found`; `bad_request`, if the text is not a name.
    """
    first, path = parse_name(name)
    if first not in namespace:
        raise JupyterDistError(
            "not_found", say("There is no variable '%1'.", f"{first:.60}"), say("Run the cell that sets it.")
        )
    walk = Walk(namespace[first], StepBudget(MAX_NODES), path)
    if path and not walk.nodes:
        raise JupyterDistError(
            "not_found", say("'%1' has no '%2'.", f"{first:.60}", f"{path:.60}"), say("Properties are not computed.")
        )
    return FoundParts(walk.nodes, walk.is_whole)


def parse_name(name: str) -> tuple[str, str]:
    """Return the variable and the path in it that an expression names.

    A call of `state_dict()` names its object: a walk finds the same tensors in both.
    """
    if name.isidentifier():
        return name, ""
    steps: list[str] = []
    try:
        part: ast.AST = ast.parse(name.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        part = ast.Pass()
    while not isinstance(part, ast.Name):
        if isinstance(part, ast.Attribute):
            steps.append(part.attr)
            part = part.value
        elif isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Constant):
            steps.append(key_name(part.slice.value, 0))
            part = part.value
        elif _is_state_dict(part):
            part = part.func.value  # type: ignore[attr-defined]
        else:
            hint = say("Name a variable, such as model, or a part of it, such as model.layer.weight or states[0].")
            raise bad_request(
                say("'%1' would have to be computed, and nothing is run to compare.", f"{name:.60}"), hint
            )
    return part.id, ".".join(reversed(steps))


def _is_state_dict(part: ast.AST) -> bool:
    is_call = isinstance(part, ast.Call) and not part.args and not part.keywords
    return is_call and isinstance(part.func, ast.Attribute) and part.func.attr == "state_dict"  # type: ignore[attr-defined]


def is_device_busy(leaf: Any) -> bool:
    """Return whether a tensor's device still has queued work: reading the tensor would wait for it."""
    leaf = local_of(leaf)
    if not is_tensor(leaf) or leaf.device.type not in DEVICE_TYPES:
        return False
    current_stream = getattr(getattr(torch, leaf.device.type), "current_stream", None)  # Metal has none
    return current_stream is not None and not current_stream(leaf.device).query()


def _leaf(namespace: dict[Any, Any], name: str, path: str) -> Any:
    first, above = parse_name(name)
    if first in namespace:  # only the path to it: walking a whole large model takes many times as long
        nodes = Walk(namespace[first], StepBudget(MAX_NODES), ".".join(filter(None, (above, path)))).nodes
        if nodes and (nodes[0].path, nodes[0].what) == ("", "tensor"):
            return nodes[0].value
    leaf = next((node.value for node in find(namespace, name).tensors if node.path == path), None)
    if leaf is None:
        raise bad_request(say("'%1' has changed meanwhile.", name), say("Compare again."))
    return leaf


def _per_piece(leaf: Any) -> int:
    return max(1, PIECE_BYTES // max(1, bytes_of(leaf) // max(1, count_of(leaf))))


def _piece(leaf: Any, start: int, stop: int) -> Any:
    """Return elements in logical order: of a contiguous tensor a view, else a copy of these alone."""
    if not is_tensor(leaf):
        return leaf.flat[start:stop]
    tensor = leaf.detach()
    if tensor.is_contiguous():
        return tensor.view(-1)[start:stop].cpu().resolve_conj().resolve_neg()
    index = torch.arange(start, stop, device=tensor.device)
    places = []
    for size in reversed(tensor.shape):
        places.append(index % size)
        index = index // size
    return tensor[tuple(reversed(places))].cpu().resolve_conj().resolve_neg()


def _memory(piece: Any) -> Any:
    if not isinstance(piece, torch.Tensor):
        return piece.data.cast("B") if len(piece) else b""
    size = piece.numel() * piece.element_size()
    return (ctypes.c_char * size).from_address(piece.data_ptr()) if size else b""


def _crc(piece: Any, checksum: int) -> int:
    return zlib.crc32(_memory(piece), checksum)


def _wide(piece: Any) -> Any:
    """Return numbers of numpy in a type that torch has: it lacks some unsigned types."""
    return piece.astype("complex128" if piece.dtype.kind == "c" else "float64")


def _bits_differ(mine: torch.Tensor, theirs: torch.Tensor) -> torch.Tensor:
    rows = [part.contiguous().view(torch.uint8).view(len(part), -1) for part in (mine, theirs)]
    return (rows[0] != rows[1]).any(1)
