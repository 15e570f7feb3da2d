"""Parts of DTensors: the ways to them from names, and how the parts that a rank keeps for undo are listed and read.

A process that replaces a dead rank has copies of what the other ranks have alike; the dead rank's parts of a sharded
model are in memory files that the rank shared with its agent.
"""

from __future__ import annotations

import fcntl
import json
import struct
import zlib
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist

from jupyter_dist.rank.collectives.revival.shards import dtensor, is_over_all
from jupyter_dist.rank.collectives.torch_compat import local_tensor
from jupyter_dist.rank.guard.own import os

from . import failing

MAX_LOOKED = 50_000  # objects between the names and the DTensors
_MAX_ITEMS = 10_000  # of one container: longer ones are data
_FIRST_PRIVATE_FD = 100  # above the descriptors that cells get
_HEADER = struct.Struct("!QI")  # the length of the list of parts, and its checksum


def listed(execution_id: str, parts: Mapping[str, Any]) -> bytes:
    """Return the list of the parts that are kept for an execution, by the ways to them."""
    content = json.dumps({"execution_id": execution_id, "world_size": world_size(), "parts": parts}).encode()
    return _HEADER.pack(len(content), zlib.crc32(content)) + content


def likeness(tensor: Any) -> list[str]:
    """Return the shape, the type and the placements of a DTensor, which are alike on all ranks."""
    return [str(tuple(tensor.shape)), str(tensor.dtype), str(tensor.placements)]


def read_parts(list_path: str, bytes_path: str, ways: list[str], tensors: list[Any]) -> list[torch.Tensor]:
    """Return the parts of a rank that is gone, one for each of these DTensors. Raises ValueError, OSError."""
    with open(list_path, "rb") as file:
        known = parts_in(file.read())["parts"]
    found = []
    with open(bytes_path, "rb") as file:
        for way, tensor in zip(ways, tensors, strict=True):
            one = known[way]
            if one["like"] != likeness(tensor):
                message = f"{way} is another tensor than on the rank that is gone"
                raise ValueError(message)
            content = bytearray()
            for offset, size in one["pieces"]:
                file.seek(offset)
                content += file.read(size)
            flat = torch.frombuffer(content, dtype=torch.uint8) if content else torch.empty(0, dtype=torch.uint8)
            local = torch.empty(0, dtype=tensor.dtype).set_(flat.untyped_storage(), *_order(*one["place"]))
            found.append(local.to(local_tensor(tensor).device, copy=True))
    return found


def _order(shape: list[int], stride: list[int], offset: int) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    return offset, tuple(shape), tuple(stride)


def parts_in(content: bytes) -> dict[str, Any]:
    """Return the fields of a list of parts. Raises ValueError if it was not written whole."""
    if len(content) >= _HEADER.size:
        length, checksum = _HEADER.unpack_from(content)
        text = content[_HEADER.size : _HEADER.size + length]
        if len(text) == length and zlib.crc32(text) == checksum:
            return dict(json.loads(text))
    message = "the list of parts is not whole"
    raise ValueError(message)


def ways_to_dtensors(namespace: Mapping[str, Any], size: int) -> dict[str, Any]:
    """Return the DTensors of all ranks below names, each by the first way to it: the same on ranks that ran the same.

    Ways are through dictionaries, lists, tuples and attributes, in their order; sets have none.
    """
    kind = dtensor()
    found: dict[str, Any] = {}
    if kind is None or size < 2:
        return found
    todo = deque((name, namespace[name]) for name in sorted(namespace) if name[:1] != "_")
    seen: set[int] = set()
    while todo and len(seen) < MAX_LOOKED:
        way, value = todo.popleft()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if issubclass(type(value), kind):
            if is_over_all(value, size):
                found[way] = value
            if value.is_leaf and value.grad is not None:
                todo.append((f"{way}.grad", value.grad))
        else:
            todo.extend(_below(way, value))
    return found


def _below(way: str, value: Any) -> Iterator[tuple[str, Any]]:
    kind = type(value)
    if issubclass(kind, ModuleType | type) or (kind in (dict, list, tuple) and len(value) > _MAX_ITEMS):
        return
    yield from ((way + step, one) for step, one in failing.parts(value))
    if kind in (dict, defaultdict):  # such as the state of an optimizer, by parameters
        others = (one for key, one in list(value.items()) if type(key) not in (str, int))
        yield from ((f"{way}[#{number}]", one) for number, one in enumerate(others))


def world_size() -> int:
    """Return how many ranks there are."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


@lru_cache(maxsize=1)
def memory_files() -> tuple[int, int]:
    """Return the descriptors of this process's memory files: for the list of parts, and for their bytes.

    Raises:
        OSError: The kernel has no such files, or there are no descriptors.
    """
    return _memory_file(), _memory_file()


def _memory_file() -> int:
    found = os.memfd_create("jupyter_dist_parts")
    fd = fcntl.fcntl(found, fcntl.F_DUPFD_CLOEXEC, _FIRST_PRIVATE_FD)
    os.close(found)
    return fd
