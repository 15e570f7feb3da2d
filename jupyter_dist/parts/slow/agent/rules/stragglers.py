"""Finds ranks that come last to the collectives, so that all others wait. Pure.

Two witnesses must agree: the arrivals at collectives (a rank that hardly waits, while all others do), and the samples
of stacks (it is found in code where the others are found waiting).
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from jupyter_dist.parts.slow.agent.meetings import MatchedCollective
from jupyter_dist.parts.slow.agent.observed import RUN, Observed, cpu_part, kept_part
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.ranks import RankSet, name_ranks
from jupyter_dist.transport.rows import CodePlace

from .causes import HINTS, SURE, Cause, at_place, percent, seconds_in_words

MAX_PARTS = 16  # process groups that are judged alone
LEAST_IN_MESSAGES = 0.45  # more than the busy rank
MOST_IN_MESSAGES = 0.96
FEW_SAMPLES = 2
MANY_SAMPLES = 30  # at which a line stands out at which late ranks spend their time
LEAST_SHARE = 0.1  # of the time of the others
LEAST_MEETINGS = 6
LEAST_SECONDS = 1.0  # that collectives must cover
SMALL = 0.3  # a straggler waits less than this part of what the others wait
STEADY = 0.7  # of the waiting must be for stragglers
MOST_OF_WAITING = 0.9
LEAST_SPREAD = 0.2  # of the time, between the first and the last collective to which a straggler came late
FAR = 5  # times the wait of the median collective: a long wait
STEADY_LONG = 0.85  # of the long waits must be for one rank
LEAST_LONG = 3  # of them
NEARLY_ALL = 4  # all but a fourth of the others
LEAST_AGREEMENT = 0.3  # of the waiting by arrivals must be seen in the samples, beyond the waiting of late ranks
LEAST_SEEN = 0.6  # of it, if a line stands out at which late ranks alone are found
SELDOM = 0.3  # of the collectives: a rank that comes late to fewer is late now and then
LEAST_EXCESS = 0.4  # of the others' waiting: what a line must take more on a straggler to be named
MOST_OF_OTHERS = 0.2  # of what late ranks are at a line: less, and they are there alone
BUSY = 0.1  # of the time ranks wait for a core
MORE_WORK = 1.5  # times the others' own work: a busy machine may cause less


class Lateness(NamedTuple):
    """Who comes late, and what the others wait."""

    late: RankSet
    others: list[int]
    share: float  # of the time of the others
    num_heavy: int  # collectives that make up most of the waiting for late ranks
    num_late: int  # collectives to which a late rank came last
    num_meetings: int
    is_long: bool = False  # it was found by its longest waits alone


def find_straggler(seen: Observed) -> Cause | None:
    """Return the ranks that the others wait for, in all process groups together or in one."""
    if (cause := _straggler(seen)) is not None:
        return cause
    members = {frozenset(meeting.began) for meeting in seen.meetings}
    parts = sorted((some for some in members if len(some) < len(seen.ranks)), key=lambda some: (-len(some), min(some)))
    return next((cause for some in parts[:MAX_PARTS] if (cause := _straggler(seen.among(some))) is not None), None)


def find_in_messages(seen: Observed) -> Cause | None:
    """Return the rank that is busy while all others wait for messages: of send and recv no arrivals are known."""
    if seen.period is not None or not seen.is_sampled or len(seen.ranks) < 2:
        return None
    shares = {rank: its.share("wait") for rank, its in seen.ranks.items()}
    late = min(shares, key=shares.__getitem__)
    others = [rank for rank in shares if rank != late]
    least, most = min(shares[rank] for rank in others), max(shares[rank] for rank in others)
    # A rank that waits all the time waits for something that comes once, and not in each step.
    if least - shares[late] < LEAST_IN_MESSAGES or most > MOST_IN_MESSAGES:
        return None
    lateness = Lateness(RankSet([late]), others, least, 0, 0, 0)
    place, activity, _ = _excess(seen, lateness)
    kept = seen.median(lambda rank: rank.part(lambda report: report.kept_seconds), [late])
    if place is None or (kept > least / 2 and seen.lack_cores([late], others)):
        return None
    busy, waits = percent(1 - shares[late]), percent(least)
    message = say(
        "Rank %1 is busy %2 of the time, and the others wait %3 for messages%4.", late, busy, waits, at_place(place)
    )
    evidence = [
        say("The others are found in send, recv and other calls of torch.distributed in %1 of the samples.", waits)
    ]
    return Cause("straggler", lateness.late, least, message, evidence, _advice(activity, is_seldom=False), place)


def _straggler(seen: Observed) -> Cause | None:
    lateness = _lateness(seen) or _long_lateness(seen)
    if lateness is None:
        return None
    place, activity, is_alone = _excess(seen, lateness)
    if not _agree(seen, lateness, place) or (lateness.is_long and place is None):
        return None
    # The others wait in a backward pass, where a rank that waits for none is found, too.
    is_work = place is not None and activity != "backward"
    if not is_alone and (_may_be_the_machine(seen, lateness) or not (is_work or _computes_more(seen, lateness))):
        return None
    is_seldom = lateness.num_heavy < SELDOM * lateness.num_meetings
    step = None if is_seldom else seen.step_seconds
    values = _waits_in_words(lateness.share, step), name_ranks(lateness.late), at_place(place)
    message = (
        say("The others wait %1 for %2 now and then%3.", *values)
        if is_seldom
        else say("The others wait %1 for %2%3.", *values)
    )
    number = say("%1 of %2", lateness.num_late, lateness.num_meetings)
    return Cause(
        kind="occasional" if is_seldom else "straggler",
        ranks=lateness.late,
        share=lateness.share,
        message=message,
        evidence=_evidence(seen, lateness, place, activity, number),
        advice=_advice(activity, is_seldom),
        place=place,
    )


class _Waiting(NamedTuple):
    """A collective, and the seconds that ranks waited in it."""

    meeting: MatchedCollective
    by_rank: dict[int, float]

    @property
    def seconds(self) -> float:
        return sum(self.by_rank.values())


def _waitings(seen: Observed, ranks: list[int]) -> list[_Waiting]:
    found: dict[tuple[str, int], _Waiting] = {}
    for rank in ranks:
        for stay in seen.waits.stays[rank]:
            key = (stay.meeting.group, stay.meeting.seq)
            found.setdefault(key, _Waiting(stay.meeting, {})).by_rank[rank] = stay.waited
    return list(found.values())


def _sum(waitings: list[_Waiting]) -> float:
    return sum(waiting.seconds for waiting in waitings)


def _shares(seen: Observed) -> dict[int, float]:
    """Return which part of its time each rank waits; empty if too little is known."""
    waits = seen.waits
    shares = {rank: waits.share(rank) for rank in waits.stays if waits.seconds(rank)}
    is_enough = len(shares) > 1 and waits.num_meetings >= LEAST_MEETINGS
    return shares if is_enough and max(map(waits.seconds, shares)) >= LEAST_SECONDS else {}


def _lateness(seen: Observed) -> Lateness | None:
    """Return who comes late, if nearly all waiting is for the same ranks."""
    waits, shares = seen.waits, _shares(seen)
    ordered = sorted(shares.values())
    top = statistics.median(ordered[len(ordered) // 2 :]) if ordered else 0.0
    late = RankSet(rank for rank, share in shares.items() if share < SMALL * top)
    others = [rank for rank in shares if rank not in late]
    if top < LEAST_SHARE or not late or len(late) > len(shares) // 2:
        return None
    heavy = _heavy(_waitings(seen, others))
    blamed = [waiting for waiting in heavy if waits.blamed(waiting.meeting) in late]
    if _sum(blamed) < STEADY * _sum(heavy) or not _recurs(seen, blamed):
        return None
    share = statistics.median(shares[rank] for rank in others)
    num_late = sum(waits.blamed(meeting) in late for meeting in seen.meetings)
    return Lateness(late, others, share, len(blamed), num_late, waits.num_meetings)


def _heavy(waitings: list[_Waiting]) -> list[_Waiting]:
    """Return the collectives that make up nine tenths of the waiting."""
    left, found = MOST_OF_WAITING * _sum(waitings), []
    for waiting in sorted(waitings, key=lambda waiting: waiting.seconds, reverse=True):
        if left <= 0:
            break
        found.append(waiting)
        left -= waiting.seconds
    return found


def _long_lateness(seen: Observed) -> Lateness | None:
    """Return who comes late now and then and long, while all ranks wait for each other a little in the other steps."""
    ranks = list(_shares(seen))
    waitings = _waitings(seen, ranks)
    usual = statistics.median(waiting.seconds for waiting in waitings) if waitings else 0.0
    long = [waiting for waiting in waitings if waiting.seconds > FAR * usual]
    by_late: dict[int, list[_Waiting]] = {}
    for waiting in long:
        by_late.setdefault(seen.waits.blamed(waiting.meeting), []).append(waiting)
    late = max(by_late, key=lambda rank: _sum(by_late[rank]), default=None)
    if late is None:
        return None
    blamed, others = by_late[late], [rank for rank in ranks if rank != late]
    if len(blamed) < LEAST_LONG or _sum(blamed) < STEADY_LONG * _sum(long) or not _recurs(seen, blamed):
        return None
    waited = {rank: sum(waiting.by_rank.get(rank, 0.0) for waiting in blamed) for rank in others}
    share = statistics.median(waited[rank] / seen.waits.seconds(rank) for rank in others)
    if share < LEAST_SHARE:
        return None
    return Lateness(RankSet([late]), others, share, len(blamed), len(blamed), seen.waits.num_meetings, is_long=True)


def _recurs(seen: Observed, blamed: list[_Waiting]) -> bool:
    """Whether a rank came late again, some time later: anything may happen once."""
    times = [min(waiting.meeting.began.values()) for waiting in blamed]
    whole = [min(meeting.began.values()) for meeting in (seen.meetings[0], seen.meetings[-1])]
    return len(times) > 1 and max(times) - min(times) > LEAST_SPREAD * (whole[1] - whole[0])


def _agree(seen: Observed, lateness: Lateness, place: CodePlace | None) -> bool:
    """Whether the samples show the same: the others are found waiting, and the late ranks not, or at a line alone."""
    if not seen.is_sampled or not seen.are_waits_known:
        return False
    if seen.kept_unlike(lateness.late, lateness.others) > lateness.share / 2:
        return False  # it is late because it gets no core, and not because it has more to do
    if all(meeting.took is not None for meeting in seen.meetings):
        return True  # the devices have measured it; their hosts do not wait
    # Of nearly each of the others: a rank that only sends in a collective (gather, reduce) does not wait.
    waiting = sorted(seen.ranks[rank].share("wait") for rank in lateness.others if rank in seen.ranks)
    late = seen.median(lambda rank: rank.share("wait"), lateness.late)
    nearly_all = waiting[len(waiting) // NEARLY_ALL] if waiting else 0.0
    # Late ranks are in the collective, too, for as long as it takes.
    is_seen = nearly_all >= LEAST_SEEN * lateness.share and place is not None
    return is_seen or nearly_all - late >= LEAST_AGREEMENT * lateness.share


def _may_be_the_machine(seen: Observed, lateness: Lateness) -> bool:
    """Whether ranks that do the same may differ so much: on a busy machine each gets its cores at other times."""
    its, others = ([rank for rank in ranks if rank in seen.ranks] for ranks in (lateness.late, lateness.others))
    if max(seen.median(kept_part, its), seen.median(kept_part, others)) < BUSY:
        return False
    own, usual = (
        statistics.median(1 - seen.waits.share(rank) - kept_part(seen.ranks[rank]) for rank in ranks)
        for ranks in (its, others)
    )
    return own < MORE_WORK * usual


def _computes_more(seen: Observed, lateness: Lateness) -> bool:
    """Whether late ranks compute more than the others: the slowest by a little only sets the pace.

    Of few samples a line may be missing by chance.
    """
    if seen.median(lambda rank: rank.num_samples, lateness.late) < MANY_SAMPLES:
        return True
    its, usual = (seen.median(cpu_part, ranks) for ranks in (lateness.late, lateness.others))
    return its - usual >= lateness.share / 2


def _excess(seen: Observed, lateness: Lateness) -> tuple[CodePlace | None, str, bool]:
    """Return the line at which late ranks are more than the others, their activity there, and if they alone are there.

    A line at which late ranks alone are found comes before one at which the others are, too: where these wait, as in a
    backward pass, a rank that does not wait is found working.
    """
    places = {key for rank in lateness.late for key in seen.ranks[rank].samples}
    found: list[tuple[bool, float, CodePlace, str]] = []
    of_late: list[tuple[float, CodePlace, str]] = []  # lines at which late ranks alone are
    num_late, num_other = (
        sum(seen.ranks[rank].num_samples for rank in ranks if rank in seen.ranks)
        for ranks in (lateness.late, lateness.others)
    )
    for activity, place in places:
        if activity == "wait" or place is None:
            continue
        late = seen.median(lambda rank, a=activity, p=place: rank.share_at(a, p), lateness.late)  # type: ignore[misc]
        other = seen.median(lambda rank, a=activity, p=place: rank.share_at(a, p), lateness.others)  # type: ignore[misc]
        there = other + seen.median(lambda rank, p=place: rank.share_at("wait", p), lateness.others)  # type: ignore[misc]
        by_chance = math.sqrt(late * (1 - late) / max(1, num_late) + other * (1 - other) / max(1, num_other))
        is_alone = there < MOST_OF_OTHERS * late
        if late - other >= max(LEAST_EXCESS * lateness.share, SURE * by_chance):
            found.append((is_alone, late - other, place, activity))
        elif is_alone and late - other >= SURE * by_chance:
            of_late.append((late - other, place, activity))
    if not any(is_alone for is_alone, *_ in found) and sum(part for part, *_ in of_late) >= (
        LEAST_EXCESS * lateness.share
    ):
        found = [(True, *max(of_late, key=lambda one: one[0]))]  # several lines of a loop
    if not found:
        return None, RUN, False
    is_alone, _, place, activity = max(found, key=lambda one: one[:2])
    return _call_of_late(seen, lateness, place, activity), activity, is_alone


def _call_of_late(seen: Observed, lateness: Lateness, place: CodePlace, activity: str) -> CodePlace:
    """Return the line, or the line of its caller if all ranks run the line, and late ranks that call."""

    def callers(ranks: Iterable[int]) -> Counter[CodePlace | None]:
        found: Counter[CodePlace | None] = Counter()
        for one in (one for rank in ranks for report in seen.ranks[rank].reports for one in report.samples):
            if (one.place, one.activity) == (place, activity):
                found[one.outer] += one.number
        return found

    others = callers(rank for rank in lateness.others if rank in seen.ranks)
    caller, number = callers(lateness.late).most_common(1)[0]
    if caller is None or others.total() < FEW_SAMPLES or number < others[caller]:
        return place
    return caller if others[caller] < others.total() / 2 else place


def _waits_in_words(share: float, step: float | None) -> str:
    if step is None:
        return say("%1 of the time", percent(share))
    return say("%1 of %2 a step", seconds_in_words(share * step), seconds_in_words(step))


def _evidence(seen: Observed, lateness: Lateness, place: CodePlace | None, activity: str, number: str) -> list[str]:
    its = percent(seen.waits.share(min(lateness.late)))
    found: list[str] = [
        say(
            "%1 came last to %2 collectives, and waited %3 of the time; the others %4.",
            name_ranks(lateness.late, begins=True),
            number,
            its,
            percent(lateness.share),
        )
    ]
    if place is not None:
        late = seen.median(lambda rank: rank.share_at(activity, place), lateness.late)
        other = seen.median(lambda rank: rank.share_at(activity, place), lateness.others)
        found.append(say("At this line it is %1 of the time, the others %2.", percent(late), percent(other)))
    cpu = seen.median(lambda rank: rank.part(lambda report: report.cpu_seconds), lateness.late)
    delay = seen.median(lambda rank: rank.part(lambda report: report.kept_seconds), lateness.late)
    found.append(
        say("Its main thread uses %1 of a core, and waits for one %2 of the time.", percent(cpu), percent(delay))
    )
    return found


def _advice(activity: str, is_seldom: bool) -> str:
    return HINTS.get(activity, _SELDOM if is_seldom else _OFTEN)


_OFTEN = say("Give this rank less to do at this line, or let all ranks share it.")
_SELDOM = say("Let all ranks share this work, or do it in a thread while training goes on.")
