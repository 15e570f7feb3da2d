"""The call of torch.distributed that the main thread waits in: evidence for the agent's verdict. Side thread, 1 ms.

Three sources, because none is complete: the Python stack (every function of torch.distributed, and its arguments),
torch's flight recorder (shapes and numbers, but for gloo neither send nor recv), and the counts of collectives. They
are separate facts: the call comes from the stack, and only the record of that call gives it a number and a shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from types import FrameType
from typing import Any, TypedDict

from jupyter_dist.rank.collectives import torch_compat
from jupyter_dist.rank.collectives.diagnosis import mainthread
from jupyter_dist.rank.collectives.interruptible import waits
from jupyter_dist.rank.guard import folders
from jupyter_dist.rank.guard.frames import of_threads
from jupyter_dist.rank.guard.own import os, threading

from . import counters, flight, insides, peers
from .records import IncompleteCollective

_WRAPPERS = os.path.join(folders.RANK, "collectives") + os.sep  # around functions of torch
_C10D = os.path.join("torch", "distributed", "distributed_c10d.py")
_AUTOGRAD = os.path.join("torch", "autograd", "graph.py")
_PEERS = ("dst", "src")
_PEERS_IN_GROUP = ("group_dst", "group_src")
_POINT_TO_POINT = frozenset({"send", "recv", "send_object_list", "recv_object_list"})
# They meet in the store or in separate messages, which no recorder counts.
_UNCOUNTED = frozenset({"monitored_barrier", "new_group", "new_subgroups", "split_group", "init_process_group"})
_MAKES_GROUP = "_new_group_with_tag"
_MEETS_ALL = "_store_based_barrier"
_BACKWARD = "backward"
_WAIT = "wait()"
# The files in which a thread waits for another thread: to join it, or for its result.
_FOR_THREADS = ("threading.py", "queue.py", os.path.join("concurrent", "futures", "_base.py"))
MAX_RECORDS = 16
MAX_GROUPS = 64
MAX_TENSORS = 8  # of a call of many, as all_gather
_UNLIMITED = timedelta(0)


class CollectiveRecord(TypedDict):
    """A collective that this rank has begun. `counter` is the name of its counter (`counters.counter_of`)."""

    counter: str
    seq: int
    name: str
    sizes: list[Any]
    dtypes: list[str]


class OtherCollective(TypedDict):
    """A collective that has not completed, with the same fields as Wait."""

    name: str
    group: str
    key: str
    counter: str
    members: list[int]
    seq: int
    operation: str


class Wait(TypedDict):
    """The call that the main thread is in.

    `members` are the ranks of its process group, `key` is the group's name in torch, `counter` is the counter of its
    calls. `peer` is the other rank of a send or recv, the root of a broadcast and the like, or None; `tag` is the tag
    of a send or recv. `seq` is the number of the call, `operation`, `sizes` and `dtypes` are the flight recorder's;
    None and empty where not known. `inside` is the part of torch that has made the call, such as
    DistributedDataParallel. `limit` are the seconds after which the call gives up, if the code of the user has set a
    limit. `is_polled` is whether a thread waits in the call while the main thread looks after it now and then.
    `is_clear` is whether it is known which of several collectives the call waits for; if not, `also` are the
    oldest ones of the other groups.
    """

    name: str
    inside: str | None
    group: str
    key: str
    counter: str
    members: list[int]
    peer: int | None
    tag: int | None
    is_p2p: bool
    seq: int | None
    operation: str | None
    sizes: list[Any]
    dtypes: list[str]
    limit: float | None
    is_clear: bool
    is_polled: bool
    also: list[OtherCollective]


@dataclass
class _Found:
    """The call of a thread, as found in its frames."""

    call: FrameType | None = None  # of the function of torch.distributed
    name: str | None = None
    work: Any = None  # that the call waits for
    limit: timedelta | None = None  # of that wait
    inside: str | None = None
    making: FrameType | None = None  # of the function that makes a process group
    meets_all: bool = False  # all ranks, to make it
    is_polled: bool = False


def current(
    unfinished: Sequence[IncompleteCollective], awaits_a_thread: bool = False, polls: bool = False
) -> Wait | None:
    """Return the call that the main thread, or a thread that it waits for, is in; None if it is none of torch's.

    Args:
        unfinished: the recorder's entries of collectives that have not completed, oldest first.
        awaits_a_thread: whether the cell awaits, and only a thread can wake it.
        polls: whether the main thread sleeps, perhaps to look after a thread again.
    """
    frames = of_threads()
    main = threading.main_thread().ident or 0
    found = _distributed_call(frames.get(main), is_main=True, unfinished=unfinished)
    waits = awaits_a_thread or _waits_for_a_thread(frames.get(main))
    if found.name is None and (waits or polls):
        others = (_distributed_call(frame) for ident, frame in frames.items() if ident != main)
        found = next((other for other in others if other.name is not None), found)
        found.inside, found.is_polled = found.inside or "a thread", not waits
    return None if found.name is None else _wait(found, unfinished)


def _wait(found: _Found, unfinished: Sequence[IncompleteCollective]) -> Wait | None:
    assert found.name is not None
    peer_of_work = peers.of(found.work)
    operation = torch_compat.operation_name(found.work)
    group = found.call.f_locals.get("group") if found.call is not None else None
    is_p2p = found.name in _POINT_TO_POINT or (found.call is None and operation in _POINT_TO_POINT)
    entry = _entry(found, operation, counters.name_of_group(group), is_p2p, unfinished)
    if operation is None and entry is not None:
        operation = entry["name"]
    if (found.name == _WAIT and operation is None) or (found.name == _BACKWARD and entry is None and _knows_all()):
        return None  # it computes
    if found.call is None:
        group = peer_of_work.group if peer_of_work is not None else entry["group"] if entry is not None else None
    described = torch_compat.describe_group(group)
    key = counters.name_of_group(group)
    is_counted = found.call is not None and not is_p2p and found.name not in _UNCOUNTED
    peer, tag = _peer(found.call, described.members) if peer_of_work is None else (peer_of_work.rank, peer_of_work.tag)
    also = [] if found.call is not None or is_p2p else _of_other_groups(unfinished, operation, entry)
    return {
        "name": found.name if found.name != _WAIT else f"{_WAIT} of {operation}",
        "inside": found.inside,
        "group": described.description,
        "key": key,
        "counter": counters.counter_of(entry["group"], entry["backend"]) if entry is not None else key,
        "members": _members_made(found) or described.members,
        "peer": peer,
        "tag": tag,
        "is_p2p": is_p2p,
        "seq": entry["seq"] if entry is not None else counters.counts().get(key) if is_counted else None,
        "operation": entry["name"] if entry is not None else None,
        "sizes": entry["sizes"][:MAX_TENSORS] if entry is not None else [],
        "dtypes": entry["dtypes"][:MAX_TENSORS] if entry is not None else [],
        "limit": _limit(found, group, entry["backend"] if entry is not None else None),
        "is_clear": not also,
        "is_polled": found.is_polled,
        "also": also,
    }


def _entry(
    found: _Found, operation: str | None, key: str, is_p2p: bool, unfinished: Sequence[IncompleteCollective]
) -> IncompleteCollective | None:
    """Return the record of a call: the newest one of its process group, or the oldest that a wait may be for."""
    if found.name in _UNCOUNTED:
        return None
    if is_p2p:
        kind = operation or str(found.name)
        return next((entry for entry in unfinished if entry["name"].startswith(kind)), None)
    if found.call is not None:  # what this thread has begun last
        return next((entry for entry in reversed(unfinished) if entry["group"] == key), None)
    # It is not known which collective it waits for. If the oldest cannot complete, this rank does not get further.
    return next((entry for entry in unfinished if operation is None or entry["name"] == operation), None)


def _members_made(found: _Found) -> list[int]:
    """Return the ranks of a process group that is being made: they connect to each other, and need no other rank."""
    ranks = found.making.f_locals.get("ranks") if found.making is not None and not found.meets_all else None
    return [rank for rank in ranks if type(rank) is int] if type(ranks) is list else []


def _knows_all() -> bool:
    """Whether the recorders have each collective that is under way."""
    names = torch_compat.backend_names()
    return bool(names) and all(map(torch_compat.keeps_records, names))


def _of_other_groups(
    unfinished: Sequence[IncompleteCollective], operation: str | None, entry: IncompleteCollective | None
) -> list[OtherCollective]:
    """Return the oldest collective of each other process group that a wait may be for."""
    found: dict[str, OtherCollective] = {}
    for other in unfinished:
        is_of_other = entry is not None and other["group"] != entry["group"]
        if is_of_other and other["group"] not in found and (operation is None or other["name"] == operation):
            described = torch_compat.describe_group(other["group"])
            found[other["group"]] = {
                "name": f"{_WAIT} of {other['name']}",
                "group": described.description,
                "key": other["group"],
                "counter": counters.counter_of(other["group"], other["backend"]),
                "members": described.members,
                "seq": other["seq"],
                "operation": other["name"],
            }
    return list(found.values())[:MAX_GROUPS]


def _limit(found: _Found, group: Any, backend: str | None) -> float | None:
    """Return after how many seconds the call gives up, if that is sooner than by torch's default."""
    told = found.limit if found.limit is not None else found.call.f_locals.get("timeout") if found.call else None
    limits = [told, None if backend in torch_compat.ON_DEVICES else _own_timeout(group)]
    default = torch_compat.default_timeout("gloo")
    sooner = [limit for limit in limits if isinstance(limit, timedelta) and _UNLIMITED < limit < default]
    return min(sooner).total_seconds() if sooner else None


