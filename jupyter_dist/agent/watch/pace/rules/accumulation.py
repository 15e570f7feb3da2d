"""Finds gradients that are averaged over the ranks more often than an optimizer uses them. Pure."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from jupyter_dist.agent.watch.pace.observed import Observed
from jupyter_dist.agent.watch.pace.reports import RankReport
from jupyter_dist.protocol.ranks import RankSet

from .causes import Cause, at_place, percent

LEAST_AVERAGING = 0.15  # of the time: what the averages cost that no step follows
LEAST_PASSES = 1.7  # for each change of the parameters: an optimizer changes them once a step, or several times
LEAST_CHANGES = 2
SMALLER_TYPE = 0.25  # of the bytes of parameters: their gradients may be reduced in a smaller type
OTHER_BYTES = 0.02  # of a model's gradients, which other collectives of a step may have


class _Averages(NamedTuple):
    number: float  # how often gradients were averaged
    changes: int  # how often the parameters have changed meanwhile
    is_sharded: bool = False
    part: float = 1.0  # of the bytes of collectives that are gradients


def find_accumulation(seen: Observed) -> Cause | None:
    """Return the cause if DDP or FSDP2 averages gradients more often than the optimizer uses them.

    Counts are compared, and no times, so a busy machine changes nothing: torch counts how often the parameters of a
    model change, and its gradients are known among the collectives by their bytes (DDP) or their number (FSDP2).
    """
    averages = _averages(seen) or _sharded_averages(seen)
    if averages is None or averages.changes < LEAST_CHANGES or averages.number < LEAST_PASSES * averages.changes:
        return None
    passes = averages.number / averages.changes
    in_collectives = min(rank.share("wait") for rank in seen.ranks.values())
    share = in_collectives * averages.part * (1 - 1 / passes)
    if share < LEAST_AVERAGING:
        return None
    place = max(seen.ranks.values(), key=lambda rank: rank.share("wait")).main_place("wait")
    message = (
        f"Gradients are averaged over the ranks {passes:.0f} times for each step of the optimizer, which takes "
        f"{percent(share)} of the time{at_place(place)}."
    )
    evidence = [
        f"They were averaged {averages.number:.0f} times, while the parameters changed {averages.changes} times.",
        f"The ranks are in collectives {percent(in_collectives)} of the time.",
    ]
    how = "with set_requires_gradient_sync(False)" if averages.is_sharded else "under no_sync()"
    model = "an FSDP2" if averages.is_sharded else "the DDP"
    advice = f"Accumulate {how} of {model} model, in all backward passes but the last one before a step."
    return Cause("accumulation", RankSet(seen.ranks), share, message, evidence, advice, place)


def _averages(seen: Observed) -> _Averages | None:
    """Return the averages of the only model that is trained; None if there are several, or it cannot be known."""
    if seen.period is None or not seen.is_sampled:
        return None
    rank = min(seen.ranks)
    reports = seen.ranks[rank].reports
    changes: Counter[tuple[str, int]] = Counter()
    for updates in (one for report in reports[1:] for one in report.updates):
        changes[updates.group, updates.num_bytes] += updates.changes
    trained = [model for model, number in changes.items() if number > 0]
    if len(trained) != 1:
        return None
    group, num_bytes = trained[0]
    step = [meeting for meeting in seen.meetings if rank in meeting.began][-seen.period :]
    in_group = [meeting for meeting in step if meeting.group == group]
    passes = sum(meeting.num_bytes for meeting in in_group) / max(1, num_bytes)
    if round(passes) < 1 or abs(passes - round(passes)) > OTHER_BYTES:
        return None
    number = num_begun(reports, group) / len(in_group) * round(passes)
    return _Averages(number, changes[group, num_bytes])


def _sharded_averages(seen: Observed) -> _Averages | None:
    """Return the averages of the only FSDP2 model that is trained; None if there are several, or it cannot be known.

    Its gradients are reduced in as many collectives as it has sharded modules; smaller ones are losses or metrics.
    """
    if seen.period is None or not seen.is_sampled:
        return None
    rank = min(seen.ranks)
    reports = seen.ranks[rank].reports
    changes: Counter[tuple[str, int, int]] = Counter()
    for group, least_bytes, num_gradients, number in (one for report in reports[1:] for one in report.sharded_updates):
        changes[group, least_bytes, num_gradients] += number
    trained = [model for model, number in changes.items() if number > 0]
    if len(trained) != 1:
        return None
    model_group, least_bytes, num_gradients = trained[0]
    step = [meeting for meeting in seen.meetings if rank in meeting.began][-seen.period :]
    in_group = [meeting for meeting in step if meeting.group == model_group]
    gradients = [one for one in in_group if "reduce" in one.name and one.num_bytes >= SMALLER_TYPE * least_bytes]
    if not gradients or len(gradients) % max(1, num_gradients):
        return None
    begun = num_begun(reports, model_group) * len(gradients) / len(in_group) / num_gradients
    part = sum(one.num_bytes for one in gradients) / max(1, sum(one.num_bytes for one in step))
    return _Averages(begun, changes[trained[0]], is_sharded=True, part=part)


def num_begun(reports: Sequence[RankReport], group: str) -> int:
    """Return how many collectives of a process group a rank has begun between its first and its last report."""
    newest = [max((one.seq for one in report.arrivals if one.group == group), default=None) for report in reports]
    pairs = itertools.pairwise(newest)
    return sum(max(0, after - before) for before, after in pairs if before is not None and after is not None)
