"""The view of one execution, built from its journal records alone, so live and rebuilt views are the same."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

from jupyter_dist.journal.records.wide import each_payload, each_rank
from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.ranks import RankSet

from .content import DamagedContentError, read_content
from .feeding.feeds import Feeds
from .feeding.rankfeed import RankFeed
from .fold import Fold, lowest
from .ofparts import MAKERS, made_output
from .rows import Row
from .snapshots import EMPTY, Piece, Snapshot, build_snapshot

_ELIDED_IDS = 1 << 46

Ranks = Sequence[int]


class View:
    """Follows the records of one execution; `snapshot` returns the items that clients show."""

    def __init__(self, execution_id: str, ranks: RankSet) -> None:
        self.execution_id = execution_id
        self.seq = 0  # seq of the last record fed
        self.began = False
        self.ended = False
        self._fold = Fold()
        self._feeds = Feeds(ranks, self._fold)
        self._of_parts: dict[str, dict[int, bytes]] = {}  # by kind of output, by rank
        self._snapshot = EMPTY
        self._tail_seq = 0

    def feed(self, record: dict[str, Any], payload: bytes) -> None:
        """Feed the next record; known ones are ignored."""
        seq = int(record["seq"])
        if seq <= self.seq:
            return
        self.seq = seq
        kind = record["kind"]
        if kind in _OF_FEEDS:
            for ranks, part in each_payload(record, payload):
                with contextlib.suppress(DamagedContentError):
                    _OF_FEEDS[kind](self, ranks, record, part)
        elif kind == "begin":
            self.began = True
        elif kind in MAKERS:
            contents = self._of_parts.setdefault(kind, {})
            contents.update({said["rank"]: part for said, part in each_rank(record, payload)})
        elif kind == "end":
            self._end()

    def close(self) -> None:
        """Settle the view: all records have been fed, and some executions have no record of their end. Idempotent."""
        if not self.ended:
            self._end()

    def snapshot(self) -> Snapshot:
        """Return the current items; the same object until the next record."""
        if self._snapshot.seq != self.seq:
            self._snapshot = build_snapshot(self.seq, self._pieces(), self._snapshot)
        return self._snapshot

    def text_bytes(self) -> int:
        """Return roughly how much memory the view takes."""
        return self._fold.num_chars + 300 * self._fold.num_variants

    # -- records --

    def _stream(self, ranks: Ranks, record: dict[str, Any], payload: bytes) -> None:
        for feed in self._feeds.of(ranks):
            feed.stream(record["name"], payload, self.seq)
            self._note_tail(feed)

    def _rich(self, ranks: Ranks, record: dict[str, Any], payload: bytes) -> None:
        content = read_content(payload)
        output = rich_output(record["kind"], content)
        for feed in self._feeds.of(ranks):
            feed.output(record["kind"], output, content["display_id"], self.seq)
            self._note_tail(feed)

    def _update(self, ranks: Ranks, record: dict[str, Any], payload: bytes) -> None:
        content = read_content(payload)
        if content["display_id"] is not None:
            for feed in self._feeds.of(ranks):
                feed.update(content["display_id"], {"data": content["data"], "metadata": _marked(content)}, self.seq)
                self._note_tail(feed)

    def _clear(self, ranks: Ranks, record: dict[str, Any], payload: bytes) -> None:
        wait = read_content(payload)["wait"]
        for feed in self._feeds.of(ranks):
            feed.clear(wait, self.seq)
        self._tail_seq = self.seq

    def _rank_end(self, ranks: Ranks, record: dict[str, Any], payload: bytes) -> None:
        for feed in self._feeds.unsettled(ranks):
            feed.settle(self.seq)
        for feed in self._feeds.within(ranks):
            self._note_tail(feed)

    def _end(self) -> None:
        for feed in self._feeds:
            feed.settle(self.seq)
        if not self.ended:
            self._show_parts()
        self._tail_seq = self.seq
        self.ended = True

    def _show_parts(self) -> None:
        """Show the outputs of parts as outputs of each rank: equal ones are shown once."""
        while self._of_parts:
            kind, contents = self._of_parts.popitem()
            output = made_output(kind, self.execution_id, contents, self._feeds.ranks())
            if output is not None:
                for feed in self._feeds:
                    feed.output("display_data", output, None, self.seq)

    def _note_tail(self, feed: RankFeed) -> None:
        if feed.head_full:
            self._tail_seq = self.seq

    # -- rendering --

    def _pieces(self) -> Iterator[Piece]:
        for row in self._fold.rows():
            yield from _row_pieces(row, row.seq)
        feeds = [feed for feed in self._feeds if feed.head_full]
        if feeds:
            yield from self._elided_pieces(feeds)
            for row in _folded_tails(feeds).rows():
                yield from _row_pieces(row, self._tail_seq)

    def _elided_pieces(self, feeds: list[RankFeed]) -> Iterator[Piece]:
        """Return a piece for each amount of elided output, with all ranks that lack that amount."""
        masks: dict[tuple[int, int], int] = {}
        for feed in feeds:
            amount = (feed.elided.bytes, feed.elided.lines)
            if any(amount):
                masks[amount] = masks.get(amount, 0) | feed.mask
        for (size, lines), mask in masks.items():
            text = json.dumps({"bytes": size, "lines": lines})
            yield Piece(_ELIDED_IDS + lowest(mask), self._tail_seq, mask, "elided", text)


def rich_output(kind: str, content: dict[str, Any]) -> models.Output:
    """Return the nbformat output for the content that `read_content` returned."""
    names: tuple[str, ...] = ("ename", "evalue", "traceback") if kind == "error" else ("data", "metadata")
    if kind == "execute_result":
        names = (*names, "execution_count")
    output: models.Output = {"output_type": kind, **{name: content[name] for name in names}}
    if kind == "display_data" and content.get("display_id") is not None:
        output["metadata"] = _marked(content)
    return output


def _marked(content: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata of a display that later cells may update: clients follow its execution after the end."""
    return {**content["metadata"], models.METADATA_KEY: {"updates": True}}


def _row_pieces(row: Row, seq: int) -> Iterator[Piece]:
    for variant in row.ordered():
        yield Piece(variant.id, seq, variant.mask, row.kind, variant.text)


def _folded_tails(feeds: list[RankFeed]) -> Fold:
    """Fold the tails for each snapshot: they lose their first line with every new one, so feeding stays cheap."""
    fold = Fold()
    for feed in feeds:
        for unit in feed.tail_units():
            fold.append(feed.mask, unit.kind, unit.text, unit.id, 0)
    return fold


_OF_FEEDS = {
    "stream": View._stream,
    "display_data": View._rich,
    "execute_result": View._rich,
    "error": View._rich,
    "update_display_data": View._update,
    "clear_output": View._clear,
    "rank_end": View._rank_end,
}
