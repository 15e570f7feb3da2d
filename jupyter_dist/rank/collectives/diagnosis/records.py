"""The records of torch's flight recorders, as one list. A build for devices has several recorders.

Seen on an H200 (docs/gpu.md): NCCL's collectives are in `_dump_nccl_trace_json` alone, gloo's in `_dump_fr_trace_json`
alone, and a CUDA build has both names. So all existing recorders are read. Each counts its records from 0.
"""

from __future__ import annotations

import math
import operator
from contextlib import suppress
from typing import Any, NamedTuple, TypedDict

from jupyter_dist.rank.collectives import captures, torch_recorders
from jupyter_dist.rank.guard.own import json

_NO_ENTRIES = (False, False)  # includeCollectives, onlyActive
_ACTIVE_ENTRIES = (True, True)
_ALL_ENTRIES = (True, False)
_COALESCED = "coalesced"
# Fields may be others in another version of torch.
OF_OTHER_VERSIONS = (KeyError, TypeError, ValueError, AttributeError, IndexError)


class BegunRecord(NamedTuple):
    """A collective or a message that was begun, in a recorder."""

    name: str  # the profiler's: "gloo:all_reduce"
    group: str  # torch's name of the process group, equal on all ranks
    elements: int  # of its first tensor
    began_ns: int
    is_p2p: bool

    @property
    def operation(self) -> str:
        """The name without the backend."""
        return self.name.rpartition(":")[2]


class IncompleteCollective(TypedDict):
    """An incomplete collective in a recorder. `record` identifies it among all collectives of this process."""

    record: tuple[str, int]
    backend: str  # "gloo", "nccl"
    name: str
    group: str  # torch's name of the process group, equal on all ranks
    seq: int
    sizes: list[Any]
    dtypes: list[str]
    created_ns: int


def are_unfinished() -> bool:
    """Whether a process group has begun more collectives than it has completed. Cheaper than listing them."""
    for recorded in _recorded(_NO_ENTRIES).values():
        with suppress(*OF_OTHER_VERSIONS):
            for group in recorded["pg_status"].values():
                if int(group["last_enqueued_collective"]) > int(group["last_completed_collective"]):
                    return True
    return False


def unfinished_collectives() -> list[IncompleteCollective]:
    """Return the entries of incomplete collectives, oldest first."""
    found = []
    for recorder, recorded in _recorded(_ACTIVE_ENTRIES).items():
        with suppress(*OF_OTHER_VERSIONS):
            entries = [entry for entry in recorded["entries"] if not entry["retired"]]
            if any(map(_is_p2p, entries)):
                entries = _without_ended_parts(entries, _recorded(_ALL_ENTRIES).get(recorder, recorded)["entries"])
            found += [_entry(recorder, entry) for entry in entries]
    return _in_order(found)


def _is_p2p(entry: dict[str, Any]) -> bool:
    return bool(entry.get("is_p2p"))


