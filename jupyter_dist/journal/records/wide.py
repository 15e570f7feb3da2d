"""Records of many ranks in one: a thousand ranks that print in the same moment make a few records, not thousands.

A wide record has `ranks` in place of `rank`. Its payload is the payload of each rank. If the payloads differ, they
follow each other in the order of the ranks, and `sizes` has their lengths. `seconds` is a list, too.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, repeat
from typing import Any

from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.transport.frames import Header, encode_frame

from .sound import are_times, is_sound, is_wide

MAX_PART_BYTES = 4096  # longer payloads share a record only if they are the same
MAX_SHARED_BYTES = 1 << 20  # and longer ones never: a forged record must not cost as much for each rank of a group

SingleRecord = tuple[Header, bytes]  # header and payload of a record of one rank, or of none


def ranks_of(header: Header) -> tuple[int, ...] | None:
    """Return the ranks in whose logs a record belongs; None: all."""
    if header["kind"] in ("end", "undone", "redone"):  # the rank's own rank_end records it
        return ()
    if header["kind"] == "begin" or is_wide(header):
        return RankSet.from_text(header["ranks"])
    rank = header.get("rank")
    return None if rank is None else (rank,)


def each_rank(header: Header, payload: bytes) -> Iterator[SingleRecord]:
    """Yield a record of each rank of a wide record, all with its number; any other record as it is."""
    if not is_wide(header):
        yield header, payload
        return
    ranks = RankSet.from_text(header["ranks"])
    yield from _narrow(header, payload, ranks, range(len(ranks)))


def each_payload(header: Header, payload: bytes) -> Iterator[tuple[tuple[int, ...], bytes]]:
    """Yield the payloads of a record with the ranks that have them; one payload for all ranks if they have the same."""
    if not is_wide(header):
        yield (header["rank"],), payload
        return
    ranks, sizes = RankSet.from_text(header["ranks"]), header.get("sizes")
    if sizes is None:
        yield ranks, b"" if len(payload) > MAX_SHARED_BYTES else payload
        return
    start = 0
    for rank, size in zip(ranks, sizes, strict=True):
        yield (rank,), payload[start : start + size]
        start += size


def of_rank(header: Header, payload: bytes, rank: int) -> SingleRecord:
    """Return the record of one rank of a wide record; any other record as it is."""
    if not is_wide(header):
        return header, payload
    ranks = RankSet.from_text(header["ranks"])
    return next(_narrow(header, payload, ranks, [ranks.index(rank)]))


def _narrow(header: Header, payload: bytes, ranks: tuple[int, ...], indices: Iterable[int]) -> Iterator[SingleRecord]:
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


def split(header: Header, payload: bytes) -> tuple[tuple[int, ...], list[bytes]]:
    """Return the ranks of a record of one or more ranks, and the payload of each.

    Raises:
        ValueError: the header does not fit the payload, or names no ranks.
    """
    if not is_wide(header):
        if type(header.get("rank")) is not int:
            raise ValueError("a record without ranks")
        return (header["rank"],), [payload]
    ranks, sizes = RankSet.from_text(str(header["ranks"])), header.get("sizes")
    if not ranks:
        raise ValueError("a record without ranks")
    if sizes is None:
        if len(payload) > MAX_SHARED_BYTES and len(ranks) > 1:
            raise ValueError("a payload that is too long for several ranks")
        return ranks, [payload] * len(ranks)
    if not isinstance(sizes, list) or any(type(size) is not int or size < 0 for size in sizes):
        raise ValueError("sizes that are no sizes")
    if len(sizes) != len(ranks) or sum(sizes) != len(payload):
        raise ValueError("sizes that do not fit the payload")
    return ranks, [payload[end - size : end] for size, end in zip(sizes, accumulate(sizes), strict=True)]


def split_list(header: Header, name: str, num_ranks: int) -> list[Any] | None:
    """Return a field that each rank of a record has for itself, as a list; None if they have no such field.

    Raises:
        ValueError: the list does not have an entry for each rank.
    """
    if name not in header:
        return None
    values = header[name] if is_wide(header) else [header[name]]
    if not isinstance(values, list) or len(values) != num_ranks:
        raise ValueError(f"'{name}' does not have an entry for each rank")
    return values


class _OpenRecord:
    """A record to which ranks can be added: theirs is alike but for payload and own fields, such as seconds."""

    def __init__(self, kind: str, first: bytes, fields: Header, names: tuple[str, ...]) -> None:
        self._kind = kind
        self._first = first
        self._fields = fields  # all but ranks and own fields
        self._names = names  # of the own fields
        self._parts: dict[int, tuple[Any, ...]] = {}  # payload and own fields, by rank

    def takes(self, payloads: Sequence[bytes]) -> bool:
        """Whether ranks with these payloads may be added."""
        if max(map(len, payloads)) <= MAX_PART_BYTES >= len(self._first):
            return True
        return len(self._first) <= MAX_SHARED_BYTES and all(payload == self._first for payload in payloads)

    def add(self, ranks: Sequence[int], payloads: Sequence[bytes], own: Iterable[Sequence[Any]]) -> None:
        """Add ranks, each with its payload and its own fields."""
        self._parts.update(zip(ranks, zip(payloads, *own, strict=True), strict=True))

    def finish(self) -> tuple[str, bytes, Header]:
        """Return kind, payload and fields of the record."""
        ranks = sorted(self._parts)
        payloads, *own = zip(*map(self._parts.__getitem__, ranks), strict=True)
        if len(ranks) == 1:
            single = {name: values[0] for name, values in zip(self._names, own, strict=True)}
            return self._kind, self._first, {**self._fields, **single, "rank": ranks[0]}
        fields = {**self._fields, "ranks": str(RankSet(ranks))}
        fields.update(zip(self._names, map(list, own), strict=True))
        if payloads.count(self._first) == len(payloads):
            return self._kind, self._first, fields
        return self._kind, b"".join(payloads), {**fields, "sizes": [len(payload) for payload in payloads]}


class RecordJoiner:
    """Joins the records that ranks make in one turn of the event loop; the records of each rank stay in order.

    Every agent does that, the head of a group on nodes with the records that node agents have joined. It is where an
    agent validates what ranks, or another agent, have sent.
    """

    def __init__(self) -> None:
        self._open: list[_OpenRecord] = []
        self._latest: dict[Hashable, int] = {}  # the last record with these fields
        self._latest_of: dict[int, int] = {}  # the last record of each rank

    def __bool__(self) -> bool:
        return bool(self._open)

    def has(self, rank: int) -> bool:
        """Whether there is a record of that rank."""
        return rank in self._latest_of

    def add(
        self,
        ranks: Sequence[int],
        kind: str,
        payloads: Sequence[bytes],
        fields: Header,
        own: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:
        """Add a record of ranks, each with its payload and its own fields (by name); all other fields are alike.

        Raises:
            ValueError: a field is not as readers need it.
        """
        own = own or {}
        if not are_times(own.get("seconds", ())):
            raise ValueError(f"an invalid {kind}")
        if len(ranks) > 1 and max(map(len, payloads)) > MAX_PART_BYTES:
            for index, rank in enumerate(ranks):
                one = {name: [values[index]] for name, values in own.items()}
                self.add([rank], kind, [payloads[index]], fields, one)
            return
        names = tuple(own)
        key = _key(kind, names, fields)
        index = self._latest.get(key, -1)
        if index <= max(map(self._latest_of.get, ranks, repeat(-1))) or not self._open[index].takes(payloads):
            if not is_sound({"seq": 1, "at": 0.0, "kind": kind, "rank": ranks[0], **fields}):
                raise ValueError(f"an invalid {kind}")
            index = self._latest[key] = len(self._open)
            self._open.append(_OpenRecord(kind, payloads[0], fields, names))
        self._open[index].add(ranks, payloads, own.values())
        self._latest_of.update(zip(ranks, repeat(index)))

    def take(self) -> list[tuple[str, bytes, Header]]:
        """Return kind, payload and fields of each record, in order, and start with none."""
        finished, self._open = self._open, []
        self._latest.clear()
        self._latest_of.clear()
        return [record.finish() for record in finished]


def _key(kind: str, names: tuple[str, ...], fields: Header) -> Hashable:
    """Return a key that is the same for records that can be joined."""
    key = (kind, names, *fields.items())
    try:
        hash(key)
    except TypeError:  # a field of a reply, or an invalid one
        return kind, names, encode_frame(fields)
    return key
