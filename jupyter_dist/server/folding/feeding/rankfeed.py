"""Feeds outputs of a rank, or of ranks with equal output, to the fold: decoding, lines, displays, and limits."""

from __future__ import annotations

import codecs
import json
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any

from jupyter_dist.protocol.models import models
from jupyter_dist.server.folding.fold import ID_RANKS, STREAM_KINDS, Fold, lowest
from jupyter_dist.server.folding.rows import Row

from .lines import LineBuffer

HEAD_BYTES = 256 * 1024
HEAD_LINES = 2000
TAIL_BYTES = 64 * 1024
TAIL_LINES = 200
MAX_RICH_BYTES = 4 << 20
RICH_DISCOUNT = 16  # rich output counts as this many times less text, so that one figure does not fill the head
MAX_FOLD_VARIANTS = 6_000  # for all ranks together; after that everything goes to the tails
MAX_FOLD_CHARS = 16 << 20
_new_decoder = codecs.getincrementaldecoder("utf-8")


@dataclass(slots=True)
class Unit:
    """One output of a rank, as the fold compares it."""

    kind: str
    text: str
    id: int
    size: int
    display_id: str | None = None


@dataclass(slots=True)
class Limits:
    """The limits of one rank's tail: many ranks share the space that a few would have."""

    tail_bytes: int
    tail_lines: int

    @classmethod
    def for_ranks(cls, num_ranks: int) -> Limits:
        """Full tails up to 16 ranks."""
        share = 16 / max(16, num_ranks)
        return cls(max(4096, int(TAIL_BYTES * share)), max(20, int(TAIL_LINES * share)))


@dataclass(slots=True)
class Elided:
    """How much output of a rank is not in the view."""

    bytes: int = 0
    lines: int = 0


@dataclass(slots=True)
class Decoders:
    """Decoders for UTF-8 that may be split anywhere, per stream."""

    by_name: dict[str, codecs.IncrementalDecoder | None] = field(default_factory=dict)  # None: no character was split

    def decode(self, name: str, data: bytes, *, final: bool = False) -> str:
        """Return the complete text."""
        decoder = self.by_name.setdefault(name, None)
        if decoder is None:
            try:
                return data.decode()  # of many ranks, making a decoder for each takes longer than all else
            except UnicodeDecodeError:
                decoder = self.by_name[name] = _new_decoder("replace")
        return decoder.decode(data, final)

    @property
    def hold_nothing(self) -> bool:
        """Whether no stream ends in the middle of a character."""
        return not any(decoder is not None and decoder.getstate()[0] for decoder in self.by_name.values())

    def copy(self) -> Decoders:
        """Return copies of the decoders, in the same state."""
        copied = Decoders()
        for name, decoder in self.by_name.items():
            copied.by_name[name] = None
            if decoder is not None:
                own = copied.by_name[name] = _new_decoder("replace")
                own.setstate(decoder.getstate())
        return copied


