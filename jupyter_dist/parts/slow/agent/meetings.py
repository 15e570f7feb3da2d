"""Who waits for whom in collectives: the arrivals of ranks at the same number of the same process group. Pure.

A rank waits at most from its arrival until the last rank has arrived, and no longer than until it begins its next
collective: so waits of one rank never overlap, also where collectives do (DistributedDataParallel).
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from jupyter_dist.transport.rows import CodePlace

from .asking.reports import Arrival, RankReport, Sampled

MAX_CHAIN = 4  # of ranks that wait for each other in several process groups


class MatchedCollective(NamedTuple):
    """A collective that all ranks of its process group have begun; times in microseconds of the agent's clock."""

    group: str
    seq: int
    name: str
    num_bytes: int
    began: Mapping[int, float]
    last: int  # the rank that came last
    took: Mapping[int, int] | None = None  # microseconds on the devices, where all ranks have measured them
    on_device: bool = False

    @property
    def is_known(self) -> bool:
        """Whether the waits of ranks are known: on devices, hosts ask for collectives long before they run."""
        return self.took is not None or not self.on_device

    @property
    def spread(self) -> float:
        """How many microseconds the first rank waited for the last one."""
        times = (self.began if self.took is None else self.took).values()
        return max(times) - min(times)


class Stay(NamedTuple):
    """The time of a rank from one collective to its next one."""

    meeting: MatchedCollective
    seconds: float
    waited: float  # of them, at most, for the last rank


@dataclass
class Waits:
    """The waits of ranks for each other."""

    stays: dict[int, list[Stay]] = field(default_factory=dict)
    num_meetings: int = 0
    before: dict[tuple[int, str, int], Stay] = field(default_factory=dict)  # what a rank's arrival ended
    _sums: dict[int, tuple[float, float]] = field(default_factory=dict)  # of all stays of a rank: seconds, waited

    def seconds(self, rank: int) -> float:
        """Return the time of a rank that its collectives cover."""
        return self._sum(rank)[0]

    def share(self, rank: int) -> float:
        """Return which part of its time a rank has waited for others."""
        seconds, waited = self._sum(rank)
        return waited / seconds if seconds else 0.0

    def _sum(self, rank: int) -> tuple[float, float]:
        if rank not in self._sums:
            stays = self.stays.get(rank, ())
            self._sums[rank] = sum(stay.seconds for stay in stays), sum(stay.waited for stay in stays)
        return self._sums[rank]

    def blamed(self, meeting: MatchedCollective) -> int:
        """Return the rank that the others waited for, or that the last one had waited for in another group."""
        last = meeting.last
        for _ in range(MAX_CHAIN):
            before = self.before.get((last, meeting.group, meeting.seq))
            if before is None or before.waited < meeting.spread / 2e6:
                break
            meeting = before.meeting
            last = meeting.last
        return last


def meet(arrivals: Mapping[int, Iterable[Arrival]], shifts: Mapping[int, float]) -> list[MatchedCollective]:
    """Return the collectives in which all ranks of a process group arrived, in order.

    Args:
        arrivals: of each rank.
        shifts: the microseconds to subtract from the times of each rank.
    """
    begun: dict[tuple[str, int], dict[int, Arrival]] = defaultdict(dict)
    members: dict[str, set[int]] = defaultdict(set)
    for rank, several in arrivals.items():
        for arrival in several:
            begun[arrival.group, arrival.seq][rank] = arrival
            members[arrival.group].add(rank)
    found = []
    for (group, seq), by_rank in begun.items():
        names = {arrival.name for arrival in by_rank.values()}
        if len(by_rank) == len(members[group]) > 1 and len(names) == 1:
            times = {rank: arrival.began - shifts.get(rank, 0.0) for rank, arrival in by_rank.items()}
            num_bytes = max(arrival.num_bytes for arrival in by_rank.values())
            on_device = any(arrival.on_device for arrival in by_rank.values())
            took = {rank: arrival.took for rank, arrival in by_rank.items() if arrival.took is not None}
            if len(took) == len(by_rank):  # the rank that comes last waits for no other one
                last, durations = min(took, key=took.__getitem__), took
            else:
                last, durations = max(times, key=times.__getitem__), None
            found.append(MatchedCollective(group, seq, names.pop(), num_bytes, times, last, durations, on_device))
    return sorted(found, key=lambda meeting: min(meeting.began.values()))


def find_waits(meetings: Sequence[MatchedCollective], unsure: float) -> Waits:
    """Return the waits of ranks in these collectives; `unsure`: the largest error of arrivals, in microseconds."""
    known = {(meeting.group, meeting.seq) for meeting in meetings}
    of_rank: dict[int, list[MatchedCollective]] = defaultdict(list)
    for meeting in meetings:
        for rank in meeting.began:
            of_rank[rank].append(meeting)
    waits = Waits(num_meetings=len(meetings))
    for rank, mine in of_rank.items():
        mine.sort(key=lambda meeting: meeting.began[rank])
        seen: set[str] = set()
        stays = waits.stays[rank] = []
        for meeting, following in itertools.pairwise(mine):
            seen.add(meeting.group)
            if following.group in seen and (following.group, following.seq - 1) not in known:
                continue  # there were others between them, which no rank has reported
            began, ended = meeting.began[rank], following.began[rank]
            if meeting.took is not None:  # no clocks of two hosts are compared
                waited = float(meeting.took[rank] - meeting.took[meeting.last])
            else:
                waited = min(meeting.began[meeting.last], ended) - began - unsure if meeting.is_known else 0.0
            stay = Stay(meeting, max(0.0, ended - began) / 1e6, max(0.0, waited) / 1e6)
            stays.append(stay)
            waits.before[rank, following.group, following.seq] = stay
    return waits


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
