"""Finds devices that idle because ranks wait for each result, and memory of devices in pieces too small to use. Pure.

Groups on CPU report no devices, so these rules find nothing there.
"""

from __future__ import annotations

import itertools
import re
import statistics

from jupyter_dist.parts.slow.agent.observed import Observed, RankPaceSeen
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.ranks import RankSet, name_ranks
from jupyter_dist.transport.rows import CodePlace

from .causes import Cause, at_place, bytes_in_words, percent

LEAST_IDLE = 0.3  # of the time of a device
LEAST_WAITING = 0.2  # of the time of a rank, for its device
LEAST_LOOKS = 3  # with a number of the device
LEAST_RETRIES = 3  # looks in a row in which torch had to free its cache
# Calls that wait until the device has computed a value, or all that it was given.
_WAITS = re.compile(r"\.(item|tolist|cpu|numpy|synchronize|nonzero)\(|\b(float|int|bool|print)\(")
_ACTIVITIES = ("run", "print")


def find_synchronizing(seen: Observed) -> Cause | None:
    """Return the cause if devices idle for a large part, and ranks wait for a value of theirs for another one."""
    busy = [_busy(rank) for rank in seen.ranks.values()]
    known = [share for share in busy if share is not None]
    if not seen.is_sampled or not seen.has_steps or len(known) < max(1, len(busy)):
        return None
    idle = 1 - statistics.median(known)
    place, waiting = _waiting_line(seen)
    if idle < LEAST_IDLE or waiting < LEAST_WAITING or place is None:
        return None
    message = say("Devices are idle %1 of the time: ranks wait for values%2.", percent(idle), at_place(place))
    evidence = [
        say("The ranks are found at this line in %1 of the samples of their stacks.", percent(waiting)),
        say("While a rank waits for a value of its device, it gives the device nothing more to do."),
    ]
    advice = say("Do it every hundredth step, or keep the tensor (loss.detach()) and read all of them at the end.")
    return Cause("device_sync", RankSet(seen.ranks), min(idle, waiting), message, evidence, advice, place)


def _busy(rank: RankPaceSeen) -> float | None:
    found = [report.device_busy for report in rank.looks if report.device_busy is not None][-LEAST_LOOKS:]
    return statistics.fmean(found) if len(found) == LEAST_LOOKS else None


def _waiting_line(seen: Observed) -> tuple[CodePlace | None, float]:
    """Return the line at which most ranks wait for a value of their device, and the part of their time."""
    places = {
        place
        for rank in seen.ranks.values()
        for activity, place in rank.samples
        if activity in _ACTIVITIES and place is not None and _WAITS.search(place.code)
    }
    shares = {
        place: seen.median(lambda rank, at=place: sum(rank.share_at(kind, at) for kind in _ACTIVITIES))  # type: ignore[misc]
        for place in places
    }
    best = max(shares, key=shares.__getitem__, default=None)
    return best, shares[best] if best is not None else 0.0


def find_fragmentation(seen: Observed) -> Cause | None:
    """Return the cause if torch frees its cache of device memory again and again to find room for a tensor."""
    retries = {rank: number for rank, its in seen.ranks.items() if (number := _retries(its))}
    if not retries:
        return None
    ranks = RankSet(retries)
    number = max(retries.values())
    newest = seen.ranks[max(retries, key=retries.__getitem__)].reports[-1]
    unused = (newest.reserved_bytes or 0) - newest.memory_bytes
    message = say(
        "%1 had to free cached memory of the device %2 times in the last seconds.",
        name_ranks(ranks, begins=True),
        number,
    )
    evidence = [
        say("In each of %1 looks, torch found no room for a tensor, freed its cache and tried again.", LEAST_RETRIES),
        say(
            "%1 are in tensors, %2 are cached beside.",
            bytes_in_words(newest.memory_bytes),
            bytes_in_words(max(0, unused)),
        ),
    ]
    advice = say(
        "Use batches of equal shapes or smaller ones, or "
        "PYTORCH_ALLOC_CONF=expandable_segments:True, with which pieces of memory can be joined."
    )
    return Cause("fragmentation", ranks, 0.0, message, evidence, advice)


def _retries(rank: RankPaceSeen) -> int:
    """Return how often torch has freed its cache, if it did so in each of the last looks."""
    counts = [report.num_retries for report in rank.looks[-LEAST_RETRIES - 1 :]]
    known = [count for count in counts if count is not None]
    if len(known) <= LEAST_RETRIES or any(after <= before for before, after in itertools.pairwise(known)):
        return 0
    return known[-1] - known[0]
