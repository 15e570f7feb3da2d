"""Records of many ranks in one: what a thousand ranks say in the same moment is a few records, not thousands.

A wide record has `ranks` in place of `rank`. Its payload is what each of them said. If they said different things, it
is their payloads one after the other, in the order of the ranks, and `sizes` has the lengths. `seconds` is a list, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, repeat
from typing import Any

from jupyter_dist.protocol.ranks import expand_ranks, format_ranks
from jupyter_dist.transport.frames import Header

from .sound import is_sound, is_time, is_wide

MAX_PART_BYTES = 4096  # longer payloads share a record only if they are the same
MAX_SHARED_BYTES = 1 << 20  # and longer ones never: a forged record must not cost as much for each rank of a group

Said = tuple[Header, bytes]


def ranks_of(header: Header) -> tuple[int, ...] | None:
    """Return the ranks in whose logs a record belongs; None: all."""
    if header["kind"] == "end":  # the rank's own rank_end records it
        return ()
    if header["kind"] == "begin" or is_wide(header):
        return expand_ranks(header["ranks"])
    rank = header.get("rank")
    return None if rank is None else (rank,)


def each_rank(header: Header, payload: bytes) -> Iterator[Said]:
    """Yield the record of each of its ranks, all with its number; a record that is not wide itself."""
    if not is_wide(header):
        yield header, payload
        return
    ranks = expand_ranks(header["ranks"])
    yield from _narrow(header, payload, ranks, range(len(ranks)))


def alike(header: Header, payload: bytes) -> Iterator[tuple[tuple[int, ...], bytes]]:
    """Yield what the ranks of a record said, once for ranks that said the same. Their seconds are not part of that."""
    if not is_wide(header):
        yield (header["rank"],), payload
        return
    ranks, sizes = expand_ranks(header["ranks"]), header.get("sizes")
    if sizes is None:
        yield ranks, b"" if len(payload) > MAX_SHARED_BYTES else payload
        return
    start = 0
    for rank, size in zip(ranks, sizes, strict=True):
        yield (rank,), payload[start : start + size]
        start += size


def of_rank(header: Header, payload: bytes, rank: int) -> Said:
    """Return the record of one of its ranks; a record that is not wide itself."""
    if not is_wide(header):
        return header, payload
    ranks = expand_ranks(header["ranks"])
    return next(_narrow(header, payload, ranks, [ranks.index(rank)]))


def _narrow(header: Header, payload: bytes, ranks: tuple[int, ...], indices: Iterable[int]) -> Iterator[Said]:
    """Yield the records of the ranks at these places."""
    sizes, seconds = header.get("sizes"), header.get("seconds")
    if sizes is None and len(payload) > MAX_SHARED_BYTES:
        payload = b""
    ends = list(accumulate(sizes or ()))
    common = {name: value for name, value in header.items() if name not in ("ranks", "sizes", "seconds")}
    for index in indices:
        own = {} if seconds is None else {"seconds": seconds[index]}
        part = payload if sizes is None else payload[ends[index] - sizes[index] : ends[index]]
        yield {**common, "rank": ranks[index], **own}, part


class _Waiting:
    """What some ranks said, and is alike but for its payload and its seconds."""

    def __init__(self, kind: str, first: bytes, fields: Header, has_seconds: bool) -> None:
        self._kind = kind
        self._first = first
        self._fields = fields  # all but its ranks and its seconds
        self._has_seconds = has_seconds
        self._said: dict[int, tuple[bytes, Any]] = {}  # payload and seconds, by rank

    def takes(self, payloads: Sequence[bytes]) -> bool:
        """Whether records of its sort with these payloads may be added."""
        if max(map(len, payloads)) <= MAX_PART_BYTES >= len(self._first):
            return True
        return len(self._first) <= MAX_SHARED_BYTES and all(payload == self._first for payload in payloads)

    def add(self, ranks: Sequence[int], payloads: Sequence[bytes], seconds: Sequence[Any] | None) -> None:
        """Add what ranks said."""
        own = zip(payloads, seconds or repeat(None, len(payloads)), strict=True)
        self._said.update(zip(ranks, own, strict=True))

    def record(self) -> tuple[str, bytes, Header]:
        """Return kind, payload and fields of the record."""
        ranks = sorted(self._said)
        payloads, seconds = zip(*map(self._said.__getitem__, ranks), strict=True)
        if len(ranks) == 1:
            own = {"seconds": seconds[0]} if self._has_seconds else {}
            return self._kind, self._first, {**self._fields, **own, "rank": ranks[0]}
        fields = {**self._fields, "ranks": format_ranks(ranks)}
        if self._has_seconds:
            fields["seconds"] = list(seconds)
        if payloads.count(self._first) == len(payloads):
            return self._kind, self._first, fields
        return self._kind, b"".join(payloads), {**fields, "sizes": [len(payload) for payload in payloads]}


class Gathering:
    """Records of ranks that were said in one turn of the event loop. What one rank said stays in its order."""

    def __init__(self) -> None:
        self._waiting: list[_Waiting] = []
        self._alike: dict[tuple[Any, ...], int] = {}  # the last one of each sort
        self._last: dict[int, int] = {}  # the last one of each rank

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(
        self,
        ranks: Sequence[int],
        kind: str,
        payloads: Sequence[bytes],
        fields: Header,
        seconds: Sequence[float | None] | None = None,
    ) -> None:
        """Add what ranks said, to each its payload and, if there are any, its seconds; the fields are alike.

        Raises:
            ValueError: a field is not as readers need it.
        """
        if seconds is not None and not all(one is None or is_time(one) for one in seconds):
            raise ValueError(f"an invalid {kind}")
        if len(ranks) > 1 and max(map(len, payloads)) > MAX_PART_BYTES:
            for index, rank in enumerate(ranks):
                self.add([rank], kind, [payloads[index]], fields, seconds and [seconds[index]])
            return
        sort = kind, fields.get("execution_id"), fields.get("name"), fields.get("status"), seconds is not None
        index = self._alike.get(sort, -1)
        if index <= max(map(self._last.get, ranks, repeat(-1))) or not self._waiting[index].takes(payloads):
            if not is_sound({"seq": 1, "at": 0.0, "kind": kind, "rank": ranks[0], **fields}):
                raise ValueError(f"an invalid {kind}")
            index = self._alike[sort] = len(self._waiting)
            self._waiting.append(_Waiting(kind, payloads[0], fields, seconds is not None))
        self._waiting[index].add(ranks, payloads, seconds)
        self._last.update(zip(ranks, repeat(index)))

    def take(self) -> list[tuple[str, bytes, Header]]:
        """Return kind, payload and fields of each record, in order, and start with none."""
        waiting, self._waiting = self._waiting, []
        self._alike.clear()
        self._last.clear()
        return [one.record() for one in waiting]
