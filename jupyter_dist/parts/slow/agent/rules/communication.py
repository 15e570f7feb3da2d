"""Finds collectives that take long or need not be, and ranks that take turns in coming last. Pure."""

from __future__ import annotations

import statistics
from collections import Counter

from jupyter_dist.parts.slow.agent.observed import RUN, Observed
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.transport.rows import CodePlace

from .accumulation import LEAST_CHANGES, find_accumulation, num_begun
from .causes import Cause, at_place, bytes_in_words, percent, seconds_in_words

LEAST_SHARE = 0.35
LEAST_UNEVEN = 0.25
LEAST_BYTES = 1 << 20  # in a step: for less it is not the network that takes the time
MANY = 16  # collectives in a step
MANY_A_SECOND = 100
SMALL_BYTES = 256 << 10
MOST_DELAY = 0.1  # of the time, for a core: above, the machine makes ranks uneven
FEW = 2  # collectives for each change of the parameters


_ROOTED = frozenset({"reduce", "gather"})  # the other ranks only send


def find_communication(seen: Observed) -> Cause | None:
    """Return the cause if collectives themselves take a large part of the time."""
    if seen.period is None or not seen.is_sampled or not seen.are_waits_known or _waits_for_cores(seen):
        return None
    in_collectives = min(rank.share("wait") for rank in seen.ranks.values())
    waiting = statistics.median(seen.waits.share(rank) for rank in seen.waits.stays)
    if sum(meeting.name in _ROOTED for meeting in seen.meetings) > len(seen.meetings) / 2:  # all wait for the root
        root = max(seen.waits.stays, key=lambda rank: seen.ranks[rank].share("wait") - seen.waits.share(rank))
        in_collectives, waiting = seen.ranks[root].share("wait"), seen.waits.share(root)
    share = in_collectives - waiting
    step = seen.step_seconds
    if share < LEAST_SHARE or waiting > share or not step or find_accumulation(seen) is not None:
        return None
    mine = [meeting for meeting in seen.meetings if min(seen.ranks) in meeting.began]
    num_bytes = seen.period * statistics.fmean(meeting.num_bytes for meeting in mine)
    place = _main_place(seen)
    evidence = [
        say(
            "The ranks are in collectives %1 of the time, %2 for the last rank.",
            percent(in_collectives),
            percent(waiting),
        ),
        say(
            "A step of %1 has %2 collectives of %3 together.",
            seconds_in_words(step),
            seen.period,
            bytes_in_words(num_bytes),
        ),
    ]
    rate = seen.period / step  # collectives that are all alike, such as equal buckets, seem to be a step each
    are_small = (seen.period >= MANY or rate >= MANY_A_SECOND) and num_bytes / seen.period < SMALL_BYTES
    if are_small and not _has_few_a_step(seen):
        values = percent(share), at_place(place)
        message = (
            say("%1 small collectives a step take %2 of the time%3.", seen.period, *values)
            if seen.period >= MANY
            else say("%1 small collectives a second take %2 of the time%3.", format(rate, ".0f"), *values)
        )
        advice = say(
            "Join them: one collective of a flattened tensor, or larger buckets (bucket_cap_mb) of a DDP model."
        )
        return Cause("small_collectives", RankSet(seen.ranks), share, message, evidence, advice, place)
    if num_bytes < LEAST_BYTES:
        return None
    speed = num_bytes / max(1e-9, share * step)
    message = say(
        "Communication takes %1 of the time, at %2 a second%3.", percent(share), bytes_in_words(speed), at_place(place)
    )
    advice = say(
        "Communicate less often (no_sync() while gradients accumulate), less (bfloat16), or over a faster network."
    )
    return Cause("communication", RankSet(seen.ranks), share, message, evidence, advice, place)


def _main_place(seen: Observed) -> CodePlace | None:
    """Return the line at which all ranks together are in collectives most often: a root leaves its calls early."""
    met: Counter[CodePlace] = Counter()
    for rank in seen.ranks.values():
        met.update({place: num for (kind, place), num in rank.samples.items() if kind == "wait" and place is not None})
    return met.most_common(1)[0][0] if met else None


def _has_few_a_step(seen: Observed) -> bool:
    """Whether there are hardly more collectives than steps of optimizers: then there is nothing to join.

    Short steps of a small model have many collectives a second, too.
    """
    reports = seen.ranks[min(seen.ranks)].reports
    changes = sum(updates.changes for report in reports[1:] for updates in report.updates)
    groups = {arrival.group for report in reports for arrival in report.arrivals}
    return changes >= LEAST_CHANGES and sum(num_begun(reports, group) for group in groups) < FEW * changes


def find_uneven(seen: Observed) -> Cause | None:
    """Return the cause if ranks wait for each other, for another one each time."""
    shares = [seen.waits.share(rank) for rank in seen.waits.stays]
    if seen.period is None or len(shares) < 2 or not seen.is_sampled or _waits_for_cores(seen):
        return None
    share = statistics.median(shares)
    waiting = seen.median(lambda rank: rank.share("wait"))
    last = [meeting.last for meeting in seen.meetings]
    most = max(map(last.count, set(last)), default=0) / max(1, len(last))
    if min(shares) < LEAST_UNEVEN or waiting < share / 2 or most > 2 / len(shares):
        return None
    place = seen.path.main_place(RUN, "input", "workers", "save", "print")
    where = say(". It is most often at %1", place) if place is not None else ""
    message = say(
        "The ranks wait %1 of the time for each other: another one is last each time%2.", percent(share), where
    )
    evidence = [say("No rank is last to more than %1 of the %2 collectives.", percent(most), len(last))]
    advice = say("Give the ranks batches that take as long: sort by length, pack sequences, or bucket them.")
    return Cause("uneven", RankSet(seen.waits.stays), share, message, evidence, advice, place)


def _waits_for_cores(seen: Observed) -> bool:
    return seen.median(lambda rank: rank.part(lambda report: report.kept_seconds)) > MOST_DELAY
