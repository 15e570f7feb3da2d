"""The content of a view at one moment, and the difference between two moments (docs/api.md, View)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypedDict, cast

from jupyter_dist.protocol.models import models

from .fold import STREAM_KINDS


@dataclass(frozen=True, slots=True)
class Piece:
    """One variant of one row, before neighbours are joined into items."""

    id: int
    seq: int
    mask: int
    kind: str  # stdout, stderr, elided, or an output_type
    text: str  # text of a stream; JSON of anything else


@dataclass(frozen=True, slots=True)
class Item:
    """An output with its set of ranks, or a note of what is left out."""

    id: int
    seq: int
    ranks: str
    kind: str
    text: str

    def content(self) -> dict[str, Any]:
        """Return either `output` or `elided`."""
        if self.kind in STREAM_KINDS:
            return {"output": {"output_type": "stream", "name": self.kind, "text": self.text}}
        return {"elided" if self.kind == "elided" else "output": json.loads(self.text)}

    def to_dict(self) -> models.ViewItem:
        """Return the item of docs/api.md."""
        return cast(models.ViewItem, {"id": self.id, "seq": self.seq, "ranks": self.ranks, **self.content()})

    def same_content(self, other: Item) -> bool:
        """Whether a client that has `other` needs no update."""
        return self is other or (self.ranks == other.ranks and self.kind == other.kind and self.text == other.text)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All items of a view, in order. Immutable, because the server keeps the snapshot that each client was sent."""

    seq: int
    items: tuple[Item, ...]

    def to_list(self) -> list[models.ViewItem]:
        """Return the items of docs/api.md."""
        return [item.to_dict() for item in self.items]


class Difference(TypedDict):
    """The fields of a `view` message that are about its items."""

    since: int
    seq: int
    items: list[models.ViewChange]
    removed: list[int]


EMPTY = Snapshot(0, ())


def mask_text(mask: int) -> str:
    """Return the canonical expression of a bit mask's ranks, in time that depends on how many ranges they are."""
    ranges: list[str] = []
    while mask:
        first = (mask & -mask).bit_length() - 1
        shifted = mask >> first
        length = (~shifted & (shifted + 1)).bit_length() - 1
        ranges.append(str(first) if length == 1 else f"{first}-{first + length - 1}")
        mask = shifted >> length << (first + length)
    return ",".join(ranges)


def build_snapshot(seq: int, pieces: Iterable[Piece], previous: Snapshot) -> Snapshot:
    """Join adjacent pieces of the same stream and ranks, and reuse unchanged items of `previous`."""
    known = {item.id: item for item in previous.items}
    expressions: dict[int, str] = {}
    items: list[Item] = []
    run: list[Piece] = []
    for piece in pieces:
        if run and not _joins(run[-1], piece):
            items.append(_item(run, known, expressions))
            run = []
        run.append(piece)
    if run:
        items.append(_item(run, known, expressions))
    return Snapshot(seq, tuple(items))


def difference(old: Snapshot, new: Snapshot) -> Difference:
    """Return the changes that turn `old` into `new` (removals first, then items in order)."""
    ids = {item.id for item in new.items}
    had = {item.id: item for item in old.items}
    surviving = [item.id for item in old.items if item.id in ids]
    position = 0
    moved: set[int] = set()
    changes: list[models.ViewChange] = []
    after: int | None = None
    for item in new.items:
        while position < len(surviving) and surviving[position] in moved:
            position += 1
        in_place = position < len(surviving) and surviving[position] == item.id
        if in_place:
            position += 1
        elif item.id in had:
            moved.add(item.id)
        if not in_place or not item.same_content(had[item.id]):
            changes.append(_change(item, had.get(item.id), after))
        after = item.id
    removed = [item.id for item in old.items if item.id not in ids]
    return {"since": old.seq, "seq": new.seq, "items": changes, "removed": removed}


def _joins(left: Piece, right: Piece) -> bool:
    return left.mask == right.mask and left.kind == right.kind and left.kind in STREAM_KINDS


def _item(run: list[Piece], known: dict[int, Item], expressions: dict[int, str]) -> Item:
    first = run[0]
    seq, size = first.seq, len(first.text)
    if len(run) > 1:
        seq, size = max(piece.seq for piece in run), sum(len(piece.text) for piece in run)
    ranks = expressions.get(first.mask)
    if ranks is None:
        ranks = expressions[first.mask] = mask_text(first.mask)
    old = known.get(first.id)
    if (
        old is not None
        and (old.seq, old.ranks, old.kind) == (seq, ranks, first.kind)
        and old.kind != "elided"
        # Its last record may have been split since, between the first lines and the last ones.
        and len(old.text) == size
    ):
        return old
    text = first.text if len(run) == 1 else "".join(piece.text for piece in run)
    return Item(first.id, seq, ranks, first.kind, text)


def _change(item: Item, old: Item | None, after: int | None) -> models.ViewChange:
    change: models.ViewChange = {"id": item.id, "seq": item.seq, "ranks": item.ranks, "after": after}
    if (
        old is not None
        and old.ranks == item.ranks
        and old.kind == item.kind
        and item.kind in STREAM_KINDS
        and item.text.startswith(old.text)
    ):
        return {**change, "append": item.text[len(old.text) :]}
    return cast("models.ViewChange", {**change, **item.content()})
