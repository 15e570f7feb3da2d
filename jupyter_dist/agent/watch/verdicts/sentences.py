"""The words of verdicts: who waits in what, who is missing, and where. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal

from jupyter_dist.protocol.models.sentences import say, words_of
from jupyter_dist.protocol.ranks import RankSet

from .facts import IN_DEBUGGER, BegunCollective, Fact, State, WaitedCall

if TYPE_CHECKING:
    from jupyter_dist.protocol.models import models

Reason = Literal["missing", "dead", "order", "mismatch", "shapes", "busy", "still", "cut"]

# The time without a move is rounded, so that the sentence does not change at each look.
_ROUGHLY = (86_400, 43_200, 21_600, 7_200, 3_600, 1_800, 600, 300, 120, 60, 30, 10)
_MAX_PLACES = 3


def is_dead(stuck: list[Fact], dead: list[Fact]) -> models.Verdict:
    """A verdict: needed ranks are gone."""
    return _verdict("cannot_end", "dead", stuck, dead, f"{_ranks(dead)} {_is(dead)} dead.")


def is_missing(stuck: list[Fact], idle: list[Fact]) -> models.Verdict:
    """A verdict: needed ranks are idle, and have not called the collective."""
    text = f"{_ranks(idle)} {_is(idle)} idle and {_has(idle)} not called it{_counts(stuck, idle)}."
    return _verdict("cannot_end", "missing", stuck, idle, f"{_crossing(stuck)}{text}{_errors(idle)}")


def in_other_order(stuck: list[Fact], others: list[Fact]) -> models.Verdict:
    """Ranks wait in different process groups."""
    text = "They wait for each other in different process groups: each rank must call the groups in the same order."
    return _verdict("cannot_end", "order", stuck, others, f"{_crossing(stuck)}{text}")


def does_not_match(stuck: list[Fact], others: list[Fact]) -> models.Verdict:
    """Ranks wait in different calls, or one has skipped a collective."""
    text = "These calls do not match: ranks must make the same one, with the same root, or its counterpart."
    return _verdict("cannot_end", "mismatch", stuck, others, f"{text}{_first_difference([*stuck, *others])}")


def shapes_differ(stuck: list[Fact], others: list[Fact]) -> models.Verdict:
    """Ranks are in the same collective with other tensors."""
    call = next(fact.call for fact in stuck if fact.call is not None)
    found = _by([*stuck, *others], lambda fact: _shape_of(fact, call))
    shapes = "; ".join(f"{shape} on {_ranks(facts).lower()}" for shape, facts in found if shape)
    return _verdict("cannot_end", "shapes", stuck, others, f"Their tensors differ in shape or dtype: {shapes}.")


def is_busy(waiting: list[Fact], others: list[Fact]) -> models.Verdict:
    """A verdict: needed ranks may still get there."""
    where = "; ".join(_where(fact) for fact in others[:_MAX_PLACES] if fact.place or fact.silent)
    called = [fact for fact in others if _all_called(waiting, fact)]
    what = "called something else, or with other tensors" if called == others else "not called it yet"
    text = f"{_ranks(others)} {_has(others)} {what}{': ' if where else ''}{where}."
    return _verdict("waits", "busy", waiting, others, f"{text}{_limits(waiting)}")


def still(facts: list[Fact], seconds: float, paths: str | None = None) -> models.Verdict:
    """No rank of a cell has moved for a while, and none is known to be missing.

    Args:
        facts: the facts of the cell's ranks.
        seconds: for how long none has moved.
        paths: which nodes do not reach each other, in sentences; empty if all do, None if that is not known.
    """
    roughly = next((value for value in _ROUGHLY if value <= seconds), _ROUGHLY[-1])
    waiting = [fact for fact in facts if fact.state == "waits"]
    text = f"Nothing has moved for more than {_in_words(roughly)}"
    if waiting:
        why = " A connection between them may be cut."
        if paths is not None:
            why = f" {paths}" if paths else f"{why} Their nodes reach each other by new ones."
        text = f"{text}, and no rank is missing.{why}{_limits(waiting)}"
    else:
        places = _by(facts, lambda fact: fact.place)
        where = "; ".join(f"{_ranks(here).lower()} {_is(here)} at {place}" for place, here in places[:_MAX_PLACES])
        text = f"{text}: {where}."
    left = [f" On {_ranks(here).lower()} {what}." for what, here in _by(facts, lambda fact: fact.left_over) if what]
    reason: Reason = "cut" if waiting and paths else "still"
    verdict = _verdict("waits", reason, waiting or facts, [], text + "".join(left))
    if reason == "cut":
        verdict["paths"] = paths or ""
    return verdict


def _verdict(
    kind: Literal["cannot_end", "waits"], reason: Reason, waiting: list[Fact], others: list[Fact], text: str
) -> models.Verdict:
    calling = [fact for fact in [*waiting, *others] if fact.state == "waits"]
    does = "".join(f"{_ranks(facts)} {_wait(facts)} in {what}. " for what, facts in _by(calling, _call_and_place))
    return {
        "kind": kind,
        "reason": reason,
        "message": f"{does}{text}",
        "since": 0.0,  # the watch knows
        "waiting": [_part(facts) for _, facts in _by(waiting, _call_and_place)],
        "needed": [_part(facts) for facts in _by_place(others)],
    }


def _part(facts: list[Fact]) -> models.VerdictPart:
    first = facts[0]
    part: models.VerdictPart = {
        "ranks": str(RankSet(fact.rank for fact in facts)),
        "state": first.state,
        "place": (place := _with_error(first)) or None,
        "place_words": words_of(place),
        "call": (call := waits_in(first)),
        "call_words": words_of(call),
    }
    return part


def _by(facts: Iterable[Fact], key: Callable[[Fact], str]) -> list[tuple[str, list[Fact]]]:
    found: dict[str, list[Fact]] = {}
    for fact in facts:
        found.setdefault(key(fact), []).append(fact)
    return list(found.items())


def _call_and_place(fact: Fact) -> str:
    at = f" at {fact.place}" if fact.place else ""
    return f"{_describe(fact.call)}{at}" if fact.call is not None else at


def _by_place(facts: list[Fact]) -> list[list[Fact]]:
    found: dict[tuple[State, str, WaitedCall | None], list[Fact]] = {}
    for fact in facts:
        found.setdefault((fact.state, _with_error(fact), fact.call), []).append(fact)
    return list(found.values())


def waits_in(fact: Fact) -> str | None:
    """Return the call that a rank waits in, in words; None if it does not wait."""
    return _describe(fact.call) if fact.call is not None and fact.state == "waits" else None


def _describe(call: WaitedCall) -> str:
    """Return the call in words: "all_reduce, number 4, float [4]"."""
    name = call.name
    if call.peer is not None and call.is_p2p and call.tag:
        name = say("%1 (peer %2, tag %3)", name, call.peer, call.tag)
    elif call.peer is not None:
        name = say("%1 (peer %2)", name, call.peer) if call.is_p2p else say("%1 (root %2)", name, call.peer)
    if call.inside:
        name = say("%1 in %2", name, call.inside)
    if call.group != "default":
        name = say("%1 of process group %2", name, call.group)
    if call.seq is not None:
        name = say("%1, number %2", name, call.seq)
    if call.shape:
        name = say("%1, %2", name, call.shape)
    return say("%1, of cell [%2]", name, call.cell) if call.cell is not None else name


# -- what is known of a call on another rank ----------------------------------------------------------


def has_called(call: WaitedCall, other: Fact) -> bool | None:
    """Whether another rank has called this collective, by its count; None if torch does not count it."""
    count = other.counts.get(call.numbered_by)
    return None if call.seq is None or count is None else count >= call.seq


def record_of(call: WaitedCall, other: Fact) -> BegunCollective | None:
    """Return the call of another rank that has this number."""
    return other.records.get((call.numbered_by, call.seq)) if call.seq is not None else None


def _all_called(waiting: list[Fact], other: Fact) -> bool:
    return all(fact.call is not None and has_called(fact.call, other) for fact in waiting)


def _shape_of(fact: Fact, call: WaitedCall) -> str:
    record = record_of(call, fact)
    return record.shape if record is not None else fact.call.shape if fact.call is not None else ""


def _first_difference(facts: list[Fact]) -> str:
    """Return the first collective that ranks did not call alike, if they are at different numbers."""
    calls = [fact.call for fact in facts if fact.call is not None]
    if len({call.numbered_by for call in calls}) != 1 or len({call.seq for call in calls}) < 2:
        return ""
    key = calls[0].numbered_by
    numbers = [{seq for group, seq in fact.records if group == key} for fact in facts]
    for seq in sorted(set.intersection(*numbers) if numbers else ()):
        found = _by(facts, lambda fact, seq=seq: _recorded(fact.records[key, seq]))  # type: ignore[misc]
        if len(found) > 1:
            each = " and ".join(f"{what} on {_ranks(here).lower()}" for what, here in found)
            return f" They differ since number {seq}: {each}."
    return ""


def _recorded(record: BegunCollective) -> str:
    return f"{record.name}, {record.shape}" if record.shape else record.name


def _counts(stuck: list[Fact], idle: list[Fact]) -> str:
    key = next(fact.call.numbered_by for fact in stuck if fact.call is not None)
    mine, theirs = ({fact.counts.get(key, fact.begun) for fact in facts} for facts in (stuck, idle))
    if len(mine) == len(theirs) == 1 and None not in mine | theirs and mine != theirs:
        number = mine.pop()
        return f" ({number} {'collective' if number == 1 else 'collectives'} against {theirs.pop()})"
    return ""


def _crossing(stuck: list[Fact]) -> str:
    """Return which ranks are waited for and wait in another process group themselves."""
    by_rank = {fact.rank: fact for fact in stuck}
    for fact in stuck:
        partners = fact.call.partners - {fact.rank} if fact.call is not None else ()
        for other in sorted(rank for rank in partners if rank in by_rank):
            theirs = by_rank[other].call
            if fact.call is not None and theirs is not None and theirs.of_group != fact.call.of_group:
                return f"Rank {fact.rank} waits for rank {other}, which is in process group {theirs.group}. "
    return ""


# -- small words --------------------------------------------------------------------------------------


def _errors(idle: list[Fact]) -> str:
    found = [(what, facts) for what, facts in _by(idle, lambda fact: fact.error or "") if what]
    return "".join(f" The last cell of {_ranks(facts).lower()} ended with {what.rstrip('.')}." for what, facts in found)


def _with_error(fact: Fact) -> str:
    if not fact.error:
        return fact.place
    return say("%1, which ended with %2", fact.place, fact.error) if fact.place else say("ended with %1", fact.error)


def _where(fact: Fact) -> str:
    """Return where a rank is that may still get there."""
    line = fact.place.removeprefix(IN_DEBUGGER)
    if fact.silent:
        return f"rank {fact.rank} {silence(fact)}"
    if fact.state == "idle":
        by_itself = f", and {fact.comes} may call it" if fact.comes else ""
        return f"rank {fact.rank} is idle {fact.place}{by_itself}"
    if line != fact.place:
        return f"rank {fact.rank} is stopped in the debugger at {line}".removesuffix(" at ")
    left = f"; {fact.left_over}" if fact.left_over else ""
    return f"rank {fact.rank} is at {line}{left}"


def silence(fact: Fact) -> str:
    """Describe the silence of a rank, and its place."""
    return f"{fact.silent}, at {fact.place}" if fact.place else fact.silent


def _limits(waiting: list[Fact]) -> str:
    limits = sorted({fact.call.limit for fact in waiting if fact.call is not None and fact.call.limit is not None})
    return f" Its own time limit of {_in_words(limits[-1])} ends it." if limits else ""


def _in_words(seconds: float) -> str:
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"


def _ranks(facts: list[Fact]) -> str:
    return f"Rank{'s' if len(facts) > 1 else ''} {RankSet(fact.rank for fact in facts)}"


def _is(facts: list[Fact]) -> Any:
    return "are" if len(facts) > 1 else "is"


def _has(facts: list[Fact]) -> str:
    return "have" if len(facts) > 1 else "has"


def _wait(facts: list[Fact]) -> str:
    return "wait" if len(facts) > 1 else "waits"
