"""The critical path of a loop: at each moment, what the rank did that the others would wait for next. Pure.

From one collective to the next, the others need the rank that comes last there. What that rank was found doing in
this time, and not what most ranks do most of the time, is what makes a step as long as it is: also where another rank
is last each time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .meetings import MatchedCollective, Waits
from .reports import CodePlace, RankReport, Sampled

LEAST_SAMPLES = 25


@dataclass
class CriticalPath:
    """The samples of ranks at moments in which they were on it."""

    samples: Counter[tuple[int, Sampled]] = field(default_factory=Counter)  # by rank

    @property
    def is_known(self) -> bool:
        """Whether there are enough samples."""
        return self.samples.total() >= LEAST_SAMPLES

    def share(self, *activities: str) -> float:
        """Return which part of the path activities have; 0 if it is not known."""
        number = sum(number for (_, sampled), number in self.samples.items() if sampled.activity in activities)
        return number / self.samples.total() if self.is_known else 0.0

    def main_place(self, *activities: str) -> CodePlace | None:
        """Return the line that activities have most often."""
        met: Counter[CodePlace] = Counter()
        for (_, sampled), number in self.samples.items():
            if sampled.activity in activities and sampled.place is not None:
                met[sampled.place] += number
        return met.most_common(1)[0][0] if met else None


def find_critical_path(
    meetings: Iterable[MatchedCollective],
    waits: Waits,
    reports: Mapping[int, Sequence[RankReport]],
    shifts: Mapping[int, float],
) -> CriticalPath:
    """Return the samples of each rank from where it needed no other rank to where the others needed it.

    Args:
        meetings: the collectives of the loop.
        waits: the waits in these.
        reports: of each rank.
        shifts: the microseconds to subtract from the times of each rank.
    """
    spans: defaultdict[int, list[tuple[float, float]]] = defaultdict(list)
    for meeting in meetings:
        stay = waits.before.get((meeting.last, meeting.group, meeting.seq))
        if stay is not None and meeting.is_known and meeting.took is None:
            end = meeting.began[meeting.last]
            spans[meeting.last].append((end, end - (stay.seconds - stay.waited) * 1e6))
    found = CriticalPath()
    for rank, of_rank in spans.items():
        of_rank.sort()
        for sampled in (one for report in reports.get(rank, ()) for one in report.samples):
            number = sum(_is_within(at - shifts.get(rank, 0.0), of_rank) for at in sampled.times)
            if number:
                found.samples[rank, sampled._replace(number=0, cpu_seconds=0.0, times=())] += number
    return found


def _is_within(at: float, spans: list[tuple[float, float]]) -> bool:
    """Whether a moment is in a span of (end, begin); the spans are sorted."""
    index = bisect_left(spans, (at, 0.0))
    return index < len(spans) and spans[index][1] <= at
