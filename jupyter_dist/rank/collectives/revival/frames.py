"""The rank and the size of a process group's object, which torch sets when it creates the object.

A group that is resized keeps its process groups under the same objects (compat.py), with another size. torch has no
method for that: both are members of the C++ object, at a place that is found with an object of known numbers.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from typing import Any

import torch.distributed as dist

_SEARCHED_BYTES = 256  # of an object that is larger
_KNOWN = (0x13579BD1, 0x2468ACE2)  # no address or flag has these bytes


def set_place(group: Any, rank: int, size: int) -> None:
    """Make an object of a process group have this rank and this size.

    Raises:
        RuntimeError: this torch keeps them elsewhere.
    """
    if (group.rank(), group.size()) == (rank, size):
        return
    offset = _offset()
    if offset is None or type(group) is not dist.ProcessGroup:
        raise RuntimeError(f"torch {dist.torch.__version__} cannot change the size of a process group")
    place = (ctypes.c_int * 2).from_address(group._id() + offset)
    if tuple(place) != (group.rank(), group.size()):
        raise RuntimeError("the object of this process group differs from others")
    place[:] = [rank, size]


@functools.cache
def _offset() -> int | None:
    """Return where in the object the two numbers are; None if that is not clear."""
    if not hasattr(dist.ProcessGroup, "_id"):
        return None
    probe = dist.ProcessGroup(*_KNOWN)
    content = ctypes.string_at(probe._id(), _SEARCHED_BYTES)
    known = struct.pack("ii", *_KNOWN)
    return content.find(known) if content.count(known) == 1 else None
