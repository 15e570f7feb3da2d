"""When this rank has begun its last collectives, by torch's flight recorders: 1.3 ms for 256 of them."""

from __future__ import annotations

import itertools
from contextlib import suppress
from typing import Any, NamedTuple

from jupyter_dist.rank.collectives.diagnosis import counters, records
from jupyter_dist.rank.guard.own import time

LATE_NS = 1_000_000_000  # after this time torch has asked the device, or has failed to
# The clock of the recorders is the wall clock, which others set, or slow down and speed up for minutes.
MAX_JUMP_NS, MAX_SLEW = 1_000_000, 0.1
_BYTES = {
    "Double": 8,
    "Long": 8,
    "ComplexFloat": 8,
    "Half": 2,
    "BFloat16": 2,
    "Short": 2,
    "Byte": 1,
    "Char": 1,
    "Bool": 1,
}


class CollectiveBegin(NamedTuple):
    """A collective as this rank has begun it, in microseconds of the monotonic clock."""

    group: str
    name: str
    num_bytes: int
    seq: int
    began: int
    took: int | None  # on a device, where torch measures it
    on_device: bool  # it runs there later than it begins here


class Arrivals:
    """Reads each collective once that was begun after a moment of the wall clock."""

    def __init__(self, since_ns: int) -> None:
        self._since_ns = since_ns
        self._newest: dict[str, int] = {}  # record number by recorder
        self._begun: dict[str, int] = {}
        self._are_held = False  # collectives that have begun, and whose durations are not known yet
        self._offset: tuple[int, int] | None = None  # of the wall clock, and when, at the last call

    def take(self, limit: int) -> list[CollectiveBegin]:
        """Return the collectives that were begun since the last call, the newest `limit` of them, oldest first."""
        now = time.monotonic_ns()
        offset = time.time_ns() - now, now
        clock, self._offset = WallClock.between(self._offset, offset), offset
        begun = counters.counts()
        if begun and begun == self._begun and not self._are_held:  # nothing new, which costs less to know than to read
            return []
        self._begun, self._are_held = begun, False
        found = []
        for recorder, entries in records.entries_by_recorder().items():
            newest = self._newest.get(recorder, -1)
            with suppress(*records.OF_OTHER_VERSIONS):
                fresh = self._fresh(entries, newest)
                found += [_arrival(entry, clock) for entry in fresh if clock is not None and self._counts(entry)]
                self._newest[recorder] = max((int(entry["record_id"]) for entry in fresh), default=newest)
        return sorted(found, key=lambda arrival: arrival.began)[-limit:]

    def _fresh(self, entries: list[dict[str, Any]], newest: int) -> list[dict[str, Any]]:
        """Return the entries after a record; where torch measures durations, none after the first unfinished entry."""
        fresh = [entry for entry in entries if int(entry["record_id"]) > newest]
        if any(entry.get("duration_ms") is not None for entry in entries):
            now = time.time_ns()
            ended = list(itertools.takewhile(lambda entry: _has_duration(entry, now), fresh))
            self._are_held = self._are_held or len(ended) < len(fresh)
            return ended
        return fresh

    def _counts(self, entry: dict[str, Any]) -> bool:
        """Whether an entry is a collective of this cell: an earlier process group had the same name and numbers."""
        return int(entry["time_created_ns"]) >= self._since_ns and not entry.get("is_p2p")


def _has_duration(entry: dict[str, Any], now: int) -> bool:
    """Whether the duration of a collective is known, or will not be: torch asks the device for it after its end."""
    ended = entry.get("time_discovered_completed_ns")
    is_late = ended is None or now - int(ended) > LATE_NS
    return bool(entry["retired"]) and (entry.get("duration_ms") is not None or is_late)


class WallClock(NamedTuple):
    """How the wall clock and the monotonic clock differ, in nanoseconds."""

    offset: int
    at: int  # of the monotonic clock
    drift: float = 0.0  # of the offset, in each nanosecond before

    @classmethod
    def between(cls, before: tuple[int, int] | None, now: tuple[int, int]) -> WallClock | None:
        """Return the clock from one moment to another, each an offset and its time; None if it was set meanwhile."""
        if before is None:
            return cls(*now)
        changed, passed = now[0] - before[0], max(1, now[1] - before[1])
        return cls(*now, changed / passed) if abs(changed) <= MAX_JUMP_NS + MAX_SLEW * passed else None

    def monotonic(self, wall: int) -> int:
        """Return the time of the monotonic clock."""
        found = wall - self.offset
        return found + round(self.drift * (self.at - found))


def _arrival(entry: dict[str, Any], clock: WallClock) -> CollectiveBegin:
    took = entry.get("duration_ms")
    sizes, dtypes = entry.get("input_sizes") or (), entry.get("input_dtypes") or ()
    return CollectiveBegin(
        group=str(entry["process_group"][0]),
        name=str(entry["profiling_name"]).rpartition(":")[2],
        num_bytes=sum(_num_bytes(size, dtype) for size, dtype in zip(sizes, dtypes, strict=False)),
        seq=int(entry["collective_seq_id"]),
        began=clock.monotonic(int(entry["time_created_ns"])) // 1000,
        took=None if took is None else int(float(took) * 1000),
        on_device=not str(entry["profiling_name"]).startswith("gloo"),
    )


def _num_bytes(size: Any, dtype: Any) -> int:
    number = _BYTES.get(str(dtype), 4)
    for length in size:
        number *= int(length)
    return number
