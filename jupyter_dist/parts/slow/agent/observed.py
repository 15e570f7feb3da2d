"""The pace of a cell in the last seconds, from the reports of its ranks: the input of the judge. Pure."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from jupyter_dist.transport.rows import CodePlace

from .asking.reports import Arrival, RankReport
from .meetings import CriticalPath, MatchedCollective, Waits, find_critical_path, find_waits, meet
from .steps import FoundSteps, find_steps

LEAST_SAMPLES = 15
LEAST_TRACKED = 2  # steps
LEAST_SAMPLES_OF_LOOK = 5
MOST_WORK = 2.0  # times the processor time of the others: ranks that use more have more to do
LEAST_UNLIKE = 3  # times as long as the others must ranks wait for a core, for the same work
LEAST_CPU = 0.02  # of a core: ranks that use less wait as if they used it
RUN = "run"  # the activity of a rank that does nothing that is known by a file of torch's (parts/slow/rank/stacks.py)


@dataclass
class RankPaceSeen:
    """The reports of one rank, added up."""

    reports: Sequence[RankReport]
    samples: Counter[tuple[str, CodePlace | None]] = field(default_factory=Counter)
    blocked: Counter[CodePlace | None] = field(default_factory=Counter)  # of them, in a system call
    num_samples: int = 0  # how often its stack was read
    looks: Sequence[RankReport] = ()  # the last reports, also those before the time that is judged

    def __post_init__(self) -> None:
        for sampled in (one for report in self.reports for one in report.samples):
            self.samples[sampled.activity, sampled.place] += sampled.number
            if sampled.is_blocked:
                self.blocked[sampled.place] += sampled.number
        self.num_samples = sum(self.samples.values())
        self.looks = self.looks or self.reports

    @property
    def seconds(self) -> float:
        """For how long it was watched."""
        return sum(report.seconds for report in self.reports)

    def share(self, activity: str) -> float:
        """Return which part of its time it spent in an activity, by its samples."""
        number = sum(number for (kind, _), number in self.samples.items() if kind == activity)
        return number / self.num_samples if self.num_samples else 0.0

    def share_at(self, activity: str, place: CodePlace | None) -> float:
        """Return which part of its time it spent in an activity for a line."""
        return self.samples[activity, place] / self.num_samples if self.num_samples else 0.0

    def part(self, measure: Callable[[RankReport], float]) -> float:
        """Return a sum over its reports, as part of their seconds."""
        seconds = self.seconds
        return sum(map(measure, self.reports)) / seconds if seconds else 0.0

    def main_place(self, *activities: str) -> CodePlace | None:
        """Return the line for which it was found most often in activities."""
        met: Counter[CodePlace] = Counter()
        for (kind, place), number in self.samples.items():
            if kind in activities and place is not None:
                met[place] += number
        return met.most_common(1)[0][0] if met else None

    def inner_of(self, activity: str) -> CodePlace | None:
        """Return the line of the user's dataset that was met most often in an activity."""
        met: Counter[CodePlace] = Counter()
        for sampled in (one for report in self.reports for one in report.samples):
            if sampled.activity == activity and sampled.inner is not None:
                met[sampled.inner] += sampled.number
        return met.most_common(1)[0][0] if met else None


class StepsSeen(NamedTuple):
    """The steps of a cell at one look."""

    seconds: float  # of a step
    cpu_seconds: float  # of the main thread in a step
    lines: Mapping[CodePlace, float]  # seconds of a step for each line
    num_samples: int = 1000  # by which these are known

    def variance(self, place: CodePlace) -> float:
        """Return how much the seconds of a line may differ by chance, squared."""
        return self.seconds * self.lines.get(place, 0.0) / self.num_samples


