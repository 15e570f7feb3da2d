"""The parts of a fold: rows, each with its variants and their ranks."""

from __future__ import annotations


class Variant:
    """One output in a row, and the ranks that wrote it."""

    __slots__ = ("id", "mask", "text")

    def __init__(self, variant_id: int, text: str, mask: int) -> None:
        self.id = variant_id
        self.text = text
        self.mask = mask


class Row:
    """A set of units that belong together: at most one per rank, all of the same kind."""

    __slots__ = ("kind", "mask", "next", "prev", "seq", "settled", "template", "text", "variants")

    def __init__(self, kind: str, text: str) -> None:
        self.kind = kind
        self.text = text  # of the unit that created the row
        self.template: str | None = None  # of this unit, once it was compared
        self.variants: dict[str, Variant] = {}
        self.mask = 0
        self.settled = 0  # ranks whose unit is final
        self.seq = 0
        self.prev: Row | None = None
        self.next: Row | None = None

    def ordered(self) -> list[Variant]:
        """Return the variants by lowest rank."""
        variants = self.variants
        if len(variants) == 1:
            return list(variants.values())
        return sorted(variants.values(), key=lambda variant: variant.mask & -variant.mask)


def touch(row: Row, seq: int) -> None:
    """Mark as changed. Items are runs of rows, so the neighbouring items can change as well."""
    row.seq = seq
    if row.prev is not None:
        row.prev.seq = seq
    if row.next is not None:
        row.next.seq = seq
