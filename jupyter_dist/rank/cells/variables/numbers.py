"""Checksums and differences of tensors and arrays, a piece of at most a megabyte at a time, and for a short time only.

A rank keeps nothing between two requests: the server sends back where to go on. A cell that is submitted meanwhile
waits for one request at most.
"""

from __future__ import annotations

import base64
import ctypes
import sys
import zlib
from typing import TYPE_CHECKING, Any

import torch

from jupyter_dist.protocol.accelerators import DEVICE_TYPES
from jupyter_dist.protocol.errors import JupyterDistError, bad_request
from jupyter_dist.rank.guard.own import time

from .leaves import bytes_of, count_of, dtype_of, is_tensor, leaves, shape_of

if TYPE_CHECKING:
    from .leaves import Leaf

PIECE_BYTES = 1 << 20
BUDGET_SECONDS = 0.25


def checksums(namespace: dict[Any, Any], name: str, start: tuple[int, int, int]) -> dict[str, Any]:
    """Return shape, dtype and checksum of the tensors in a variable, from a place on, for BUDGET_SECONDS.

    A place is the number of a tensor, the elements of it that are done, and their checksum; `next` is null at the end.
    """
    found, left_out = find(namespace, name)
    begun = time.monotonic()
    first, done, checksum = start
    tensors: list[dict[str, Any]] = []
    for number in range(first, len(found)):
        path, leaf = found[number]
        count, per_piece = count_of(leaf), _per_piece(leaf)
        while done < count:
            if time.monotonic() - begun > BUDGET_SECONDS:
                return {"tensors": tensors, "left_out": left_out, "next": [number, done, checksum]}
            checksum = _crc(_piece(leaf, done, min(done + per_piece, count)), checksum)
            done += per_piece
        tensors.append({**_facts(path, leaf), "checksum": checksum})
        done = checksum = 0
    return {"tensors": tensors, "left_out": left_out, "next": None}


def read(namespace: dict[Any, Any], name: str, path: str, start: int) -> dict[str, Any]:
    """Return a piece of a tensor from this element on, as base64."""
    leaf = _leaf(namespace, name, path)
    piece = _piece(leaf, start, min(start + _per_piece(leaf), count_of(leaf)))
    return {"data": base64.b64encode(_memory(piece)).decode(), "dtype": dtype_of(leaf)}


def compare(namespace: dict[Any, Any], asked: dict[str, Any]) -> dict[str, Any]:
    """Compare a piece of a tensor with that of another rank, which `read` returned there.

    Returns:
        `compared` and `different`: numbers of elements, by their bits; `max_abs`: the greatest finite difference.
    """
    name, start, dtype = asked["name"], asked["start"], asked["dtype"]
    leaf = _leaf(namespace, name, asked["path"])
    raw = bytearray(base64.b64decode(asked["data"]))
    if dtype_of(leaf) != dtype or not raw:
        raise bad_request(f"'{name}' has changed meanwhile.", "Compare again.")
    size = bytes_of(leaf) // count_of(leaf)
    mine = _piece(leaf, start, min(start + len(raw) // size, count_of(leaf)))
    if len(_memory(mine)) != len(raw):
        raise bad_request(f"'{name}' has changed meanwhile.", "Compare again.")
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


def find(namespace: dict[Any, Any], name: str) -> tuple[list[Leaf], int]:
    """Return the tensors in a variable. Raises JupyterDistError `not_found` or `bad_request`."""
    if name not in namespace:
        raise JupyterDistError("not_found", f"There is no variable '{name:.60}'.", "Run the cell that sets it.")
    found, left_out = leaves(namespace[name])
    if not found and not left_out:
        raise bad_request(f"'{name:.60}' has no tensors.", "Name a tensor, an array, a module, or a container of them.")
    return found, left_out


def is_device_busy(leaf: Any) -> bool:
    """Return whether a device still computes what was given to it: reading the tensor would wait for that."""
    if not is_tensor(leaf) or leaf.device.type not in DEVICE_TYPES:
        return False
    current_stream = getattr(getattr(torch, leaf.device.type), "current_stream", None)  # Metal has none
    return current_stream is not None and not current_stream(leaf.device).query()


def _leaf(namespace: dict[Any, Any], name: str, path: str) -> Any:
    found, _ = find(namespace, name)
    leaf = next((leaf for known, leaf in found if known == path), None)
    if leaf is None:
        raise bad_request(f"'{name}' has changed meanwhile.", "Compare again.")
    return leaf


def _facts(path: str, leaf: Any) -> dict[str, Any]:
    return {"path": path, "shape": shape_of(leaf), "dtype": dtype_of(leaf), "bytes": bytes_of(leaf)}


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
    """Return numbers of numpy as torch knows them: it lacks some unsigned types."""
    return piece.astype("complex128" if piece.dtype.kind == "c" else "float64")


def _bits_differ(mine: torch.Tensor, theirs: torch.Tensor) -> torch.Tensor:
    rows = [part.contiguous().view(torch.uint8).view(len(part), -1) for part in (mine, theirs)]
    return (rows[0] != rows[1]).any(1)
