"""What a fold is made of: rows, and in each row what was said there and by which ranks."""

from __future__ import annotations


class Variant:
    """One thing said in a row, and by whom."""

    __slots__ = ("id", "mask", "text")

    def __init__(self, variant_id: int, text: str, mask: int) -> None:
        self.id = variant_id
        self.text = text
        self.mask = mask


class Row:
    """Units that belong beside each other, at most one per rank, all of one kind."""

    __slots__ = ("kind", "mask", "next", "prev", "seq", "settled", "template", "variants")

    def __init__(self, kind: str, text: str) -> None:
        self.kind = kind
        self.template = text  # of the unit that made the row; masked when first compared
        self.variants: dict[str, Variant] = {}
        self.mask = 0
        self.settled = 0  # ranks whose unit is final
        self.seq = 0
        self.prev: Row | None = None
        self.next: Row | None = None

    def ordered(self) -> list[Variant]:
        """The variants by lowest rank."""
        variants = self.variants
        if len(variants) == 1:
            return list(variants.values())
        return sorted(variants.values(), key=lambda variant: variant.mask & -variant.mask)


def touch(row: Row, seq: int) -> None:
    """Items are runs of rows, so a change of a row can change the items that end or begin beside it."""
    row.seq = seq
    if row.prev is not None:
        row.prev.seq = seq
    if row.next is not None:
        row.next.seq = seq
