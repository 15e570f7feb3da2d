"""Where the time of a cell went: by rank, by line and by step, over all its reports. Pure."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from jupyter_dist.protocol.models.sentences import say, words_of
from jupyter_dist.protocol.ranks import RankSet, name_ranks
from jupyter_dist.transport.rows import CodePlace

from .asking.reports import RankReport
from .observed import Observed
from .rules.causes import percent

if TYPE_CHECKING:
    from jupyter_dist.parts.slow import models

MAX_RANKS = 64
MAX_LINES = 10
MAX_TREND = 60
LEAST_SHARE = 0.01


@dataclass
class _RankTotals:
    samples: int = 0
    by_activity: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    by_place: dict[CodePlace, int] = field(default_factory=lambda: defaultdict(int))
    waited: float = 0.0  # seconds for others, of `covered` seconds
    covered: float = 0.0
    on_device: float = 0.0  # seconds in collectives there, where torch has measured them
    for_whom: dict[int, float] = field(default_factory=lambda: defaultdict(float))


class _StepTime(NamedTuple):
    at: float  # in seconds since the epoch
    seconds: float


class _Trend:
    """How long steps took in the course of the cell: at most MAX_TREND times, each the mean of as many looks."""

    def __init__(self) -> None:
        self.newest: float | None = None
        self._kept: list[_StepTime] = []
        self._looks: list[_StepTime] = []  # not in `_kept` yet
        self._width = 1

    def add(self, step: _StepTime) -> None:
        self.newest = step.seconds
        self._looks.append(step)
        if len(self._looks) == self._width:
            self._kept.append(_mean(self._looks))
            self._looks = []
        if len(self._kept) == MAX_TREND:
            self._kept = [_mean(pair) for pair in zip(self._kept[::2], self._kept[1::2], strict=True)]
            self._width *= 2

    def steps(self) -> list[_StepTime]:
        return [*self._kept, _mean(self._looks)] if self._looks else self._kept


def _mean(steps: Sequence[_StepTime]) -> _StepTime:
    return _StepTime(*map(statistics.fmean, zip(*steps, strict=True)))


class PaceTotals:
    """Adds up what the looks at a cell observed."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._ranks: dict[int, _RankTotals] = defaultdict(_RankTotals)
        self._trend = _Trend()
        self._period: int | None = None
        self._knows_arrivals = False
        self._are_waits_known = True
        self._uses_device = self._knows_device = False

    def add(self, reports: Mapping[int, RankReport], seen: Observed, at: float) -> None:
        """Add the newest reports of ranks, taken at that time; `seen` has them side by side."""
        self.seconds += statistics.median(report.seconds for report in reports.values()) if reports else 0.0
        for rank, report in reports.items():
            self._uses_device = self._uses_device or report.reserved_bytes is not None
            self._knows_device = self._knows_device or report.device_busy is not None
            totals = self._ranks[rank]
            for sampled in report.samples:
                totals.samples += sampled.number
                totals.by_activity[sampled.activity] += sampled.number
                if sampled.place is not None:
                    totals.by_place[sampled.place] += sampled.number
        for rank, stays in seen.waits.stays.items():
            totals = self._ranks[rank]
            for stay in stays:
                totals.waited += stay.waited
                totals.covered += stay.seconds
                if stay.waited > 0:
                    totals.for_whom[stay.meeting.last] += stay.waited
                if stay.meeting.took is not None:
                    totals.on_device += stay.meeting.took[rank] / 1e6
        if seen.period is not None:
            self._knows_arrivals = True
            self._are_waits_known = seen.are_waits_known
        if seen.step_seconds:
            self._period = None if seen.tracked_seconds is not None else seen.period
            self._trend.add(_StepTime(at, seen.step_seconds))

    def model(self, execution_id: str, causes: Sequence[models.SlowCause]) -> models.Pace:
        """Return the Pace of docs/api.md."""
        rows = [_row(rank, totals) for rank, totals in sorted(self._ranks.items()) if totals.samples]
        return {
            "execution_id": execution_id,
            "seconds": round(self.seconds, 1),
            "causes": list(causes),
            "ranks": _most_different(rows),
            "lines": self._lines(),
            "steps": self._step_times(),
            "unknown": (unknown := self._unknown()),
            "unknown_words": [words_of(sentence) for sentence in unknown],
        }

    def _step_times(self) -> models.StepTimes | None:
        if self._trend.newest is None:
            return None
        steps = self._trend.steps()
        return {
            "seconds": round(self._trend.newest, 6),
            "collectives": self._period,
            "trend": [round(step.seconds, 6) for step in steps],
            "times": [round(step.at, 3) for step in steps],
        }

    def _lines(self) -> list[models.LineShare]:
        shares: dict[CodePlace, dict[int, float]] = defaultdict(dict)
        for rank, totals in self._ranks.items():
            for place, number in totals.by_place.items():
                shares[place][rank] = number / totals.samples
        num_ranks = max(1, len(self._ranks))
        means = {place: sum(by_rank.values()) / num_ranks for place, by_rank in shares.items()}
        largest = sorted(means, key=means.__getitem__, reverse=True)[:MAX_LINES]
        return [
            {
                "ranks": str(RankSet(rank for rank, share in shares[place].items() if share >= LEAST_SHARE)),
                "line": {"file": place.file, "name": place.name, "line": place.line, "code": place.code},
                "share": round(means[place], 3),
            }
            for place in largest
            if means[place] >= LEAST_SHARE
        ]

    def _unknown(self) -> list[str]:
        found: list[str] = []
        if not self._knows_arrivals and any(totals.by_activity["wait"] for totals in self._ranks.values()):
            found.append(
                say(
                    "When ranks arrived at collectives is not known: "
                    "torch has kept no record of them, or they do not recur."
                )
            )
        if unread := RankSet(rank for rank, totals in self._ranks.items() if not totals.samples):
            found.append(say("The stacks of %1 could not be read.", name_ranks(unread)))
        if not self._are_waits_known:
            found.append(
                say(
                    "How long ranks wait for each other on the devices is not known: torch measures it where its "
                    "timing of collectives is on."
                )
            )
        if self._uses_device and not self._knows_device:
            found.append(say("How busy the devices are is not known: ranks do not have the library that counts it."))
        return found


