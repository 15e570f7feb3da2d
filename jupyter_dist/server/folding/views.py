"""The view of one execution, built from its journal records alone, so live and rebuilt views are the same."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from jupyter_dist.journal.wide import each_rank
from jupyter_dist.protocol import models

from .content import DamagedContentError, read_content
from .fold import Fold
from .profiles import Summary, compare, profile_output, read_summary
from .rankfeed import Limits, RankFeed
from .rows import Row
from .snapshots import EMPTY, Piece, Snapshot, build_snapshot

_ELIDED_IDS = 1 << 46


class View:
    """Follows the records of one execution; `snapshot` returns what clients show."""

    def __init__(self, execution_id: str, ranks: tuple[int, ...]) -> None:
        self.execution_id = execution_id
        self.seq = 0  # seq of the last record fed
        self.began = False
        self.ended = False
        self._fold = Fold()
        self._limits = Limits.for_ranks(len(ranks))
        self._feeds = {rank: RankFeed(rank, self._fold, self._limits) for rank in ranks}
        self._profiles: dict[int, Summary] = {}  # of a profiled cell, by rank
        self._snapshot = EMPTY
        self._tail_seq = 0

    def feed(self, record: dict[str, Any], payload: bytes) -> None:
        """Feed the next record; known ones are ignored."""
        seq = int(record["seq"])
        if seq <= self.seq:
            return
        self.seq = seq
        method = _METHODS.get(record["kind"])
        if method is not None:
            for said, part in each_rank(record, payload):
                with contextlib.suppress(DamagedContentError):
                    method(self, said, part)

    def snapshot(self) -> Snapshot:
        """Return the current items; the same object until the next record."""
        if self._snapshot.seq != self.seq:
            self._snapshot = build_snapshot(self.seq, self._pieces(), self._snapshot)
        return self._snapshot

    def text_bytes(self) -> int:
        """Return roughly how much memory the view takes."""
        return self._fold.num_chars + 300 * self._fold.num_variants

    # -- records --

    def _begin(self, record: dict[str, Any], payload: bytes) -> None:
        self.began = True

    def _stream(self, record: dict[str, Any], payload: bytes) -> None:
        feed = self._feed(record)
        feed.stream(record["name"], payload, self.seq)
        self._note_tail(feed)

    def _rich(self, record: dict[str, Any], payload: bytes) -> None:
        content = read_content(payload)
        feed = self._feed(record)
        feed.output(record["kind"], rich_output(record["kind"], content), content["display_id"], self.seq)
        self._note_tail(feed)

    def _update(self, record: dict[str, Any], payload: bytes) -> None:
        content = read_content(payload)
        if content["display_id"] is not None:
            feed = self._feed(record)
            feed.update(content["display_id"], {name: content[name] for name in ("data", "metadata")}, self.seq)
            self._note_tail(feed)

    def _clear(self, record: dict[str, Any], payload: bytes) -> None:
        self._feed(record).clear(read_content(payload)["wait"], self.seq)
        self._tail_seq = self.seq

    def _profile(self, record: dict[str, Any], payload: bytes) -> None:
        self._profiles[record["rank"]] = read_summary(payload)

    def _rank_end(self, record: dict[str, Any], payload: bytes) -> None:
        feed = self._feed(record)
        feed.settle(self.seq)
        self._note_tail(feed)

    def _end(self, record: dict[str, Any], payload: bytes) -> None:
        for feed in self._feeds.values():
            feed.settle(self.seq)
        if self._profiles and not self.ended:
            self._show_profile()
        self._tail_seq = self.seq
        self.ended = True

    def _show_profile(self) -> None:
        """Show what all ranks have told, as an output of each: equal ones are shown once."""
        output = profile_output(compare(self.execution_id, self._profiles, sorted(self._feeds)))
        for feed in self._feeds.values():
            feed.output("display_data", output, None, self.seq)
        self._profiles.clear()

    def _feed(self, record: dict[str, Any]) -> RankFeed:
        rank = record["rank"]
        feed = self._feeds.get(rank)
        if feed is None:
            # A thread of an earlier cell can write on a rank that is not part of this execution.
            feed = self._feeds[rank] = RankFeed(rank, self._fold, self._limits)
        return feed

    def _note_tail(self, feed: RankFeed) -> None:
        if feed.head_full:
            self._tail_seq = self.seq

    # -- rendering --

    def _pieces(self) -> Iterator[Piece]:
        for row in self._fold.rows():
            yield from _row_pieces(row, row.seq)
        feeds = [feed for _, feed in sorted(self._feeds.items()) if feed.head_full]
        if feeds:
            yield from self._elided_pieces(feeds)
            for row in _folded_tails(feeds).rows():
                yield from _row_pieces(row, self._tail_seq)

    def _elided_pieces(self, feeds: list[RankFeed]) -> Iterator[Piece]:
        """Return one piece for all ranks that lack the same amount."""
        masks: dict[tuple[int, int], int] = {}
        for feed in feeds:
            amount = (feed.elided.bytes, feed.elided.lines)
            if any(amount):
                masks[amount] = masks.get(amount, 0) | feed.bit
        for (size, lines), mask in masks.items():
            lowest = (mask & -mask).bit_length() - 1
            text = json.dumps({"bytes": size, "lines": lines})
            yield Piece(_ELIDED_IDS + lowest, self._tail_seq, mask, "elided", text)


def rich_output(kind: str, content: dict[str, Any]) -> models.Output:
    """Return the nbformat output of what `read_content` returned."""
    names: tuple[str, ...] = ("ename", "evalue", "traceback") if kind == "error" else ("data", "metadata")
    if kind == "execute_result":
        names = (*names, "execution_count")
    return {"output_type": kind, **{name: content[name] for name in names}}


def _row_pieces(row: Row, seq: int) -> Iterator[Piece]:
    for variant in row.ordered():
        yield Piece(variant.id, seq, variant.mask, row.kind, variant.text)


def _folded_tails(feeds: list[RankFeed]) -> Fold:
    """Fold the tails for each snapshot: they lose their first line with every new one, so feeding stays cheap."""
    fold = Fold()
    for feed in feeds:
        for unit in feed.tail_units():
            fold.append(feed.bit, unit.kind, unit.text, unit.id, 0)
    return fold


_METHODS = {
    "begin": View._begin,
    "stream": View._stream,
    "display_data": View._rich,
    "execute_result": View._rich,
    "error": View._rich,
    "update_display_data": View._update,
    "clear_output": View._clear,
    "profile": View._profile,
    "rank_end": View._rank_end,
    "end": View._end,
}
