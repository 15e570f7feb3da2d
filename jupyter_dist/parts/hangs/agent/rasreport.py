"""Reads the report of NCCL's RAS on communicators: ranks that are behind, that failed or that do not respond. Pure.

NCCL has RAS from 2.24 on, and its reports as JSON in 2.28 (docs/gpu.md). It counts the collectives that NCCL itself has
begun, so it is evidence besides torch's flight recorder. Any process of the machine could answer at its port: a report
adds sentences to a verdict that has other evidence, and only on processes of this group.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from jupyter_dist.protocol.models.sentences import join, say
from jupyter_dist.protocol.ranks import RankSet, name_ranks

MAX_COMMUNICATORS = 1024
MAX_SENTENCES = 4
_OPERATION = re.compile(r"[A-Za-z]{1,32}")
# NCCL 2.28.9 writes no comma here, in the entry of a rank that does not respond.
_NO_COMMA = re.compile(rb'("nvml_dev":\s*-?\d+)(\s+"status")')
# Of ncclResult_t in nccl.h; 0 is success, and 7 an initialization under way.
_ERRORS = {1: say("a CUDA call failed"), 2: say("a system call failed"), 3: say("an internal error"),
           4: say("an invalid argument"), 5: say("invalid usage"),
           6: say("a peer is gone, or the network failed")}  # fmt: skip


class CommunicatorMember(NamedTuple):
    """A rank of a communicator."""

    host: str
    pid: int
    counts: Mapping[str, int]  # of collectives that it has begun, by operation
    error: int = 0
    is_silent: bool = False  # RAS gets no answer from its process
    is_dead: bool = False


Communicator = tuple[CommunicatorMember, ...]


def read(report: bytes) -> list[Communicator]:
    """Return the communicators of a report; none if it is no report. It may contain anything."""
    begin = report.find(b"{")
    try:
        found = json.loads(_NO_COMMA.sub(rb"\1,\2", report[begin:])) if begin >= 0 else {}
        return [_communicator(one) for one in found["communicators"][:MAX_COMMUNICATORS]]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []


def of_group(communicators: Iterable[Communicator], ranks: Mapping[int, int]) -> list[Communicator]:
    """Return the communicators of these processes, without other groups and users.

    Args:
        communicators: all that a report names.
        ranks: the rank of each process of the group on this machine, by its id.
    """
    found = []
    for communicator in communicators:
        hosts = {member.host for member in communicator if member.pid in ranks}
        if len(hosts) == 1 and all(member.pid in ranks for member in communicator if member.host in hosts):
            found.append(communicator)
    return found


def sentences(communicators: Iterable[Communicator], ranks: Mapping[int, int], waiting: RankSet) -> list[str]:
    """Return a sentence for each difference within the communicators that these waiting ranks are in."""
    found: dict[str, None] = {}
    for communicator in communicators:
        if any(ranks.get(member.pid) in waiting for member in communicator):
            found.update(dict.fromkeys([*_differences(communicator, ranks), *_failures(communicator, ranks)]))
    return list(found)[:MAX_SENTENCES]


def _communicator(fields: dict[str, Any]) -> Communicator:
    answering = (_member(one, one["status"].get("async_error", 0)) for one in fields["ranks"])
    missing = (
        _member(one)._replace(is_silent=True, is_dead=one.get("status", {}).get("considered_dead") is True)
        for one in fields.get("missing_ranks", ())
    )
    return (*answering, *missing)


def _member(fields: dict[str, Any], error: Any = 0) -> CommunicatorMember:
    counts = fields.get("collective_counts", {})
    right = {name: int(number) for name, number in counts.items() if _OPERATION.fullmatch(name)}
    return CommunicatorMember(str(fields["host"])[:64], int(fields["pid"]), right, int(error))


def _differences(communicator: Communicator, ranks: Mapping[int, int]) -> Iterable[str]:
    answering = [member for member in communicator if not member.is_silent]
    for operation in sorted({name for member in answering for name in member.counts}):
        by_count: dict[int, list[CommunicatorMember]] = {}
        for member in answering:
            by_count.setdefault(member.counts.get(operation, 0), []).append(member)
        if len(by_count) > 1:
            counts = sorted(by_count.items())[::-1]
            parts = join(*(say("%1 on %2", number, _named(members, ranks)) for number, members in counts), by=", ")
            of_all = _named(communicator, ranks)
            yield say("NCCL has begun this many %1 in the communicator of %2: %3.", operation, of_all, parts)


def _failures(communicator: Communicator, ranks: Mapping[int, int]) -> Iterable[str]:
    if dead := [member for member in communicator if member.is_dead]:
        yield say("NCCL counts %1 as dead.", _named(dead, ranks))
    if silent := [member for member in communicator if member.is_silent and not member.is_dead]:
        yield say("NCCL gets no answer from %1.", _named(silent, ranks))
    for error, why in _ERRORS.items():
        if failed := [member for member in communicator if member.error == error]:
            yield say("NCCL reports an error on %1: %2.", _named(failed, ranks), why)


def _named(members: Iterable[CommunicatorMember], ranks: Mapping[int, int]) -> str:
    """Return the ranks of these members; processes of other machines by their id and host."""
    known = RankSet(ranks[member.pid] for member in members if member.pid in ranks)
    others = [say("process %1 of %2", member.pid, member.host) for member in members if member.pid not in ranks]
    name = name_ranks(known) if known else ""
    return join(name, *others[:3], say("others") if len(others) > 3 else "", by=", ")