def _row(rank: int, totals: _RankTotals) -> models.RankPace:
    shares = {activity: number / totals.samples for activity, number in totals.by_activity.items()}
    in_collectives = shares.get("wait", 0.0)
    if totals.on_device and totals.covered:
        in_collectives = max(in_collectives, min(1.0, totals.on_device / totals.covered))
    waited = min(in_collectives, totals.waited / totals.covered) if totals.covered else 0.0
    loading = shares.get("input", 0.0)
    return {
        "rank": rank,
        "compute": round(max(0.0, 1 - in_collectives - loading), 3),
        "communicate": round(in_collectives - waited, 3),
        "wait": round(waited, 3),
        "input": round(loading, 3),
        "waits_for": max(totals.for_whom, key=totals.for_whom.__getitem__) if totals.for_whom else None,
    }


def _most_different(rows: list[models.RankPace]) -> list[models.RankPace]:
    """Return the rows that differ most in how long their ranks waited, if there are too many."""
    if len(rows) <= MAX_RANKS:
        return rows
    by_wait = sorted(rows, key=lambda row: row["wait"])
    kept = by_wait[: MAX_RANKS // 2] + by_wait[-MAX_RANKS // 2 :]
    return sorted(kept, key=lambda row: row["rank"])


def witnesses_of(model: models.Pace) -> list[str]:
    """Return where the time of the ranks has gone so far, a sentence for each rank and each line."""
    found: list[str] = []
    for row in model["ranks"]:
        whom = "" if row["waits_for"] is None else say(", most of it for rank %1", row["waits_for"])
        shares = (
            percent(row["compute"]),
            percent(row["communicate"]),
            percent(row["wait"]),
            whom,
            percent(row["input"]),
        )
        found.append(say("rank %1: computes %2, communicates %3, waits %4%5, loads %6", row["rank"], *shares))
    for share in model["lines"]:
        line = share["line"]
        where = f"{line['name']}:{line['line']} {line['code']}"
        who = name_ranks(RankSet.from_text(share["ranks"]))
        found.append(say("%1: %2 at %3", who, percent(share["share"]), where))
    if (steps := model["steps"]) is not None:
        found.append(say("steps of %1 s", ", ".join(f"{seconds:.3g}" for seconds in steps["trend"][-10:])))
    return found
