"""torch's flight recorder: which collective this rank began that has not completed. Any thread, 0.1 ms."""

from __future__ import annotations

import json
from typing import Any, TypedDict

from torch._C import _distributed_c10d as c10d

_NO_ENTRIES = (False, False)  # includeCollectives, onlyActive
_ACTIVE_ENTRIES = (True, True)

_forgotten: set[int] = set()


class Collective(TypedDict):
    """One that was begun: what torch calls it, its process group and its number there."""

    name: str
    group: str
    seq: int


def outstanding() -> Collective | None:
    """Return the oldest collective that is not complete; None when all are, or torch does not tell."""
    if not _is_behind(_dump(_NO_ENTRIES).get("pg_status", {})):
        return None
    entries = [entry for entry in _unfinished() if int(entry["record_id"]) not in _forgotten]
    if not entries:
        return None
    return _describe(min(entries, key=lambda entry: int(entry["record_id"])))


def forget() -> None:
    """What is not complete now will never be: it was given up."""
    _forgotten.update(int(entry["record_id"]) for entry in _unfinished())


def _unfinished() -> list[dict[str, Any]]:
    return [entry for entry in _dump(_ACTIVE_ENTRIES).get("entries", ()) if not entry["retired"]]


def _is_behind(status: dict[str, dict[str, str]]) -> bool:
    return any(
        int(group["last_enqueued_collective"]) > int(group["last_completed_collective"]) for group in status.values()
    )


def _describe(entry: dict[str, Any]) -> Collective:
    # "gloo:all_reduce", "nccl:_all_gather_base"
    name = str(entry["profiling_name"]).rpartition(":")[2]
    seq = int(entry["p2p_seq_id"] if entry["is_p2p"] else entry["collective_seq_id"])
    return {"name": name, "group": str(entry["pg_id"]), "seq": seq}


def _dump(arguments: tuple[bool, bool]) -> dict[str, Any]:
    # Since torch 2.7 for all backends; before it for NCCL alone, by another name.
    recorder = getattr(c10d, "_dump_fr_trace_json", None) or getattr(c10d, "_dump_nccl_trace_json", None)
    return dict(json.loads(recorder(*arguments))) if recorder is not None else {}
