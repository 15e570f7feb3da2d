"""Records of many ranks in one: what a thousand ranks say in the same moment is a few records, not thousands.

A wide record has `ranks` in place of `rank`. Its payload is what each of them said. If they said different things, it
is their payloads one after the other, in the order of the ranks, and `sizes` has the lengths. `seconds` is a list, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from math import isfinite
from typing import Any

from jupyter_dist.protocol.ranks import expand_ranks, format_ranks
from jupyter_dist.transport.frames import Header

OF_RANKS = frozenset(
    {
        "stream",
        "display_data",
        "update_display_data",
        "execute_result",
        "error",
        "clear_output",
        "profile",
        "rank_end",
    }
)
MAX_PART_BYTES = 4096  # longer payloads share a record only if they are the same
MAX_SHARED_BYTES = 1 << 20  # and longer ones never: a forged record must not cost as much for each rank of a group

Said = tuple[Header, bytes]


def is_wide(header: Header) -> bool:
    """Whether it is a record of many ranks."""
    return header.get("ranks") is not None and header["kind"] in OF_RANKS


def each_rank(header: Header, payload: bytes) -> Iterator[Said]:
    """Yield the record of each of its ranks, all with its number; a record that is not wide itself."""
    if not is_wide(header):
        yield header, payload
        return
    if len(payload) > MAX_SHARED_BYTES and "sizes" not in header:
        payload = b""
    ranks = expand_ranks(header["ranks"])
    common = {name: value for name, value in header.items() if name not in ("ranks", "sizes", "seconds")}
    for rank, part, seconds in zip(ranks, _parts(header, payload, len(ranks)), _seconds(header, ranks), strict=False):
        yield {**common, "rank": rank, **seconds}, part


def of_rank(header: Header, payload: bytes, rank: int) -> Said:
    """Return the record of one of its ranks; a record that is not wide itself."""
    if not is_wide(header):
        return header, payload
    index = expand_ranks(header["ranks"]).index(rank)
    return next(islice(each_rank(header, payload), index, None))


def _parts(header: Header, payload: bytes, number: int) -> Iterator[bytes]:
    if "sizes" not in header:
        yield from (payload for _ in range(number))
        return
    start = 0
    for size in header["sizes"]:
        yield payload[start : start + size]
        start += size


def _seconds(header: Header, ranks: Sequence[int]) -> Iterator[Header]:
    if "seconds" not in header:
        yield from ({} for _ in ranks)
    else:
        yield from ({"seconds": seconds} for seconds in header["seconds"])


class _Waiting:
    """What some ranks said, and is alike but for its payload and its seconds."""

    def __init__(self, kind: str, fields: Header) -> None:
        self.kind = kind
        self._fields = fields
        self._said: dict[int, tuple[bytes, Any]] = {}  # payload and seconds, by rank
        self._are_equal = True

    def takes(self, payload: bytes, fields: Header) -> bool:
        """Whether another record of its sort may be added."""
        seconds = fields.get("seconds")
        if type(seconds) is not type(self._fields.get("seconds")) or not isfinite(seconds or 0.0):
            return False
        first = next(iter(self._said.values()))[0]
        if self._are_equal and payload == first:
            return len(payload) <= MAX_SHARED_BYTES
        return max(len(payload), len(first)) <= MAX_PART_BYTES

    def add(self, rank: int, payload: bytes, seconds: Any) -> None:
        """Add what a rank said."""
        self._are_equal = self._are_equal and (not self._said or payload == next(iter(self._said.values()))[0])
        self._said[rank] = payload, seconds

    def record(self) -> tuple[str, bytes, Header]:
        """Return kind, payload and fields of the record."""
        ranks = sorted(self._said)
        payloads = [self._said[rank][0] for rank in ranks]
        seconds = [self._said[rank][1] for rank in ranks]
        if len(ranks) == 1:
            own = {"seconds": seconds[0]} if "seconds" in self._fields else {}
            return self.kind, payloads[0], {**self._fields, **own, "rank": ranks[0]}
        own = {"seconds": seconds} if "seconds" in self._fields else {}
        if self._are_equal:
            return self.kind, payloads[0], {**self._fields, **own, "ranks": format_ranks(ranks)}
        sizes = [len(payload) for payload in payloads]
        return self.kind, b"".join(payloads), {**self._fields, **own, "ranks": format_ranks(ranks), "sizes": sizes}


def _sort(kind: str, fields: Header) -> tuple[Any, ...]:
    return kind, fields.get("execution_id"), fields.get("name"), fields.get("status")


class Gathering:
    """Records of ranks that were said in one turn of the event loop. What one rank said stays in its order."""

    def __init__(self) -> None:
        self._waiting: list[_Waiting] = []
        self._alike: dict[tuple[Any, ...], int] = {}  # the last one of each sort
        self._last: dict[int, int] = {}  # the last one of each rank

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, rank: int, kind: str, payload: bytes, fields: Header) -> bool:
        """Add a record of a rank to one that differs in payload and seconds only; return whether there is one."""
        index = self._alike.get(_sort(kind, fields), -1)
        if index <= self._last.get(rank, -1) or not self._waiting[index].takes(payload, fields):
            return False
        self._waiting[index].add(rank, payload, fields.get("seconds"))
        self._last[rank] = index
        return True

    def begin(self, rank: int, kind: str, payload: bytes, fields: Header) -> None:
        """Add a record of a rank to which others can be added; `fields` are all but its rank."""
        index = self._alike[_sort(kind, fields)] = self._last[rank] = len(self._waiting)
        self._waiting.append(_Waiting(kind, fields))
        self._waiting[index].add(rank, payload, fields.get("seconds"))

    def take(self) -> list[tuple[str, bytes, Header]]:
        """Return kind, payload and fields of each record, in order, and start with none."""
        waiting, self._waiting = self._waiting, []
        self._alike.clear()
        self._last.clear()
        return [one.record() for one in waiting]
