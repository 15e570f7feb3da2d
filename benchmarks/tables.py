"""What a figure is in the end: rows of values with the floor and the rivals beside them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Row:
    """One system's values, one per round; the rounds of a table's rows are interleaved."""

    system: str
    values: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    note: str = ""

    @property
    def median(self) -> float:
        """The middle value."""
        return statistics.median(self.values)

    @property
    def minimum(self) -> float:
        """The best value: what the machine's other work disturbs least."""
        return min(self.values)


@dataclass
class Table:
    """Rows of one unit; the first system named in `reference` is what ratios are to."""

    title: str
    unit: str
    reference: str
    rows: list[Row] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)  # sentences: what was aimed at, what came out

    def row(self, system: str) -> Row:
        """The row of a system, made at its first use."""
        for row in self.rows:
            if row.system == system:
                return row
        self.rows.append(Row(system))
        return self.rows[-1]

    def ratio(self, system: str, reference: str | None = None) -> float:
        """How many times the reference's value: the median over rounds if both were in every round."""
        ours, theirs = self.row(system).values, self.row(reference or self.reference).values
        if len(ours) == len(theirs):
            return statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True))
        return statistics.median(ours) / statistics.median(theirs)

    def least_ratio(self, system: str, reference: str | None = None) -> float:
        """The same of the minima."""
        return self.row(system).minimum / self.row(reference or self.reference).minimum

    def aim(self, text: str, held: bool) -> None:
        """Note a target and whether it was held."""
        self.targets.append(f"{'held' if held else '**missed**'}: {text}")

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe."""
        return asdict(self)

    def markdown(self) -> str:
        """The table as people read it."""
        with_cpu = any(row.cpu for row in self.rows)
        head = ["", f"median {self.unit}", f"least {self.unit}", "rounds"]
        head += [f"x {self.reference}"] if self.reference else []
        head += ["CPU s"] if with_cpu else []
        head += [""]
        lines = [f"**{self.title}**", "", _line(head), _line(["---", *["---:"] * (len(head) - 2), "---"])]
        for row in self.rows:
            lines.append(_line(self._cells(row, with_cpu)))
        return "\n".join([*lines, "", *(f"- {text}" for text in self.targets)]).rstrip() + "\n"

    def _cells(self, row: Row, with_cpu: bool) -> list[str]:
        if not row.values:
            return [row.system, *["-"] * (3 + bool(self.reference) + with_cpu), row.note]
        cells = [row.system, number(row.median), number(row.minimum), str(len(row.values))]
        if self.reference:
            cells.append(f"{self.ratio(row.system):.1f}")
        if with_cpu:
            cells.append(number(statistics.median(row.cpu)) if row.cpu else "")
        return [*cells, row.note]


def note_failure(tables: list[Table], system: str, error: Exception) -> None:
    """A rival that fails costs its row, not the run."""
    for table in tables:
        table.row(system).note = f"failed: {str(error).strip().splitlines()[-1][:100]}"


def number(value: float) -> str:
    """Three digits that count."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
