"""What this rank's main thread waits for in torch.distributed: the evidence for the agent's verdict. Side thread, 1 ms.

Three sources, because none knows all: the Python stack (names every function of torch.distributed, and its arguments),
torch's flight recorder (shapes and numbers, but for gloo neither send nor recv), and the count of collectives.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, TypedDict

from jupyter_dist.rank.guard.own import os, threading

from . import torch_compat, unhang, waits
from .records import Entry

_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep  # wrapped around functions of torch
_C10D = os.path.join("torch", "distributed", "distributed_c10d.py")
_AUTOGRAD = os.path.join("torch", "autograd", "graph.py")
_PEERS = ("dst", "src", "group_dst", "group_src")
_POINT_TO_POINT = frozenset({"send", "recv", "send_object_list", "recv_object_list"})
_BACKWARD = "backward"
_WAIT = "wait()"


class Wait(TypedDict):
    """The call that the main thread is in.

    `members` are the ranks of its process group. `peer` is the other rank of a send or recv, the root of a broadcast
    and the like, or None. `seq`, `sizes` and `dtypes` are the flight recorder's; None and empty where it has no entry.
    """

    name: str
    group: str
    members: list[int]
    peer: int | None
    is_p2p: bool
    seq: int | None
    sizes: list[Any]
    dtypes: list[str]


def current(entry: Entry | None) -> Wait | None:
    """Return what the main thread waits for, or None if it is not in torch.distributed; `entry` is outstanding."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    call, name, work = _distributed_call(frame)
    operation = entry["name"] if entry else torch_compat.operation_name(work)
    if name is None or (operation is None and name == _WAIT):
        return None
    group = call.f_locals.get("group") if call is not None else None
    found = torch_compat.describe_group(group if entry is None or call is not None else entry["group"])
    return {
        "name": name if name != _WAIT else f"{_WAIT} of {operation}",
        "group": found.description,
        "members": found.members,
        "peer": _peer(call),
        "is_p2p": name in _POINT_TO_POINT or (call is None and operation in _POINT_TO_POINT),
        "seq": entry["seq"] if entry else None,
        "sizes": entry["sizes"] if entry else [],
        "dtypes": entry["dtypes"] if entry else [],
    }


def num_threads_in(namespace: dict[str, Any]) -> int:
    """Return how many threads besides the main one run code of cells: they may call a collective at any time."""
    main = threading.main_thread().ident
    return sum(_runs(frame, namespace) for ident, frame in sys._current_frames().items() if ident != main)


def _runs(frame: FrameType | None, namespace: dict[str, Any]) -> bool:
    while frame is not None:
        if frame.f_globals is namespace:
            return True
        frame = frame.f_back
    return False


def _distributed_call(frame: FrameType | None) -> tuple[FrameType | None, str | None, Any]:
    """Return the frame of the call of torch.distributed, what to call it, and the Work that it waits for."""
    call, name, work = None, None, None
    while frame is not None and frame.f_code.co_filename.startswith((unhang.TORCH, _OURS)):
        filename, function = frame.f_code.co_filename, frame.f_code.co_name
        if filename.endswith(_C10D) and not function.startswith("_"):
            call, name = frame, function
        elif filename.endswith(_AUTOGRAD) and name in (None, _WAIT):
            name = _BACKWARD
        elif frame.f_globals is vars(waits):
            work = frame.f_locals.get("work")
        name = name or _WAIT
        frame = frame.f_back
    if name is None and unhang.main_thread_waits_in_torch():  # a wait in C++ that the cell itself calls
        name = _WAIT
    return call, name, work


def _peer(call: FrameType | None) -> int | None:
    values = call.f_locals if call is not None else {}
    return next((values[name] for name in _PEERS if type(values.get(name)) is int), None)
