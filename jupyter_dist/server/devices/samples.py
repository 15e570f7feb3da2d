"""The last hour of what ranks and devices used: rows of numbers, bounded in memory, and read page by page."""

from __future__ import annotations

import math
import time
from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, takewhile
from typing import Any, cast

from jupyter_dist.protocol.models import machine

KEEP_SECONDS = 3600.0
MAX_NUMBERS = 720_000  # of a group: an hour of 32 ranks on devices, 6 MB
SEEN_NUMBERS = 40  # an entry of `seen` counts as so many
GAP_SECONDS = 15.0  # samples of idle ranks are 4 s apart
PAGE_NUMBERS = 60_000  # of one answer: some 20 ms of the server
MAX_GAPS = 500
MAX_READINGS = 1200

BYTES = ("resident_bytes", "allocated_bytes", "reserved_bytes", "peak_bytes", "device_used_bytes")
FIELDS = (*BYTES, "cpu_percent")
ALWAYS = ("resident_bytes", "cpu_percent")


@dataclass(frozen=True)
class _Row:
    """A sample: for each of the fields that any rank has, a number for each rank; nan where it has none."""

    at: float
    ranks: tuple[int, ...]
    fields: tuple[str, ...]
    numbers: array[float]
    seen_at: float | None
    seen: list[machine.RanksSeen]
    number: int  # of the samples that were added; of merged ones the last

    @property
    def size(self) -> int:
        return len(self.numbers) + SEEN_NUMBERS * len(self.seen)

    def values(self, field: str) -> Sequence[float]:
        """Return the numbers of a field, in the order of the ranks."""
        if field not in self.fields:
            return [math.nan] * len(self.ranks)
        start = self.fields.index(field) * len(self.ranks)
        return self.numbers[start : start + len(self.ranks)]


def seconds_ago(seconds: float) -> float:
    """Return the time so many seconds ago, by the clock that samples have."""
    return time.time() - seconds


class MemorySamples:
    """The samples of a group. Where they are too many, older ones are merged: the highest of each number is kept."""

    def __init__(self, max_numbers: int = MAX_NUMBERS) -> None:
        self.num_added = 0
        self._rows: deque[_Row] = deque()
        self._gaps: deque[machine.SampleGap] = deque(maxlen=MAX_GAPS)
        self._max_numbers = max_numbers
        self._size = 0
        self._step = 1.0  # seconds of which older samples are one

    def add(self, sample: machine.MemorySample) -> None:
        """Add a sample, and drop old ones."""
        self.num_added += 1
        row = _row_of(sample, self._rows[-1] if self._rows else None, self.num_added)
        if self._rows and row.at - self._rows[-1].at > GAP_SECONDS:
            self._gaps.append({"begin": self._rows[-1].at, "end": row.at})
        self._rows.append(row)
        self._size += row.size
        while self._rows[0].at < row.at - KEEP_SECONDS:
            self._size -= self._rows.popleft().size
        if self._size > self._max_numbers:
            self._thin()

    def after(self, at: float) -> list[machine.MemorySample]:
        """Return the samples after that time, oldest first."""
        return self._newest(lambda row: row.at > at)

    def added_after(self, number: int) -> list[machine.MemorySample]:
        """Return the samples that were added after the first so many, oldest first: a clock may be set back."""
        return self._newest(lambda row: row.number > number)

    def _newest(self, is_new: Callable[[_Row], bool]) -> list[machine.MemorySample]:
        rows = list(takewhile(is_new, reversed(self._rows)))
        return [_sample_of(row) for row in reversed(rows)]

    def last(self, seconds: float) -> list[machine.MemorySample]:
        """Return the samples of the last seconds, oldest first."""
        return self.after(seconds_ago(seconds))

    def latest(self) -> machine.MemorySample | None:
        """Return the newest sample."""
        return _sample_of(self._rows[-1]) if self._rows else None

    def page(self, since: float, limit: int) -> machine.PastSamples:
        """Return at most so many samples after that time, as columns."""
        newer = [row for row in self._rows if row.at > since]
        ends = list(accumulate(row.size for row in newer[:limit]))
        rows = newer[: max(1, bisect_right(ends, PAGE_NUMBERS))]
        ranks = sorted({rank for row in rows for rank in row.ranks})
        last = rows[-1].at if rows else since
        return {
            "times": [row.at for row in rows],
            "ranks": _columns(rows, ranks),
            "seen": [{"at": row.seen_at, "seen": row.seen} for row in rows if row.seen_at is not None],
            "gaps": [gap for gap in self._gaps if since < gap["end"] <= last],
            "devices": [],
            "more": len(newer) > len(rows),
        }

    def _thin(self) -> None:
        """Merge samples of the same seconds, except the newest quarter; of more seconds if that is not enough."""
        aim = self._max_numbers * 3 // 4
        self._merge()
        while self._size > aim and self._step < KEEP_SECONDS:
            self._step *= 2
            self._merge()
        while self._size > self._max_numbers and len(self._rows) > 1:  # ranks that come and go cannot be merged
            self._size -= self._rows.popleft().size

    def _merge(self) -> None:
        rows = list(self._rows)
        whole = len(rows) * 3 // 4
        merged: list[_Row] = []
        for row in rows[:whole]:
            if merged and self._belongs(merged[-1], row):
                merged[-1] = _merged(merged[-1], row)
            else:
                merged.append(row)
        self._rows = deque([*merged, *rows[whole:]])
        self._size = sum(row.size for row in self._rows)

    def _belongs(self, first: _Row, second: _Row) -> bool:
        is_alike = (first.ranks, first.fields) == (second.ranks, second.fields)
        return is_alike and first.at // self._step == second.at // self._step and not self._is_gap(first.at, second.at)

    def _is_gap(self, begin: float, end: float) -> bool:
        return any(gap["begin"] < end and begin < gap["end"] for gap in self._gaps)


