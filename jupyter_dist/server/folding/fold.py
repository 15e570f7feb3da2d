"""Folds the output of ranks into rows: equal output appears once, with its exact set of ranks (pure, no I/O).

A unit is a line of a stream, or one rich output as canonical JSON. Each rank has a cursor: the row of its last
unit. Its next unit goes to a row after the cursor: to a row with an equal unit, else with a similar one (a variant
of the same line with other numbers), else a new row. So the units of every rank keep their order, and no output is
lost, however the ranks interleave. Sets of ranks are bit masks, and ranks with equal output are placed together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .rows import Row, Variant, touch

STREAM_KINDS = frozenset({"stdout", "stderr"})

EQUAL_WINDOW = 64  # rows searched for an equal unit
SIMILAR_WINDOW = 8  # rows searched for a similar one
BEYOND_SIMILAR = 4  # an equal unit this far after a similar row is a coincidence
BACK_WINDOW = 16

# A unit of time may change with the number before it.
_NUMBERS = re.compile(
    r"(?:(?<=\d)\s?(?:[num\u00b5\u03bc]?s|min|h)\b|\d[eE][-+]?\d|nan|inf|[\d\u2580-\u259f#=>.:+\-\s])+"
)
_SIGNIFICANT = re.compile(r"\w{2}")

# Ids are (ordinal, rank) of the unit that created the variant, so live and rebuilt views have the same ids.
ID_RANKS = 4096
_SPARE_IDS = 1 << 45


class Fold:
    """The rows of a view, and the position of each rank in them."""

    def __init__(self) -> None:
        self._start = Row("", "")
        # By the lowest bit of ranks that are placed together.
        self._cursors: dict[int, Row] = {}  # row of the last settled unit
        self._provisional: dict[int, Row] = {}
        self._together: dict[int, int] = {}  # their mask, if they are several
        self._ids: set[int] = set()
        self._spare_id = _SPARE_IDS
        self.num_variants = 0
        self.num_chars = 0

    def rows(self) -> Iterator[Row]:
        """Yield the rows from first to last."""
        row = self._start.next
        while row is not None:
            yield row
            row = row.next

    def append(self, mask: int, kind: str, text: str, unit_id: int, seq: int) -> Row:
        """Place the next unit of these ranks, in place of a provisional one. Return the row."""
        key = self._key(mask)
        if key in self._provisional:
            self._lift_provisional(mask, seq)
        cursor = self._cursors.get(key, self._start)
        row = cursor.next
        if row is None or row.kind != kind or text not in row.variants:
            row = self._row_for(key, kind, text, cursor, settled=True, seq=seq)
        self._join(row, mask, text, unit_id, seq)
        row.settled |= mask
        self._cursors[key] = row
        return row

    def show_provisional(self, mask: int, kind: str, text: str, unit_id: int, seq: int) -> None:
        """Place the ranks' unfinished line; it does not move the cursor, and is removed when it is replaced."""
        key = self._key(mask)
        if key in self._provisional:
            self._lift_provisional(mask, seq)
        if text:
            cursor = self._cursors.get(key, self._start)
            row = self._row_for(key, kind, text, cursor, settled=False, seq=seq)
            self._join(row, mask, text, unit_id, seq)
            self._provisional[key] = row

    def replace(self, row: Row, mask: int, text: str, unit_id: int, seq: int) -> None:
        """Replace the ranks' unit in a row (a display was updated)."""
        self._leave(row, mask)
        self._join(row, mask, text, unit_id, seq)
        row.settled |= mask

    def clear(self, mask: int, rows: list[Row], seq: int) -> None:
        """Remove all units of the ranks, which are in `rows`."""
        key = self._key(mask)
        if key in self._provisional:
            self._lift_provisional(mask, seq)
        self._cursors.pop(key, None)
        for row in rows:
            self._leave(row, mask)
            self._drop_if_empty(row, seq)

    def split(self, mask: int, part: int) -> None:
        """Place some of the ranks that were placed together by themselves from now on."""
        key = self._key(mask)
        for places in (self._cursors, self._provisional):
            if (row := places.pop(key, None)) is not None:
                for some in (part, mask ^ part):
                    places[some & -some] = row
        del self._together[key]
        for some in (part, mask ^ part):
            self._key(some)

    def _key(self, mask: int) -> int:
        key = mask & -mask
        if key != mask:
            self._together[key] = mask
        return key

    # -- finding a row --

    def _row_for(  # noqa: PLR0913 - all of a unit
        self, key: int, kind: str, text: str, cursor: Row, *, settled: bool, seq: int
    ) -> Row:
        found = _find(cursor, kind, text, settled=settled)
        if found is not None and text in found.variants:
            return found
        if settled and cursor is not self._start:
            behind = self._find_movable(cursor, kind, text)
            if behind is not None:
                self._unlink(behind, seq)
                self._link(behind, cursor, seq)
                return behind
        if found is not None:
            return found
        row = Row(kind, text)
        self._link(row, self._insertion_point(cursor, key), seq)
        return row

    def _find_movable(self, cursor: Row, kind: str, text: str) -> Row | None:
        """Find an equal row shortly before the cursor that can move after it, because its ranks wrote nothing since."""
        row: Row | None = cursor
        between = 0
        for _ in range(BACK_WINDOW):
            if row is None or row is self._start:
                return None
            if row.kind == kind and text in row.variants and not row.mask & between and row is not cursor:
                return row
            between |= row.mask
            row = row.prev
        return None

    def _insertion_point(self, cursor: Row, key: int) -> Row:
        """Return the place after the newest units of lower ranks, so that differing ranks appear in order."""
        point = cursor
        row = point.next
        while row is not None and row.mask < key and self._is_newest(row):
            point, row = row, row.next
        return point

    def _is_newest(self, row: Row) -> bool:
        mask = row.mask
        while mask:
            key = mask & -mask
            if self._provisional.get(key, self._cursors.get(key)) is not row:
                return False
            mask ^= self._together.get(key, key)
        return True

    # -- changing rows --

    def _join(self, row: Row, mask: int, text: str, unit_id: int, seq: int) -> None:
        variant = row.variants.get(text)
        if variant is None:
            row.variants[text] = Variant(self._new_id(unit_id), text, mask)
            self.num_variants += 1
            self.num_chars += len(text)
        else:
            variant.mask |= mask
        row.mask |= mask
        touch(row, seq)

    def _new_id(self, unit_id: int) -> int:
        # The id is taken if the rank's unit changed while others still have the first one.
        if unit_id in self._ids:
            self._spare_id += 1
            unit_id = self._spare_id
        self._ids.add(unit_id)
        return unit_id

    def _leave(self, row: Row, mask: int) -> None:
        variant = next(variant for variant in row.variants.values() if variant.mask & mask)
        variant.mask ^= mask
        row.mask ^= mask
        row.settled &= ~mask
        if not variant.mask:
            del row.variants[variant.text]
            self._ids.discard(variant.id)
            self.num_variants -= 1
            self.num_chars -= len(variant.text)

    def _lift_provisional(self, mask: int, seq: int) -> None:
        row = self._provisional.pop(mask & -mask)
        self._leave(row, mask)
        self._drop_if_empty(row, seq)

    def _drop_if_empty(self, row: Row, seq: int) -> None:
        touch(row, seq)
        if not row.variants:
            self._unlink(row, seq)

    def _link(self, row: Row, after: Row, seq: int) -> None:
        row.prev, row.next = after, after.next
        if after.next is not None:
            after.next.prev = row
        after.next = row
        touch(row, seq)

    def _unlink(self, row: Row, seq: int) -> None:
        touch(row, seq)
        if row.prev is not None:
            row.prev.next = row.next
        if row.next is not None:
            row.next.prev = row.prev


def _find(cursor: Row, kind: str, text: str, *, settled: bool) -> Row | None:
    """Return the row to join: an equal one, else a similar one, else None.

    Rows that hold only unfinished lines are ignored if the unit itself is final.
    """
    similar: Row | None = None
    template = ""
    limit = EQUAL_WINDOW if kind not in STREAM_KINDS or _SIGNIFICANT.search(text) else SIMILAR_WINDOW
    distance = 0
    row = cursor.next
    while row is not None and distance < limit:
        if row.kind == kind:
            if text in row.variants:
                return row
            if similar is None and distance < SIMILAR_WINDOW and (row.settled or not settled):
                template = template or _template(kind, text)
                row.template = row.template or _template(kind, row.text)
                if template == row.template:
                    similar = row
                    limit = min(limit, distance + 1 + BEYOND_SIMILAR)
        if row.settled:
            distance += 1
        row = row.next
    return similar


def _template(kind: str, text: str) -> str:
    return _NUMBERS.sub("~", text) if kind in STREAM_KINDS else kind


def lowest(mask: int) -> int:
    """Return the lowest rank of a mask."""
    return (mask & -mask).bit_length() - 1
