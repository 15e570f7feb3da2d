"""Judges whether ranks that wait for each other can ever continue. Pure: it gets facts about the ranks, twice.

A rank that waits in a collective continues only if every other rank of its process group gets there. So: ranks that run
code may get anywhere; a waiting rank may continue if all ranks that it waits for are there or may continue; the
ranks that are left over wait forever. One look could meet ranks on their way, so nothing may have moved between two.

Numbers decide whether a rank "is there": each process group counts its collectives, and a rank that has begun as
many has called it, wherever it is now. The recorder then shows whether it was the same call.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import TYPE_CHECKING

from jupyter_dist.agent.watch.facts import BACKWARD, Fact, Facts, WaitedCall

from . import sentences

if TYPE_CHECKING:
    from jupyter_dist.parts.hangs.models import Verdict

# Of processor time, between two looks: data that arrives takes more, an answer to a look less.
MOVES_SECONDS = 0.08
# A cell that has not moved for this time is reported, although it may end.
STILL_SECONDS = 10.0
# Shapes may differ between the ranks of any other collective.
_SAME_SHAPES = frozenset({"all_reduce", "broadcast", "reduce", "all_gather_into_tensor", "reduce_scatter_tensor"})


def judge(
    before: Facts,
    now: Facts,
    cpu_counts: bool = True,
    still: Mapping[str, float] | None = None,
    paths: str | None = None,
) -> dict[str, Verdict]:
    """Return a verdict for each execution in which ranks wait for others, by its id.

    Args:
        before: the facts of the first look.
        now: the facts of the second look.
        cpu_counts: whether a waiting rank uses no processor; ranks that wait for a device spin.
        still: for how many seconds no rank of an execution has moved, by its id.
        paths: which nodes do not reach each other, in sentences; empty if all do, None if that is not known.
    """
    waiting = [fact for fact in now.values() if fact.state == "waits" and is_same(before.get(fact.rank), fact)]
    free = _may_continue(before, now, cpu_counts) if waiting else set[int]()
    found: dict[str, Verdict] = {}
    for execution_id in {fact.execution_id for fact in waiting if fact.execution_id is not None}:
        mine = [fact for fact in waiting if fact.execution_id == execution_id]
        stuck = [fact for fact in mine if fact.rank not in free]
        verdict = _cannot_end(stuck, now) if stuck else _waits(mine, now)
        if verdict is not None:
            found[execution_id] = verdict
    for execution_id, seconds in (still or {}).items():
        if execution_id not in found and seconds >= STILL_SECONDS:
            here = [fact for fact in now.values() if fact.execution_id == execution_id]
            found[execution_id] = sentences.still(here, seconds, paths)
    return found


def is_same(before: Fact | None, now: Fact) -> bool:
    """Whether a rank is where it was, by its frames, calls and counts."""
    return before is not None and _where(before) == _where(now)


def _where(fact: Fact) -> tuple[object, ...]:
    return fact.state, fact.call, fact.execution_id, fact.begun, fact.counts, fact.at


def _may_continue(before: Facts, now: Facts, cpu_counts: bool) -> set[int]:
    """Return the ranks that may still do something: the least set that is closed under "all its partners may"."""
    free = {fact.rank for fact in now.values() if moves(before.get(fact.rank), fact, cpu_counts)}
    grown = True
    while grown:
        met = _Met(now, free)
        more = {
            fact.rank
            for fact in now.values()
            if fact.rank not in free and fact.call is not None and fact.state == "waits" and met.holds(fact)
        }
        free |= more
        grown = bool(more)
    return free


def moves(before: Fact | None, fact: Fact, cpu_counts: bool) -> bool:
    """Whether a rank moves, or may by itself: it runs code, something of it comes, or its call gives up."""
    if fact.state in ("runs", "unknown") or fact.may_start or before is None:
        return True
    if fact.state == "dead":
        return False
    call = fact.call
    if call is not None and (call.is_polled or call.limit is not None or not (call.is_clear or call.also)):
        return True
    return not is_same(before, fact) or (cpu_counts and fact.cpu_seconds - before.cpu_seconds > MOVES_SECONDS)


class _Met:
    """Whether all that ranks wait for are in the same call, or may get there: found once for ranks in one collective.

    Each of thousands of ranks waits for all others.
    """

    def __init__(self, now: Facts, free: Set[int]) -> None:
        self._now = now
        self._free = free
        self._known: dict[WaitedCall, bool] = {}  # of collectives: what holds for one rank in it holds for the others

    def holds(self, fact: Fact) -> bool:
        """Whether a waiting rank can be met in its call; in one of several, if it is not known in which."""
        assert fact.call is not None
        return any(self._holds(call, fact.rank) for call in (fact.call, *fact.call.also))

    def _holds(self, call: WaitedCall, rank: int) -> bool:
        if call.is_p2p:
            return self._is_met(call, rank)
        if call not in self._known:
            self._known[call] = self._is_met(call, rank)
        return self._known[call]

    def _is_met(self, call: WaitedCall, rank: int) -> bool:
        others = _partners(call, rank, self._now)
        apart = [other for other in others if not _is_there(call, rank, other)]
        if call.is_p2p and call.peer is None:  # any of them may be the peer
            return len(apart) < len(others) or any(other.rank in self._free for other in apart)
        return all(other.rank in self._free for other in apart)


def _partners(call: WaitedCall, rank: int, now: Facts) -> list[Fact]:
    return [now[other] for other in call.partners if other != rank and other in now]


def _is_there(call: WaitedCall, rank: int, other: Fact) -> bool:
    return _exchange(call, rank, other) if call.is_p2p else _meet(call, other) and _has_same_shape(call, other)


def _exchange(call: WaitedCall, rank: int, other: Fact) -> bool:
    """Whether one rank sends to the other, and the other receives."""
    theirs = other.call
    if other.state != "waits" or theirs is None or theirs.of_group != call.of_group:
        return False
    is_for_it = theirs.peer in (None, rank) and {call.kind, theirs.kind} == {"send", "recv"}
    return is_for_it and (None in (call.tag, theirs.tag) or call.tag == theirs.tag)


def _meet(call: WaitedCall, other: Fact) -> bool:
    """Whether the other rank is in the same call, or has called it before."""
    theirs = other.call
    is_near = other.state == "waits" and theirs is not None and theirs.of_group == call.of_group
    has_called = sentences.has_called(call, other)
    if has_called is None:  # torch does not count it
        return is_near and theirs is not None and not theirs.is_p2p and _are_alike(call, theirs)
    if not has_called:
        return False
    if is_near and theirs is not None and theirs.seq == call.seq and not theirs.is_p2p:
        return _are_alike(call, theirs)
    record = sentences.record_of(call, other)
    return record is None or call.operation is None or record.name == call.operation


def _are_alike(call: WaitedCall, theirs: WaitedCall) -> bool:
    """Whether two calls are the same one. A wait has no root, and a backward pass is any collective."""
    if None not in (call.seq, theirs.seq) and call.seq != theirs.seq:
        return False
    if call.operation is not None and theirs.operation is not None:
        is_alike = call.operation == theirs.operation
    else:
        is_alike = call.kind == theirs.kind or BACKWARD in (call.name, theirs.name)
    return is_alike and (call.peer == theirs.peer or None in (call.peer, theirs.peer))


def _has_same_shape(call: WaitedCall, other: Fact) -> bool:
    if call.name not in _SAME_SHAPES and call.operation not in _SAME_SHAPES:
        return True
    record = sentences.record_of(call, other)
    theirs = record.shape if record is not None else ""
    if not theirs and other.call is not None and _are_alike(call, other.call):
        theirs = other.call.shape
    return theirs in ("", call.shape) or not call.shape


# -- which verdict ------------------------------------------------------------------------------------


def _apart(waiting: list[Fact], now: Facts) -> list[Fact]:
    """Return the ranks that these wait for and that are not in the same call, but for themselves."""
    found: set[int] = set()
    known: set[WaitedCall] = set()
    for fact in waiting:
        if fact.call is None or (fact.call in known and not fact.call.is_p2p):
            continue
        known.add(fact.call)
        others = _partners(fact.call, fact.rank, now)
        found.update(other.rank for other in others if not _is_there(fact.call, fact.rank, other))
    return [now[rank] for rank in sorted(found - {fact.rank for fact in waiting})]


def _cannot_end(stuck: list[Fact], now: Facts) -> Verdict | None:
    others = _apart(stuck, now)
    dead = [fact for fact in others if fact.state == "dead"]
    if dead:
        return sentences.is_dead(stuck, dead)
    calls = [fact.call for fact in stuck if fact.call is not None]
    idle = [fact for fact in others if fact.state == "idle"]
    missing = [fact for fact in idle if not any(sentences.has_called(call, fact) for call in calls)]
    if missing:
        return sentences.is_missing(stuck, missing)
    return _differ(stuck, [fact for fact in others if fact.state == "waits" or fact in idle], now)


def _differ(stuck: list[Fact], others: list[Fact], now: Facts) -> Verdict | None:
    """A verdict: all needed ranks wait, too, or have called something else."""
    all_of_them = [*stuck, *others]
    calls = list({fact.call: None for fact in all_of_them if fact.call is not None})  # thousands of ranks are in one
    if len({call.of_group for call in calls}) > 1:
        return sentences.in_other_order(stuck, others)
    if not all(_calls_alike(call, calls[0]) for call in calls) or not _records_alike(calls[0], all_of_them):
        return sentences.does_not_match(stuck, others)
    if not all(_has_same_shape(call, fact) for call in calls for fact in all_of_them):
        return sentences.shapes_differ(stuck, others)
    return _waits(stuck, now)


def _calls_alike(call: WaitedCall, other: WaitedCall) -> bool:
    return not call.is_p2p and not other.is_p2p and _are_alike(call, other)


def _records_alike(call: WaitedCall, facts: list[Fact]) -> bool:
    records = [sentences.record_of(call, fact) for fact in facts]
    return len({record.name for record in records if record is not None}) <= 1


def _waits(waiting: list[Fact], now: Facts) -> Verdict | None:
    others = [fact for fact in _apart(waiting, now) if fact.state in ("runs", "unknown", "idle")]
    return sentences.is_busy(waiting, others) if others else None