class DeviceReadings:
    """How the server's devices were used, whenever a client asked."""

    def __init__(self) -> None:
        self._readings: deque[tuple[float, list[dict[str, Any]]]] = deque(maxlen=MAX_READINGS)

    def add(self, at: float, devices: Iterable[dict[str, Any]]) -> None:
        """Keep a reading; one without devices is not kept."""
        kept = ("accelerator", "index", "utilization_percent", "power_watts")
        if rows := [{name: device.get(name) for name in kept} for device in devices]:
            self._readings.append((at, rows))

    def between(self, page: machine.PastSamples) -> list[machine.DeviceSamples]:
        """Return each device's readings within the page's time range."""
        if not page["times"]:
            return []
        first, last = page["times"][0], page["times"][-1] if page["more"] else math.inf
        found: dict[tuple[str, int], machine.DeviceSamples] = {}
        for at, rows in self._readings:
            if not first <= at <= last:
                continue
            for row in rows:
                name, index = row["accelerator"], row["index"]
                new = {"accelerator": name, "index": index, "times": [], "utilization_percent": [], "power_watts": []}
                entry = found.setdefault((name, index), cast("machine.DeviceSamples", new))
                entry["times"].append(at)
                entry["utilization_percent"].append(row["utilization_percent"])
                entry["power_watts"].append(row["power_watts"])
        return list(found.values())


def _row_of(sample: machine.MemorySample, before: _Row | None, number: int) -> _Row:
    """Pack a sample; the names of ranks and fields are shared with the one before, if they are the same."""
    entries = [cast("dict[str, Any]", entry) for entry in sample["ranks"]]
    ranks = tuple(entry["rank"] for entry in entries)
    fields = tuple(name for name in FIELDS if any(entry.get(name) is not None for entry in entries))
    numbers = array("d", (_number(entry.get(name)) for name in fields for entry in entries))
    if before is not None and (ranks, fields) == (before.ranks, before.fields):
        ranks, fields = before.ranks, before.fields
    return _Row(sample["at"], ranks, fields, numbers, sample.get("seen_at"), sample.get("seen", []), number)


def _number(value: float | None) -> float:
    return math.nan if value is None or not math.isfinite(value) else float(value)


def _sample_of(row: _Row) -> machine.MemorySample:
    columns = {name: row.values(name) for name in FIELDS}
    ranks = [
        {"rank": rank, **{name: _value(name, column[i], name in ALWAYS) for name, column in columns.items()}}
        for i, rank in enumerate(row.ranks)
    ]
    sample: dict[str, Any] = {"at": row.at, "ranks": ranks}
    if row.seen_at is not None:
        sample.update(seen_at=row.seen_at, seen=row.seen)
    return cast("machine.MemorySample", sample)


def _value(name: str, number: float, is_always: bool = False) -> float | None:
    if math.isnan(number):
        return 0 if is_always else None
    return number if name == "cpu_percent" else int(number)


def _columns(rows: Sequence[_Row], ranks: Sequence[int]) -> list[machine.RankSamples]:
    known = {name for row in rows for name in row.fields}
    found: dict[int, dict[str, Any]] = {
        rank: {"rank": rank, **{name: [] if name in known or name in ALWAYS else None for name in FIELDS}}
        for rank in ranks
    }
    for name in FIELDS:
        if name not in known and name not in ALWAYS:
            continue
        for row in rows:
            by_rank = dict(zip(row.ranks, row.values(name), strict=True))
            for rank in ranks:
                found[rank][name].append(_value(name, by_rank.get(rank, math.nan)))
    return cast("list[machine.RankSamples]", list(found.values()))


def _merged(first: _Row, second: _Row) -> _Row:
    pick: Callable[[float, float], float] = lambda a, b: b if math.isnan(a) or b > a else a  # noqa: E731
    numbers = array("d", map(pick, first.numbers, second.numbers))
    seen_from = second if second.seen_at is not None else first
    return replace(second, numbers=numbers, seen_at=seen_from.seen_at, seen=seen_from.seen)