@dataclass
class Observed:
    """The ranks of a cell in the same seconds."""

    ranks: Mapping[int, RankPaceSeen]
    meetings: Sequence[MatchedCollective]
    waits: Waits
    steps: FoundSteps | None
    path: CriticalPath = field(default_factory=CriticalPath)
    tracked_seconds: float | None = None  # of a step, where the cell names its steps by track(step=...)
    history: Sequence[StepsSeen] = ()  # of the whole cell, oldest first

    @property
    def is_sampled(self) -> bool:
        """Whether there are enough samples of each rank."""
        return bool(self.ranks) and all(seen.num_samples >= LEAST_SAMPLES for seen in self.ranks.values())

    @property
    def are_waits_known(self) -> bool:
        """Whether the collectives show who waited for whom: on devices only where torch measures how long they take."""
        return all(meeting.is_known for meeting in self.meetings)

    @property
    def period(self) -> int | None:
        """How many collectives a step has; None if they do not recur."""
        return None if self.steps is None else self.steps.period

    @property
    def has_steps(self) -> bool:
        """Whether the cell is a loop whose steps were found."""
        return self.period is not None or self.tracked_seconds is not None

    @property
    def step_seconds(self) -> float | None:
        """How long a step takes; None if no steps were found."""
        if self.tracked_seconds is not None:
            return self.tracked_seconds
        if self.steps is None or not self.waits.stays:
            return None
        return self.steps.seconds or self._estimated_seconds(self.steps.period)

    def _estimated_seconds(self, period: int) -> float | None:
        """Return how long a step takes if ranks report less than a step at once."""
        stays = self.waits.stays[min(self.waits.stays)]
        return period * statistics.fmean(stay.seconds for stay in stays) if stays else None

    def lack_cores(self, ranks: Iterable[int], others: Iterable[int]) -> bool:
        """Whether these ranks wait for cores unlike the others, which have as much to do.

        On a busy machine every rank waits for cores, the longer the more it has to do.
        """
        used, usual = (max(self.median(cpu_part, few), LEAST_CPU) for few in (ranks, others))
        waits, waits_usually = (self.median(_kept_by_work, few) for few in (ranks, others))
        return used <= MOST_WORK * usual and waits >= LEAST_UNLIKE * waits_usually

    def kept_unlike(self, ranks: Iterable[int], others: Iterable[int]) -> float:
        """Return for which part of the time ranks wait for cores, beyond what others would with their work.

        0 if they have much more to do.
        """
        used, usual = (max(self.median(cpu_part, few), LEAST_CPU) for few in (ranks, others))
        return (
            self.median(kept_part, ranks) - self.median(_kept_by_work, others) * used
            if used <= MOST_WORK * usual
            else 0.0
        )

    def among(self, ranks: Set[int]) -> Observed:
        """Return the observations of some ranks, in collectives of these ranks alone."""
        meetings = [meeting for meeting in self.meetings if meeting.began.keys() <= ranks]
        stays = {rank: stays for rank, stays in self.waits.stays.items() if rank in ranks}
        waits = Waits(stays, len(meetings), self.waits.before)
        mine = {rank: its for rank, its in self.ranks.items() if rank in ranks}
        steps = find_steps(meetings, waits, min(ranks)) if self.steps is not None else None
        return replace(self, ranks=mine, meetings=meetings, waits=waits, steps=steps)

    def median(self, measure: Callable[[RankPaceSeen], float], ranks: Iterable[int] | None = None) -> float:
        """Return the median of a measure over these ranks, by default over all."""
        chosen = self.ranks if ranks is None else [rank for rank in ranks if rank in self.ranks]
        return statistics.median([measure(self.ranks[rank]) for rank in chosen]) if chosen else 0.0


def cpu_part(rank: RankPaceSeen) -> float:
    """Return for which part of its time the main thread of a rank has run."""
    return rank.part(lambda report: report.cpu_seconds)


def kept_part(rank: RankPaceSeen) -> float:
    """Return for which part of its time a rank could run, and got no core."""
    return rank.part(lambda report: report.kept_seconds)


def _kept_by_work(rank: RankPaceSeen) -> float:
    """Return for how long a rank is kept from running for each second of processor time."""
    return kept_part(rank) / max(cpu_part(rank), LEAST_CPU)


def observe(
    reports: Mapping[int, Sequence[RankReport]],
    shifts: Mapping[int, float],
    unsure: float = 0.0,
    looks: Mapping[int, Sequence[RankReport]] | None = None,
    steps: FoundSteps | None = None,
) -> Observed:
    """Put the reports of ranks side by side.

    Args:
        reports: of the last seconds, oldest first, by rank.
        shifts: the microseconds to subtract from the times of each rank.
        unsure: the largest error of times of different ranks, in microseconds.
        looks: the last reports, by rank, where they are more.
        steps: what was found in more reports than these, so that both have the same steps.
    """
    arrivals: dict[int, list[Arrival]] = {
        rank: [arrival for report in several for arrival in report.arrivals] for rank, several in reports.items()
    }
    meetings = meet(arrivals, shifts)
    ranks = {rank: RankPaceSeen(several, looks=(looks or {}).get(rank, ())) for rank, several in reports.items()}
    waits = find_waits(meetings, unsure)
    if steps is not None:
        steps = steps.among(meetings, min(ranks)) if ranks else None
    elif ranks and (steps := find_steps(meetings, waits, min(ranks))) is not None:
        of_loop = steps.of_loop(meetings, min(ranks))
        if len(of_loop) < len(meetings):
            meetings, waits = of_loop, find_waits(of_loop, unsure)
    path = find_critical_path(meetings, waits, reports, shifts)
    return Observed(ranks, meetings, waits, steps, path, _tracked_seconds(ranks))


def _tracked_seconds(ranks: Mapping[int, RankPaceSeen]) -> float | None:
    """Return how long a step takes that `track(step=...)` names; None if ranks have tracked too few."""
    rates = []
    for seen in ranks.values():
        steps = number = 0.0
        for report in seen.reports:
            (began, first), (ended, last) = (report.steps[0], report.steps[-1]) if report.steps else ((0.0, 0),) * 2
            if last > first and ended > began:
                steps, number = steps + ended - began, number + last - first
        if number >= LEAST_TRACKED:
            rates.append(steps / number)
    return statistics.median(rates) if rates else None


def steps_of(newest: Observed) -> StepsSeen | None:
    """Return the steps at a look, of which these are the newest reports; None if there are none, or too few samples."""
    step = newest.step_seconds
    if not step or not all(seen.num_samples >= LEAST_SAMPLES_OF_LOOK for seen in newest.ranks.values()):
        return None
    lines: dict[CodePlace, float] = {}
    for seen in newest.ranks.values():
        for (activity, place), number in seen.samples.items():
            if place is not None and activity != "wait":
                lines[place] = lines.get(place, 0.0) + step * number / seen.num_samples / len(newest.ranks)
    cpu = newest.median(lambda seen: seen.part(lambda report: report.cpu_seconds))
    return StepsSeen(step, cpu * step, lines, sum(seen.num_samples for seen in newest.ranks.values()))
