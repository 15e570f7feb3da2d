"""Judges whether ranks that wait for each other can ever continue. Pure: it gets facts about the ranks, twice.

A rank that waits in a collective continues only if every other rank of its process group gets there. So: ranks that run
code may get anywhere; a waiting rank may go on if all it waits for are there or may go on; what is left over then
waits forever. One look could meet ranks on their way, so nothing may have moved between two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from jupyter_dist.protocol.ranks import format_ranks

if TYPE_CHECKING:
    from jupyter_dist.protocol import models

# Of processor time, between two looks: data that arrives takes more, an answer to a look less.
MOVES_SECONDS = 0.08
# Shapes may differ between the ranks of any other collective.
_SAME_SHAPES = frozenset({"all_reduce", "broadcast", "reduce", "all_gather_into_tensor", "reduce_scatter_tensor"})

IN_DEBUGGER = "in the debugger at "  # how the place of a rank begins that a debugger has stopped

State = Literal["waits", "runs", "idle", "dead", "unknown"]


@dataclass(frozen=True)
class Call:
    """The call of torch.distributed that a rank waits in."""

    name: str
    group: str
    members: frozenset[int]
    peer: int | None = None
    is_p2p: bool = False
    seq: int | None = None
    shape: str = ""

    @property
    def kind(self) -> str:
        """Return its name without its way to wait: `recv` for `irecv` and `wait() of recv`."""
        return self.name.removeprefix("wait() of ").removeprefix("i")

    @property
    def partners(self) -> frozenset[int]:
        """Return the ranks whose part it needs."""
        return frozenset((self.peer,)) if self.is_p2p and self.peer is not None else self.members


@dataclass(frozen=True)
class Fact:
    """What is known of a rank at one moment."""

    rank: int
    state: State
    call: Call | None = None  # of one that waits
    place: str = ""  # the user's line that it is at, or the last cell of an idle one
    begun: int | None = None  # number of collectives that it has begun on the default process group
    execution_id: str | None = None
    cpu_seconds: float = 0.0
    may_start: bool = False  # an idle rank with a thread of its own or a cell that is queued for it


Facts = Mapping[int, Fact]


def judge(before: Facts, now: Facts, cpu_tells: bool = True) -> dict[str, models.Verdict]:
    """Return a verdict for each execution in which ranks wait for others, by its id.

    Args:
        before: the facts of the first look.
        now: those of the second one.
        cpu_tells: whether a waiting rank uses no processor; ranks that wait for a device spin.
    """
    waiting = [fact for fact in now.values() if fact.state == "waits" and _same(before.get(fact.rank), fact)]
    if not waiting:
        return {}
    free = _may_go_on(before, now, cpu_tells)
    found: dict[str, models.Verdict] = {}
    for execution_id in {fact.execution_id for fact in waiting if fact.execution_id is not None}:
        mine = [fact for fact in waiting if fact.execution_id == execution_id]
        stuck = [fact for fact in mine if fact.rank not in free]
        verdict = _cannot_end(stuck, now) if stuck else _waits(mine, now)
        if verdict is not None:
            found[execution_id] = verdict
    return found


def _same(before: Fact | None, now: Fact) -> bool:
    return before is not None and (before.state, before.call, before.execution_id, before.begun) == (
        now.state,
        now.call,
        now.execution_id,
        now.begun,
    )


def _may_go_on(before: Facts, now: Facts, cpu_tells: bool) -> set[int]:
    """Return the ranks that may still do something: the least set that is closed under "all its partners may"."""
    free = {fact.rank for fact in now.values() if _moves(before.get(fact.rank), fact, cpu_tells)}
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


def _moves(before: Fact | None, fact: Fact, cpu_tells: bool) -> bool:
    if fact.state in ("runs", "unknown") or fact.may_start or before is None:
        return True
    if fact.state == "dead":
        return False
    used = fact.cpu_seconds - before.cpu_seconds
    return not _same(before, fact) or (cpu_tells and used > MOVES_SECONDS)


class _Met:
    """Whether all that ranks wait for are in the same call, or may get there: found once for ranks in one collective.

    Each of thousands of ranks waits for all others.
    """

    def __init__(self, now: Facts, free: Set[int]) -> None:
        self._now = now
        self._free = free
        self._known: dict[Call, bool] = {}  # of collectives: what holds for one rank in it holds for the others

    def holds(self, fact: Fact) -> bool:
        """Whether it is so for a rank that waits."""
        call = fact.call
        assert call is not None
        if call.is_p2p:
            return _is_met(call, self._others(call, fact.rank), self._free)
        if call not in self._known:
            self._known[call] = _is_met(call, self._others(call, fact.rank), self._free)
        return self._known[call]

    def _others(self, call: Call, rank: int) -> list[Fact]:
        return [self._now[other] for other in call.partners if other != rank and other in self._now]


def _is_met(call: Call, others: list[Fact], free: Set[int]) -> bool:
    apart = [other for other in others if not _meet(call, other)]
    if call.is_p2p and call.peer is None:  # any of them may be the peer
        return len(apart) < len(others) or any(other.rank in free for other in apart)
    if apart:
        return all(other.rank in free for other in apart)
    return call.name not in _SAME_SHAPES or {other.call.shape for other in others if other.call} <= {call.shape}


def _meet(call: Call, other: Fact) -> bool:
    """Whether the other rank is in the same call."""
    theirs = other.call
    if other.state != "waits" or theirs is None or theirs.group != call.group:
        return False
    if call.is_p2p or theirs.is_p2p:
        return {call.kind, theirs.kind} == {"send", "recv"}
    return theirs.name == call.name and theirs.peer == call.peer


# -- words --------------------------------------------------------------------------------------------


def _cannot_end(stuck: list[Fact], now: Facts) -> models.Verdict | None:
    calls = [fact.call for fact in stuck if fact.call is not None]
    needed = frozenset[int]().union(*(call.partners for call in calls)) - {fact.rank for fact in stuck}
    others = [now[rank] for rank in sorted(needed) if rank in now]
    idle = [fact for fact in others if fact.state == "idle"]
    dead = [fact for fact in others if fact.state == "dead"]
    if dead:
        return _verdict("cannot_end", "dead", stuck, dead, f"{_ranks(dead)} {_is(dead)} dead.")
    if idle:
        text = f"{_ranks(idle)} {_is(idle)} idle and {_has(idle)} not called it{_counts(stuck, idle)}."
        return _verdict("cannot_end", "missing", stuck, idle, text)
    blocked = [fact for fact in now.values() if fact.state == "waits" and fact.call is not None]
    return _differ(stuck, blocked)


def _differ(stuck: list[Fact], blocked: list[Fact]) -> models.Verdict | None:
    """All that are needed wait, too: for each other."""
    names = {(fact.call.name, fact.call.peer) for fact in blocked if fact.call is not None}
    groups = {fact.call.group for fact in blocked if fact.call is not None}
    mine = {fact.rank for fact in stuck}
    others = [fact for fact in blocked if fact.rank not in mine]
    if len(groups) > 1:
        text = "They wait for each other in different process groups: each rank must call the groups in the same order."
        return _verdict("cannot_end", "order", stuck, others, text)
    if len(names) > 1:
        text = "These calls do not match: ranks must make the same one, with the same root, or its counterpart."
        return _verdict("cannot_end", "mismatch", stuck, others, text)
    shapes = {fact.call.shape for fact in blocked if fact.call is not None}
    if len(shapes) > 1 and all(fact.call is not None and fact.call.name in _SAME_SHAPES for fact in blocked):
        return _verdict("cannot_end", "shapes", stuck, others, "Their tensors differ in shape or dtype.")
    return None


def _waits(waiting: list[Fact], now: Facts) -> models.Verdict | None:
    calls = [fact.call for fact in waiting if fact.call is not None]
    needed = frozenset[int]().union(*(call.partners for call in calls)) - {fact.rank for fact in waiting}
    others = [now[rank] for rank in sorted(needed) if rank in now and now[rank].state in ("runs", "unknown", "idle")]
    if not others:
        return None
    where = "; ".join(f"rank {fact.rank} {_at(fact.place)}" for fact in others[:3] if fact.place)
    text = f"{_ranks(others)} {_has(others)} not called it yet{': ' if where else ''}{where}."
    return _verdict("waits", "busy", waiting, others, text)


def _at(place: str) -> str:
    line = place.removeprefix(IN_DEBUGGER)
    return f"is at {line}" if line == place else f"is stopped in the debugger at {line}".removesuffix(" at ")


def _verdict(
    kind: Literal["cannot_end", "waits"],
    reason: Literal["missing", "dead", "order", "mismatch", "shapes", "busy"],
    waiting: list[Fact],
    others: list[Fact],
    text: str,
) -> models.Verdict:
    does = " ".join(
        f"{_ranks(facts)} {_wait(facts)} in {what}." for what, facts in _by_call([*waiting, *_calling(others)])
    )
    return {
        "kind": kind,
        "reason": reason,
        "message": f"{does} {text}",
        "since": 0.0,  # the watch knows
        "waiting": [_part(facts) for _, facts in _by_call(waiting)],
        "needed": [_part(facts) for facts in _by_place(others)],
    }


def _calling(facts: Iterable[Fact]) -> list[Fact]:
    return [fact for fact in facts if fact.state == "waits"]


def _part(facts: list[Fact]) -> models.VerdictPart:
    first = facts[0]
    part: models.VerdictPart = {
        "ranks": format_ranks(fact.rank for fact in facts),
        "state": first.state,
        "place": first.place or None,
        "call": waits_in(first),
    }
    return part


def _by_call(facts: list[Fact]) -> list[tuple[str, list[Fact]]]:
    found: dict[str, list[Fact]] = {}
    for fact in facts:
        at = f" at {fact.place}" if fact.place else ""
        found.setdefault(f"{_describe(fact.call)}{at}" if fact.call else "", []).append(fact)
    return list(found.items())


def _by_place(facts: list[Fact]) -> list[list[Fact]]:
    found: dict[tuple[State, str, Call | None], list[Fact]] = {}
    for fact in facts:
        found.setdefault((fact.state, fact.place, fact.call), []).append(fact)
    return list(found.values())


def waits_in(fact: Fact) -> str | None:
    """Return the call that a rank waits in, in words; None if it does not wait."""
    return _describe(fact.call) if fact.call is not None and fact.state == "waits" else None


def _describe(call: Call) -> str:
    """Return the call in words: "all_reduce, number 4, float [4]"."""
    peer = "" if call.peer is None else f" ({'peer' if call.is_p2p else 'root'} {call.peer})"
    number = f", number {call.seq}" if call.seq is not None else ""
    group = f" of process group {call.group}" if call.group != "default" else ""
    shape = f", {call.shape}" if call.shape else ""
    return f"{call.name}{peer}{group}{number}{shape}"


def _counts(stuck: list[Fact], idle: list[Fact]) -> str:
    mine, theirs = {fact.begun for fact in stuck}, {fact.begun for fact in idle}
    if len(mine) == len(theirs) == 1 and None not in mine | theirs and mine != theirs:
        return f" ({mine.pop()} collectives against {theirs.pop()})"
    return ""


def _ranks(facts: list[Fact]) -> str:
    return f"Rank{'s' if len(facts) > 1 else ''} {format_ranks(fact.rank for fact in facts)}"


def _is(facts: list[Fact]) -> str:
    return "are" if len(facts) > 1 else "is"


def _has(facts: list[Fact]) -> str:
    return "have" if len(facts) > 1 else "has"


def _wait(facts: list[Fact]) -> str:
    return "wait" if len(facts) > 1 else "waits"
