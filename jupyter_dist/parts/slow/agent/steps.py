"""Finds the steps of a loop: the collectives that recur, without what came before the loop. Pure."""

from __future__ import annotations

import itertools
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from .meetings import MatchedCollective, Waits

MAX_PERIOD = 64  # collectives in a step
LEAST_STEPS = 4
NUM_COMPARED = 512  # the newest collectives, in which steps are looked for
LEAST_ALIKE = 0.85
NEWEST_PART = 8  # an eighth: a loop that is not met in it is over
MOST_WARM_UP = 3.0  # times as long as usual: the first steps take longer


class StepSpan(NamedTuple):
    """From a collective to the same one a step later."""

    began: float  # in microseconds
    seconds: float


class FoundSteps(NamedTuple):
    """The steps of a loop on one rank."""

    period: int  # collectives in a step
    spans: tuple[StepSpan, ...] = ()  # of each collective of the loop; none if ranks report less than a step at once

    @property
    def seconds(self) -> float | None:
        """How long a step takes on average."""
        return statistics.fmean(span.seconds for span in self.spans) if self.spans else None

    def among(self, meetings: Sequence[MatchedCollective], rank: int) -> FoundSteps | None:
        """Return the steps that began with one of these collectives; None if there are none."""
        if not self.spans:
            return self
        began = {meeting.began[rank] for meeting in meetings if rank in meeting.began}
        spans = tuple(span for span in self.spans if span.began in began)
        return self._replace(spans=spans) if spans else None

    def of_loop(self, meetings: Sequence[MatchedCollective], rank: int) -> list[MatchedCollective]:
        """Return the collectives from the first step on."""
        began = self.spans[0].began if self.spans else 0.0
        return [one for one in meetings if one.began.get(rank, min(one.began.values())) >= began]


def find_steps(meetings: Sequence[MatchedCollective], waits: Waits, rank: int) -> FoundSteps | None:
    """Return the steps of a rank; None if its collectives do not recur.

    What only precedes the loop is none of its steps: the broadcasts of a new DistributedDataParallel, and first steps
    that take much longer.
    """
    mine = sorted((one for one in meetings if rank in one.began), key=lambda meeting: meeting.began[rank])
    numbers: dict[tuple[str, str, int], int] = {}
    kinds = [numbers.setdefault((one.group, one.name, one.num_bytes), len(numbers)) for one in mine]
    period = period_of(kinds)
    if period is None:
        return None
    # The collectives from one on until a period later are a step, in any order, if they add up to the usual sum.
    sums = list(itertools.accumulate((hash((kind, kind)) for kind in kinds), initial=0))
    steps = [sums[index + period] - sums[index] for index in range(len(kinds) - period)]
    usual = Counter(steps).most_common(1)[0][0]
    if usual not in steps[-max(1, len(steps) // NEWEST_PART) :]:
        return None
    gaps = list(itertools.accumulate((rank, one.group, one.seq) not in waits.before for one in mine))
    spans = [
        StepSpan(mine[index].began[rank], (mine[index + period].began[rank] - mine[index].began[rank]) / 1e6)
        for index, step in enumerate(steps)
        if step == usual and kinds[index] == kinds[index + period] and gaps[index + period] == gaps[index]
    ]
    most = MOST_WARM_UP * statistics.median(span.seconds for span in spans) if spans else 0.0
    return FoundSteps(period, tuple(itertools.dropwhile(lambda span: span.seconds > most, spans)))


def period_of(kinds: Sequence[int]) -> int | None:
    """Return after how many collectives the same kinds come again; None if they do not recur."""
    kinds = kinds[-NUM_COMPARED:]
    last = {kind: index for index, kind in enumerate(kinds)}
    # A kind that is not met in the newer half is in no step that is met four times.
    kinds = kinds[1 + max((index for index in last.values() if index < len(kinds) // 2), default=-1) :]
    found: dict[int, float] = {}
    for period in range(1, min(MAX_PERIOD, len(kinds) // LEAST_STEPS) + 1):
        found[period] = _alike(kinds, period)
        if found[period] == 1.0:  # no longer one is better
            break
    best = max(found.values(), default=0.0)
    # Steps of many equal collectives and one other nearly recur after one: the period must be as good as the best.
    return next((period for period in found if found[period] >= max(LEAST_ALIKE, best - 0.01)), None)


def _alike(kinds: Sequence[int], period: int) -> float:
    return sum(a == b for a, b in zip(kinds, kinds[period:], strict=False)) / max(1, len(kinds) - period)