def _own_timeout(group: Any) -> timedelta | None:
    """Return the timeout that user code has set for a process group; None if it is torch's default, or longer.

    On a device the timeout ends no wait: torch only gives up there (TORCH_NCCL_ASYNC_ERROR_HANDLING=0).
    """
    backends = torch_compat.backends_of(torch_compat.group_of(group)).items()
    of_host = [(name, backend) for name, backend in backends if name not in torch_compat.ON_DEVICES]
    pairs = [(getattr(backend.options, "_timeout", None), name) for name, backend in of_host]
    found = [own for own, name in pairs if own is not None and own < torch_compat.default_timeout(name)]
    return min(found, default=None)


def counts() -> dict[str, int]:
    """Return how many collectives this rank has begun, by torch's name of the process group."""
    return dict(islice(counters.counts().items(), MAX_GROUPS))


def records() -> list[CollectiveRecord]:
    """Return the last collectives that this rank has begun, complete or not."""
    return [
        {
            "counter": counters.counter_of(entry["group"], entry["backend"]),
            "seq": entry["seq"],
            "name": entry["name"],
            "sizes": entry["sizes"][:MAX_TENSORS],
            "dtypes": entry["dtypes"][:MAX_TENSORS],
        }
        for entry in flight.newest(MAX_RECORDS)
    ]


