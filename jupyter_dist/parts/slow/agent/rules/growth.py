"""Finds steps that take longer and longer, and the line that takes the time. Pure.

The processor time of a step must grow at each look, because a busy machine makes steps longer, too. And one line must
take an ever larger part of the step: what slows a processor makes all lines longer.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence

from jupyter_dist.parts.slow.agent.observed import Observed, StepsSeen
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.transport.rows import CodePlace

from .causes import SURE, Cause, at_place, seconds_in_words

EARLY_LOOKS = 4  # of which each must show longer steps
LEAST_LOOKS = 2  # in each third of the cell, later
EACH_LOOK, EACH_THIRD = 1.05, 1.1  # how many times longer steps must take from one to the next
LONGER = 1.4  # from the first to the last
LEAST_GROWTH = 0.1  # of a step now, without the time in which ranks were kept from running
LEAST_SEEN = 0.5  # of the growth must be seen in the time of a step
LEAST_SHIFT = 0.08  # of the time outside of collectives, which the line must take more than at first


def find_growing(seen: Observed) -> Cause | None:
    """Return the cause if steps take longer and longer, in time and in processor time, through one line."""
    parts = _parts(seen.history)
    if not parts:
        return None
    cpu = [statistics.fmean(steps.cpu_seconds for steps in part) for part in parts]
    least = EACH_THIRD if len(parts) == 3 else EACH_LOOK
    if cpu[-1] < LONGER * cpu[0] or any(later < least * earlier for earlier, later in itertools.pairwise(cpu)):
        return None
    before, now = (statistics.fmean(steps.seconds for steps in part) for part in (parts[0], parts[-1]))
    kept = min(1.0, seen.median(lambda rank: rank.part(lambda report: report.kept_seconds)))
    growth = cpu[-1] - cpu[0]
    place = _line_that_grows(seen.history)
    if growth < LEAST_GROWTH * now * (1 - kept) or now - before < LEAST_SEEN * growth or place is None:
        return None
    message = say(
        "A step takes %1, and took %2 at first%3.", seconds_in_words(now), seconds_in_words(before), at_place(place)
    )
    evidence = [
        say("Its processor time grew from %1 to %2.", seconds_in_words(cpu[0]), seconds_in_words(cpu[-1])),
        say("It took %1 of the processor in between.", ", ".join(map(seconds_in_words, cpu[1:-1]))),
    ]
    advice = say("Look for work on everything so far: a list that is summed, joined or sorted at each step.")
    share = growth / now
    return Cause("growing", RankSet(seen.ranks), share, message, evidence, advice, place, spans_looks=True)


def _parts(history: Sequence[StepsSeen]) -> list[Sequence[StepsSeen]]:
    """Return the looks at a cell in the parts that are compared: thirds, and each look by itself while they are few."""
    number = len(history) // 3
    if number >= LEAST_LOOKS:
        return [history[:number], history[number : 2 * number], history[-number:]]
    return [[steps] for steps in history] if len(history) >= EARLY_LOOKS else []


def _line_that_grows(history: Sequence[StepsSeen]) -> CodePlace | None:
    """Return the line that takes more of a step in the second half of the looks than in the first, if one does surely.

    It must grow more than any other line by more than chance: the lines of a look are known by some samples.
    """
    half = len(history) // 2
    first, last = history[:half], history[-half:]
    growths = {place: _seconds(last, place) - _seconds(first, place) for steps in last for place in steps.lines}
    best = max(growths, key=growths.__getitem__, default=None)
    if best is None or _part_of(last, best) - _part_of(first, best) < LEAST_SHIFT:
        return None
    chance = {place: sum(steps.variance(place) for steps in (*first, *last)) / half**2 for place in growths}
    others = (place for place in growths if place != best)
    is_sure = all(growths[best] - growths[place] >= SURE * math.sqrt(chance[best] + chance[place]) for place in others)
    return best if is_sure else None


def _seconds(looks: Sequence[StepsSeen], place: CodePlace) -> float:
    return statistics.fmean(steps.lines.get(place, 0.0) for steps in looks)


def _part_of(looks: Sequence[StepsSeen], place: CodePlace) -> float:
    """Return which part of the time outside of collectives a line takes."""
    total = sum(sum(steps.lines.values()) for steps in looks)
    return sum(steps.lines.get(place, 0.0) for steps in looks) / total if total else 0.0
