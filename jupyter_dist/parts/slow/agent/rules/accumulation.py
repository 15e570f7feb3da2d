"""Finds gradients that are averaged over the ranks more often than an optimizer uses them. Pure."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jupyter_dist.parts.slow.agent.asking.reports import RankReport, ShardedUpdates, Updates
from jupyter_dist.parts.slow.agent.meetings import MatchedCollective
from jupyter_dist.parts.slow.agent.observed import Observed
from jupyter_dist.protocol.models.sentences import say
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
    message = say(
        "Gradients are averaged over the ranks %1 times for each step of the optimizer, which takes %2 of the time%3.",
        format(passes, ".0f"),
        percent(share),
        at_place(place),
    )
    evidence = [
        say(
            "They were averaged %1 times, while the parameters changed %2 times.",
            format(averages.number, ".0f"),
            averages.changes,
        ),
        say("The ranks are in collectives %1 of the time.", percent(in_collectives)),
    ]
    advice = (
        say(
            "Accumulate with set_requires_gradient_sync(False) of an FSDP2 model, in all backward "
            "passes but the last one "
            "before a step."
        )
        if averages.is_sharded
        else say("Accumulate under no_sync() of the DDP model, in all backward passes but the last one before a step.")
    )
    return Cause("accumulation", RankSet(seen.ranks), share, message, evidence, advice, place)


def _averages(seen: Observed) -> _Averages | None:
    """Return the averages of the only DDP model that is trained; None if there are several, or it cannot be known."""
    trained = _trained(seen, lambda report: report.updates)
    if trained is None:
        return None
    (group, num_bytes), changes = trained
    step, num_steps = _step(seen, group)
    passes = sum(meeting.num_bytes for meeting in step if meeting.group == group) / max(1, num_bytes)
    if round(passes) < 1 or abs(passes - round(passes)) > OTHER_BYTES:
        return None
    return _Averages(num_steps * round(passes), changes)


def _sharded_averages(seen: Observed) -> _Averages | None:
    """Return the averages of the only FSDP2 model that is trained; None if there are several, or it cannot be known.

    Its gradients are reduced in as many collectives as it has sharded modules; smaller ones are losses or metrics.
    """
    trained = _trained(seen, lambda report: report.sharded_updates)
    if trained is None:
        return None
    (group, least_bytes, num_gradients), changes = trained
    step, num_steps = _step(seen, group)
    least = SMALLER_TYPE * least_bytes
    gradients = [one for one in step if one.group == group and "reduce" in one.name and one.num_bytes >= least]
    if not gradients or len(gradients) % max(1, num_gradients):
        return None
    part = sum(one.num_bytes for one in gradients) / max(1, sum(one.num_bytes for one in step))
    return _Averages(num_steps * len(gradients) / num_gradients, changes, is_sharded=True, part=part)


def _trained(
    seen: Observed, updates_of: Callable[[RankReport], Sequence[Updates | ShardedUpdates]]
) -> tuple[tuple[Any, ...], int] | None:
    """Return the fields of the only model that is trained, and its changes; None if there are several, or none."""
    if seen.period is None or not seen.is_sampled:
        return None
    changes: Counter[tuple[Any, ...]] = Counter()
    for *model, number in (one for report in _reports(seen)[1:] for one in updates_of(report)):
        changes[tuple(model)] += number
    trained = [model for model, number in changes.items() if number > 0]
    return (trained[0], changes[trained[0]]) if len(trained) == 1 else None


def _step(seen: Observed, group: str) -> tuple[list[MatchedCollective], float]:
    """Return the collectives of the last step, and how many steps a process group has had."""
    assert seen.period is not None
    step = [meeting for meeting in seen.meetings if min(seen.ranks) in meeting.began][-seen.period :]
    in_group = sum(meeting.group == group for meeting in step)
    return step, num_begun(_reports(seen), group) / max(1, in_group)


def _reports(seen: Observed) -> Sequence[RankReport]:
    return seen.ranks[min(seen.ranks)].reports


def num_begun(reports: Sequence[RankReport], group: str) -> int:
    """Return how many collectives of a process group a rank has begun between its first and its last report."""
    newest = [max((one.seq for one in report.arrivals if one.group == group), default=None) for report in reports]
    pairs = itertools.pairwise(newest)
    return sum(max(0, after - before) for before, after in pairs if before is not None and after is not None)