def is_in_distributed(frame: FrameType | None) -> bool:
    """Whether a thread waits in a function of torch.distributed."""
    return _distributed_call(frame).name is not None


def _waits_for_a_thread(frame: FrameType | None) -> bool:
    return frame is not None and frame.f_code.co_filename.endswith(_FOR_THREADS)


def _distributed_call(
    frame: FrameType | None, is_main: bool = False, unfinished: Sequence[IncompleteCollective] = ()
) -> _Found:
    """Return the frame of the call of torch.distributed, its name, and the Work that it waits for."""
    found = _Found()
    while frame is not None and frame.f_code.co_filename.startswith((mainthread.TORCH, _WRAPPERS)):
        filename, function = frame.f_code.co_filename, frame.f_code.co_name
        if filename.endswith(_C10D) and not function.startswith("_"):
            found.call, found.name = frame, function
        elif filename.endswith(_AUTOGRAD) and found.name in (None, _WAIT):
            found.name = _BACKWARD
        elif filename.endswith(_C10D) and function == _MAKES_GROUP:
            found.making = frame
        elif filename.endswith(_C10D) and function == _MEETS_ALL:
            found.meets_all = True
        elif frame.f_globals is vars(waits):
            found.work = frame.f_locals.get("work")
            timeout = frame.f_locals.get("timeout")
            found.limit = timeout if isinstance(timeout, timedelta) else None
        found.name = found.name or _WAIT
        found.inside = insides.name(filename, function) or found.inside
        frame = frame.f_back
    # A wait in C++ that the cell itself calls.
    if found.name is None and is_main and unfinished and mainthread.main_thread_waits_in_torch():
        found.name = _WAIT
    return found


def _peer(call: FrameType | None, members: list[int]) -> tuple[int | None, int | None]:
    """Return the peer or root that a call names, as a rank of the default process group, and its tag."""
    values = call.f_locals if call is not None else {}
    tag = values.get("tag")
    peer = next((values[name] for name in _PEERS if type(values.get(name)) is int), None)
    in_group = next((values[name] for name in _PEERS_IN_GROUP if type(values.get(name)) is int), None)
    if peer is None and in_group is not None and 0 <= in_group < len(members):
        peer = members[in_group]
    return peer, tag if type(tag) is int else None
