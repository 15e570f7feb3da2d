"""The words of verdicts: who waits in what, who is missing, and where. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal

from jupyter_dist.agent.watch.facts import (
    IN_DEBUGGER,
    BegunCollective,
    Fact,
    State,
    WaitedCall,
    describe_call,
    silence,
    waits_in,
)
from jupyter_dist.protocol.models.sentences import join, say, say_n, words_of
from jupyter_dist.protocol.ranks import RankSet, name_ranks

if TYPE_CHECKING:
    from jupyter_dist.parts.hangs.models import Verdict, VerdictPart

Reason = Literal["missing", "dead", "order", "mismatch", "shapes", "busy", "still", "cut"]

# The time without a move is rounded, so that the sentence does not change at each look.
_ROUGHLY = (86_400, 43_200, 21_600, 7_200, 3_600, 1_800, 600, 300, 120, 60, 30, 10)
_MAX_PLACES = 3


def is_dead(stuck: list[Fact], dead: list[Fact]) -> Verdict:
    """A verdict: needed ranks are gone."""
    return _verdict(
        "cannot_end", "dead", stuck, dead, say_n("Rank %2 is dead.", "Ranks %2 are dead.", len(dead), _numbers(dead))
    )


def is_missing(stuck: list[Fact], idle: list[Fact]) -> Verdict:
    """A verdict: needed ranks are idle, and have not called the collective."""
    text = say_n(
        "Rank %2 is idle and has not called it%3.",
        "Ranks %2 are idle and have not called it%3.",
        len(idle),
        _numbers(idle),
        _counts(stuck, idle),
    )
    return _verdict("cannot_end", "missing", stuck, idle, join(_crossing(stuck), text, *_errors(idle)))


def in_other_order(stuck: list[Fact], others: list[Fact]) -> Verdict:
    """Ranks wait in different process groups."""
    text = say(
        "They wait for each other in different process groups: each rank must call the groups in the same order."
    )
    return _verdict("cannot_end", "order", stuck, others, join(_crossing(stuck), text))


def does_not_match(stuck: list[Fact], others: list[Fact]) -> Verdict:
    """Ranks wait in different calls, or one has skipped a collective."""
    text = say("These calls do not match: ranks must make the same one, with the same root, or its counterpart.")
    return _verdict("cannot_end", "mismatch", stuck, others, join(text, _first_difference([*stuck, *others])))


def shapes_differ(stuck: list[Fact], others: list[Fact]) -> Verdict:
    """Ranks are in the same collective with other tensors."""
    call = next(fact.call for fact in stuck if fact.call is not None)
    found = _by([*stuck, *others], lambda fact: _shape_of(fact, call))
    text = say("Their tensors differ in shape or dtype: %1.", _each(found))
    return _verdict("cannot_end", "shapes", stuck, others, text)


def is_busy(waiting: list[Fact], others: list[Fact]) -> Verdict:
    """A verdict: needed ranks may still get there."""
    where = join(*(_where(fact) for fact in others[:_MAX_PLACES] if fact.place or fact.silent), by="; ")
    values = len(others), _numbers(others), say(": %1", where) if where else ""
    text = (
        say_n(
            "Rank %2 has called something else, or with other tensors%3.",
            "Ranks %2 have called something else, or with other tensors%3.",
            *values,
        )
        if all(_all_called(waiting, fact) for fact in others)
        else say_n("Rank %2 has not called it yet%3.", "Ranks %2 have not called it yet%3.", *values)
    )
    return _verdict("waits", "busy", waiting, others, join(text, _limits(waiting)))


def still(facts: list[Fact], seconds: float, paths: str | None = None) -> Verdict:
    """No rank of a cell has moved for a while, and none is known to be missing.

    Args:
        facts: the facts of the cell's ranks.
        seconds: for how long none has moved.
        paths: which nodes do not reach each other, in sentences; empty if all do, None if that is not known.
    """
    roughly = _in_words(next((value for value in _ROUGHLY if value <= seconds), _ROUGHLY[-1]))
    waiting = [fact for fact in facts if fact.state == "waits"]
    if waiting:
        why = [paths] if paths else [say("A connection between them may be cut.")]
        if paths == "":
            why.append(say("Their nodes reach each other by new ones."))
        text = join(say("Nothing has moved for more than %1, and no rank is missing.", roughly), *why, _limits(waiting))
    else:
        places = _by(facts, lambda fact: fact.place)[:_MAX_PLACES]
        each = join(*(say("%1 at %2", _are(here), place) for place, here in places), by="; ")
        text = say("Nothing has moved for more than %1: %2.", roughly, each)
    found = _by(facts, lambda fact: fact.left_over)
    left = [say("On %1 %2.", _ranks(here), what) for what, here in found if what]
    reason: Reason = "cut" if waiting and paths else "still"
    verdict = _verdict("waits", reason, waiting or facts, [], join(text, *left))
    if reason == "cut":
        verdict["paths"] = paths or ""
    return verdict


def _verdict(
    kind: Literal["cannot_end", "waits"], reason: Reason, waiting: list[Fact], others: list[Fact], text: str
) -> Verdict:
    calling = [fact for fact in [*waiting, *others] if fact.state == "waits"]
    does = [
        say_n("Rank %2 waits in %3.", "Ranks %2 wait in %3.", len(facts), _numbers(facts), what)
        for what, facts in _by(calling, _call_and_place)
    ]
    message = join(*does, text)
    return {
        "kind": kind,
        "reason": reason,
        "message": message,
        "message_words": words_of(message),
        "since": 0.0,  # the watch knows
        "waiting": [_part(facts) for _, facts in _by(waiting, _call_and_place)],
        "needed": [_part(facts) for facts in _by_place(others)],
    }


def _part(facts: list[Fact]) -> VerdictPart:
    first = facts[0]
    part: VerdictPart = {
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
    if fact.call is None:
        return fact.place
    return say("%1 at %2", describe_call(fact.call), fact.place) if fact.place else describe_call(fact.call)


def _by_place(facts: list[Fact]) -> list[list[Fact]]:
    found: dict[tuple[State, str, WaitedCall | None], list[Fact]] = {}
    for fact in facts:
        found.setdefault((fact.state, _with_error(fact), fact.call), []).append(fact)
    return list(found.values())


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
            return say("They differ since number %1: %2.", seq, _each(found))
    return ""


def _recorded(record: BegunCollective) -> str:
    return f"{record.name}, {record.shape}" if record.shape else record.name


def _counts(stuck: list[Fact], idle: list[Fact]) -> str:
    key = next(fact.call.numbered_by for fact in stuck if fact.call is not None)
    mine, theirs = ({fact.counts.get(key, fact.begun) for fact in facts} for facts in (stuck, idle))
    if len(mine) == len(theirs) == 1 and None not in mine | theirs and mine != theirs:
        return say_n(" (%1 collective against %2)", " (%1 collectives against %2)", mine.pop() or 0, theirs.pop())
    return ""


def _crossing(stuck: list[Fact]) -> str:
    """Return which ranks are waited for and wait in another process group themselves."""
    by_rank = {fact.rank: fact for fact in stuck}
    for fact in stuck:
        partners = fact.call.partners - {fact.rank} if fact.call is not None else ()
        for other in sorted(rank for rank in partners if rank in by_rank):
            theirs = by_rank[other].call
            if fact.call is not None and theirs is not None and theirs.of_group != fact.call.of_group:
                group = theirs.group
                return say("Rank %1 waits for rank %2, which is in process group %3.", fact.rank, other, group)
    return ""


# -- small words --------------------------------------------------------------------------------------


def _errors(idle: list[Fact]) -> list[str]:
    found = [(what, facts) for what, facts in _by(idle, lambda fact: fact.error or "") if what]
    return [say("The last cell of %1 ended with %2.", _ranks(facts), what.rstrip(".")) for what, facts in found]


def _with_error(fact: Fact) -> str:
    if not fact.error:
        return fact.place
    return say("%1, which ended with %2", fact.place, fact.error) if fact.place else say("ended with %1", fact.error)


def _where(fact: Fact) -> str:
    """Return where a rank is that may still get there."""
    line = fact.place.removeprefix(IN_DEBUGGER)
    if fact.silent:
        return say("rank %1 %2", fact.rank, silence(fact))
    if fact.state == "idle":
        by_itself = say(", and %1 may call it", fact.comes) if fact.comes else ""
        return say("rank %1 is idle %2%3", fact.rank, fact.place, by_itself)
    if line != fact.place:
        stopped = say("rank %1 is stopped in the debugger", fact.rank)
        return say("%1 at %2", stopped, line) if line else stopped
    left = f"; {fact.left_over}" if fact.left_over else ""
    return say("rank %1 is at %2%3", fact.rank, line, left)


def _limits(waiting: list[Fact]) -> str:
    limits = sorted({fact.call.limit for fact in waiting if fact.call is not None and fact.call.limit is not None})
    return say("Its own time limit of %1 ends it.", _in_words(limits[-1])) if limits else ""


def _in_words(seconds: float) -> str:
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"


def _numbers(facts: list[Fact]) -> RankSet:
    return RankSet(fact.rank for fact in facts)


def _ranks(facts: list[Fact]) -> str:
    return name_ranks(_numbers(facts))


def _are(facts: list[Fact]) -> str:
    return say("ranks %1 are", _numbers(facts)) if len(facts) > 1 else say("rank %1 is", _numbers(facts))


def _each(found: list[tuple[str, list[Fact]]]) -> str:
    """Return the texts, each with its ranks."""
    return join(*(say("%1 on %2", what, _ranks(facts)) for what, facts in found if what), by="; ")
