"""What torch's flight recorders say, as one list. A build for devices has several.

Seen on an H200 (docs/gpu.md): NCCL's collectives are in `_dump_nccl_trace_json` alone, gloo's in `_dump_fr_trace_json`
alone, and a CUDA build has both names. So all that there are are read. Each counts its records from 0.
"""

from __future__ import annotations

import operator
from contextlib import suppress
from typing import Any, TypedDict

from jupyter_dist.rank.collectives import captures, torch_recorders
from jupyter_dist.rank.guard.own import json

_NO_ENTRIES = (False, False)  # includeCollectives, onlyActive
_ACTIVE_ENTRIES = (True, True)
_ALL_ENTRIES = (True, False)
# Fields may be others in another version of torch.
_OF_OTHER_VERSIONS = (KeyError, TypeError, ValueError, AttributeError, IndexError)


class IncompleteCollective(TypedDict):
    """An incomplete collective in a recorder. `record` tells it from all others that this process ever had."""

    record: tuple[str, int]
    backend: str  # "gloo", "nccl"
    name: str
    group: str  # torch's name of the process group, which all ranks have alike
    seq: int
    sizes: list[Any]
    dtypes: list[str]
    created_ns: int


def are_unfinished() -> bool:
    """Whether a process group has begun more collectives than it has completed. Costs less than to list them."""
    for recorded in _recorded(_NO_ENTRIES).values():
        with suppress(*_OF_OTHER_VERSIONS):
            for group in recorded["pg_status"].values():
                if int(group["last_enqueued_collective"]) > int(group["last_completed_collective"]):
                    return True
    return False


def unfinished_collectives() -> list[IncompleteCollective]:
    """Return the entries of incomplete collectives, oldest first."""
    found = []
    for recorder, recorded in _recorded(_ACTIVE_ENTRIES).items():
        with suppress(*_OF_OTHER_VERSIONS):
            found += [_entry(recorder, entry) for entry in recorded["entries"] if not entry["retired"]]
    return sorted(found, key=operator.itemgetter("created_ns", "record"))


def all_collectives() -> list[IncompleteCollective]:
    """Return the entries of all collectives that are kept, oldest first."""
    found = []
    for recorder, recorded in _recorded(_ALL_ENTRIES).items():
        with suppress(*_OF_OTHER_VERSIONS):
            found += [_entry(recorder, entry) for entry in recorded["entries"]]
    return sorted(found, key=operator.itemgetter("created_ns", "record"))


def collectives_since(time_ns: int) -> list[tuple[str, str]]:
    """Return the last collectives that were begun after a time: name and process group, in order.

    Names are those of the profiler ("gloo:all_reduce"); groups have torch's name, which all ranks have alike.
    """
    begun: list[dict[str, Any]] = []
    for recorded in _recorded(_ALL_ENTRIES).values():
        with suppress(*_OF_OTHER_VERSIONS):
            begun += [entry for entry in recorded["entries"] if entry["time_created_ns"] >= time_ns]
    with suppress(*_OF_OTHER_VERSIONS):
        begun.sort(key=operator.itemgetter("time_created_ns"))
        return [(str(entry["profiling_name"]), str(entry["process_group"][0])) for entry in begun]
    return []


def backends_seen() -> set[str]:
    """Return the backends of which a recorder holds collectives, complete or not."""
    seen = set()
    for recorded in _recorded(_ALL_ENTRIES).values():
        with suppress(*_OF_OTHER_VERSIONS):
            seen |= {_backend(entry) for entry in recorded["entries"]}
    return seen


def _entry(recorder: str, entry: dict[str, Any]) -> IncompleteCollective:
    is_p2p = entry.get("is_p2p", False)
    return {
        "record": (recorder, int(entry["record_id"])),
        "backend": _backend(entry),
        "name": str(entry["profiling_name"]).rpartition(":")[2],  # "gloo:all_reduce", "nccl:_all_gather_base"
        # Its name: `pg_id` counts all groups that this process ever made, also those before the group was re-created.
        "group": str(entry["process_group"][0]),
        "seq": int(entry["p2p_seq_id"] if is_p2p else entry["collective_seq_id"]),
        "sizes": list(entry.get("input_sizes") or ()),
        "dtypes": [str(dtype) for dtype in entry.get("input_dtypes") or ()],
        "created_ns": int(entry.get("time_created_ns", 0)),
    }


def _backend(entry: dict[str, Any]) -> str:
    return str(entry["profiling_name"]).partition(":")[0]


def _recorded(arguments: tuple[bool, bool]) -> dict[str, dict[str, Any]]:
    """Return what each recorder says; a recorder that fails, or must not be asked now, says nothing."""
    found = {}
    for name, recorder in torch_recorders.recorders().items():
        # To ask asks the device, which would end a capture of a graph.
        with captures.none_meanwhile(of_interest=recorder.asks_device) as may_ask:
            if may_ask:
                with suppress(RuntimeError, ValueError):
                    recorded = json.loads(recorder.dump(*arguments))
                    if isinstance(recorded, dict):
                        found[name] = recorded
    return found