def _without_ended_parts(entries: list[dict[str, Any]], of_all: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out each send and recv of a batch that has ended: torch retires the entry of the batch alone.

    A batch (`batch_isend_irecv`, pipeline stages) has a separate entry after its parts' entries, with their number.
    """
    batches = [entry for entry in of_all if _name(entry) == _COALESCED]

    def has_ended(entry: dict[str, Any]) -> bool:
        later = (
            batch for batch in batches if batch["record_id"] > entry["record_id"] and _batch(batch) == _batch(entry)
        )
        return _is_p2p(entry) and bool(next(later, {"retired": False})["retired"])

    return [entry for entry in entries if not has_ended(entry)]


def _batch(entry: dict[str, Any]) -> tuple[Any, Any]:
    return entry["pg_id"], entry["p2p_seq_id"]


def abandoned_collectives() -> list[IncompleteCollective]:
    """Return the entries of collectives on devices that torch has given up: they did not complete, oldest first.

    Its watchdog retires collectives that fail or exceed the time limit, although the device still waits. A
    later collective of the process group that has completed shows that this one has, too.
    """
    found = []
    asking = [name for name, recorder in torch_recorders.recorders().items() if recorder.asks_device]
    for recorder, recorded in _recorded(_ACTIVE_ENTRIES).items() if asking else ():
        with suppress(*OF_OTHER_VERSIONS):
            given_up = [entry for entry in recorded["entries"] if entry["retired"] and _has_no_end(entry)]
            if recorder not in asking or not given_up:
                continue
            ended: dict[Any, int] = {}
            for entry in _recorded(_ALL_ENTRIES)[recorder]["entries"]:
                if entry["retired"] and not _has_no_end(entry):
                    ended[entry["pg_id"]] = max(ended.get(entry["pg_id"], -1), entry["record_id"])
            found += [_entry(recorder, one) for one in given_up if one["record_id"] > ended.get(one["pg_id"], -1)]
    return _in_order(found)


def _has_no_end(entry: dict[str, Any]) -> bool:
    return entry["state"] != "completed"


def all_collectives() -> list[IncompleteCollective]:
    """Return the entries of all collectives that are kept, oldest first."""
    found = []
    for recorder, recorded in _recorded(_ALL_ENTRIES).items():
        with suppress(*OF_OTHER_VERSIONS):
            found += [_entry(recorder, entry) for entry in recorded["entries"]]
    return _in_order(found)


def _in_order(entries: list[IncompleteCollective]) -> list[IncompleteCollective]:
    return sorted(entries, key=operator.itemgetter("created_ns", "record"))


def entries_by_recorder() -> dict[str, list[dict[str, Any]]]:
    """Return torch's entries of all collectives that are kept, by recorder, in the quickest format that it has."""
    found = {}
    for name, recorder in torch_recorders.recorders().items():
        with captures.none_meanwhile(of_interest=recorder.asks_device) as may_ask:
            if may_ask:
                with suppress(RuntimeError, *OF_OTHER_VERSIONS):
                    found[name] = list(recorder.entries())
    return found


def collectives_since(time_ns: int) -> list[BegunRecord]:
    """Return the last collectives that were begun after a time, in order. Takes about a millisecond."""
    begun: list[BegunRecord] = []
    for entries in entries_by_recorder().values():
        with suppress(*OF_OTHER_VERSIONS):
            begun += [_begun(entry) for entry in entries if int(entry["time_created_ns"]) >= time_ns]
    return sorted(begun, key=operator.attrgetter("began_ns"))


def _begun(entry: dict[str, Any]) -> BegunRecord:
    elements = math.prod(map(int, (entry.get("input_sizes") or [[]])[0]))
    began_ns, group = int(entry["time_created_ns"]), str(entry["process_group"][0])
    return BegunRecord(str(entry["profiling_name"]), group, elements, began_ns, _is_p2p(entry))


def backends_seen() -> set[str]:
    """Return the backends of which a recorder holds collectives, complete or not."""
    seen = set()
    for recorded in _recorded(_ALL_ENTRIES).values():
        with suppress(*OF_OTHER_VERSIONS):
            seen |= {_backend(entry) for entry in recorded["entries"]}
    return seen


def _entry(recorder: str, entry: dict[str, Any]) -> IncompleteCollective:
    is_p2p = entry.get("is_p2p", False)
    return {
        "record": (recorder, int(entry["record_id"])),
        "backend": _backend(entry),
        "name": _name(entry),
        # Its name: `pg_id` counts all groups that this process ever made, also those before the group was re-created.
        "group": str(entry["process_group"][0]),
        "seq": int(entry["p2p_seq_id"] if is_p2p else entry["collective_seq_id"]),
        "sizes": list(entry.get("input_sizes") or ()),
        "dtypes": [str(dtype) for dtype in entry.get("input_dtypes") or ()],
        "created_ns": int(entry.get("time_created_ns", 0)),
    }


def _name(entry: dict[str, Any]) -> str:
    return str(entry["profiling_name"]).rpartition(":")[2]  # "gloo:all_reduce", "nccl:_all_gather_base"


def _backend(entry: dict[str, Any]) -> str:
    return str(entry["profiling_name"]).partition(":")[0]


def _recorded(arguments: tuple[bool, bool]) -> dict[str, dict[str, Any]]:
    """Return the content of each recorder, without recorders that fail or must not be read now."""
    found = {}
    for name, recorder in torch_recorders.recorders().items():
        # Reading the recorder queries the device, which would end a capture of a graph.
        with captures.none_meanwhile(of_interest=recorder.asks_device) as may_ask:
            if may_ask:
                with suppress(RuntimeError, ValueError):
                    recorded = json.loads(recorder.dump(*arguments))
                    if isinstance(recorded, dict):
                        found[name] = recorded
    return found