class RankFeed:
    """Feeds outputs of ranks with equal output to the fold until its head is full, then keeps only the last outputs.

    `mask` has a bit for each of the ranks.
    """

    def __init__(self, mask: int, fold: Fold, limits: Limits) -> None:
        self.mask = mask
        self.rank = lowest(mask)  # which gives outputs their ids
        self.elided = Elided()
        self.head_full = False
        self.tail: deque[Unit] = deque()
        self._fold = fold
        self._limits = limits
        self._decoders = Decoders()
        self._line = LineBuffer()
        self._kind = ""  # stream of the unfinished line
        self._ordinal = 0
        self._head_bytes = 0
        self._head_lines = 0
        self._tail_bytes = 0
        self._head: list[tuple[Row, Unit]] = []
        self._clear_pending = False

    @property
    def is_settled(self) -> bool:
        """Whether no line, and no character, is unfinished."""
        return not (self._line.text or self._line.held) and self._decoders.hold_nothing

    def split(self, mask: int) -> RankFeed:
        """Remove some ranks, but not all, from the feed; return their feed, which has been fed the same."""
        new = RankFeed(mask, self._fold, self._limits)
        before, self.mask = self.rank, self.mask ^ mask
        self.rank = lowest(self.mask)
        if self._kind or self._ordinal or self._clear_pending or self._decoders.by_name:  # was fed
            self._fold.split(self.mask | mask, mask)
            new._take_over(self)
            for feed in (self, new):
                feed._renumber(feed.rank - before)
        return new

    def _take_over(self, other: RankFeed) -> None:
        self.elided = Elided(other.elided.bytes, other.elided.lines)
        self.head_full, self._clear_pending = other.head_full, other._clear_pending
        self._decoders, self._line = other._decoders.copy(), other._line.copy()
        self._kind, self._ordinal = other._kind, other._ordinal
        self._head_bytes, self._head_lines, self._tail_bytes = other._head_bytes, other._head_lines, other._tail_bytes
        self._head = [(row, replace(unit)) for row, unit in other._head]
        self.tail = deque(map(replace, other.tail))

    def _renumber(self, difference: int) -> None:
        """Give the outputs the ids that they would have had from the feed's first rank."""
        if difference:
            for unit in (*(unit for _, unit in self._head), *self.tail):
                unit.id += difference

    def stream(self, name: str, data: bytes, seq: int) -> None:
        """Add text of a stream."""
        text = self._decoders.decode(name, data)
        if not text:
            return
        self._begin(name, seq)
        if self.head_full:
            text = self._skip(text)
        for line in self._line.feed(text):
            self._append(name, line, len(line.encode("utf-8", "replace")), seq)
        self._show_unfinished(seq)

    def output(self, kind: str, output: models.Output, display_id: str | None, seq: int) -> None:
        """Add a rich output or an error."""
        self._begin(kind, seq)
        text, size = _rich_text(output)
        self._append(kind, text, size, seq, display_id)

    def update(self, display_id: str, data: dict[str, Any], seq: int) -> None:
        """Replace every output of this execution with this display id."""
        for row, unit in self._head:
            if unit.display_id == display_id:
                unit.text = _rich_text({**json.loads(unit.text), **data})[0]
                self._fold.replace(row, self.mask, unit.text, unit.id, seq)
        for unit in self.tail:
            if unit.display_id == display_id:
                unit.text = _rich_text({**json.loads(unit.text), **data})[0]

    def clear(self, wait: bool, seq: int) -> None:
        """Clear the output, now or when the next output arrives."""
        self._clear_pending = wait
        if wait:
            return
        self._fold.clear(self.mask, [row for row, _ in self._head], seq)
        self._head.clear()
        self.tail.clear()
        self._line.reset()
        self._kind = ""
        self.elided = Elided()
        self.head_full = False
        self._head_bytes = self._head_lines = self._tail_bytes = 0

    def settle(self, seq: int) -> None:
        """Handle the end of the cell on this rank: its unfinished line becomes final."""
        for name in list(self._decoders.by_name):
            rest = self._decoders.decode(name, b"", final=True)
            if rest:
                self._begin(name, seq)
                self._line.feed(rest)
        self._decoders.by_name.clear()  # the cell ends after its ranks, which settles the feed again
        self._settle_line(seq)

    def tail_units(self) -> list[Unit]:
        """Return the outputs after the elided part, including the unfinished line."""
        units = list(self.tail)
        if self.head_full and self._line.text:
            units.append(Unit(self._kind, self._line.text, self._next_id(), 0))
        return units

    def _begin(self, kind: str, seq: int) -> None:
        if self._clear_pending:
            self.clear(False, seq)
        if kind != self._kind:
            self._settle_line(seq)
            self._kind = kind

    def _settle_line(self, seq: int) -> None:
        text = self._line.text + self._line.held
        self._line.reset()
        if text:
            self._append(self._kind, text, len(text.encode("utf-8", "replace")), seq)

    def _show_unfinished(self, seq: int) -> None:
        text = "" if self.head_full else self._line.text
        self._fold.show_provisional(self.mask, self._kind, text, self._next_id(), seq)

    def _next_id(self) -> int:
        return (self._ordinal + 1) * ID_RANKS + self.rank

    def _append(self, kind: str, text: str, size: int, seq: int, display_id: str | None = None) -> None:
        unit = Unit(kind, text, self._next_id(), size, display_id)
        self._ordinal += 1
        if not self.head_full:
            row = self._fold.append(self.mask, kind, text, unit.id, seq)
            self._head.append((row, unit))
            self._head_bytes += _weight(unit)
            self._head_lines += 1
            self.head_full = (
                self._head_bytes >= HEAD_BYTES
                or self._head_lines >= HEAD_LINES
                or self._fold.num_variants >= MAX_FOLD_VARIANTS
                or self._fold.num_chars >= MAX_FOLD_CHARS
            )
            return
        self.tail.append(unit)
        self._tail_bytes += _weight(unit)
        while len(self.tail) > 1 and (
            self._tail_bytes > self._limits.tail_bytes or len(self.tail) > self._limits.tail_lines
        ):
            self._elide(self.tail.popleft())

    def _skip(self, text: str) -> str:
        """Elide at once what does not fit in the tail; return the rest."""
        skipped, rest = self._line.skip(text, self._limits.tail_lines)
        if skipped:
            while self.tail:
                self._elide(self.tail.popleft())
            num_lines = skipped.count("\n")
            self._ordinal += num_lines
            self.elided.lines += num_lines
            self.elided.bytes += len(skipped.encode("utf-8", "replace"))
        return rest

    def _elide(self, unit: Unit) -> None:
        self._tail_bytes -= _weight(unit)
        self.elided.bytes += unit.size
        self.elided.lines += unit.text.endswith("\n")


def _weight(unit: Unit) -> int:
    return unit.size if unit.kind in STREAM_KINDS else unit.size // RICH_DISCOUNT


def _rich_text(output: models.Output) -> tuple[str, int]:
    """Return the canonical JSON of an output (a sentence for a huge one), and its real size."""
    text = json.dumps(output, sort_keys=True, separators=(",", ":"))
    if len(text) <= MAX_RICH_BYTES:
        return text, len(text)
    types = ", ".join(sorted(output.get("data", {}))) or output["output_type"]
    sentence = f"An output of {len(text) / 1e6:.1f} MB ({types}) is too large to show here; it is in the log."
    short = {"output_type": "display_data", "data": {"text/plain": sentence}, "metadata": {}}
    return json.dumps(short, sort_keys=True, separators=(",", ":")), len(text)
