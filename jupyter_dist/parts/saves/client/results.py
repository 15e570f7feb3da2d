"""What a restore gave back, and the cells to run again for what could not be saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from jupyter_dist.client.answers.infos import SaveInfo, SkippedInfo
from jupyter_dist.client.results.result import Result
from jupyter_dist.parts.saves.text import skipped_lines
from jupyter_dist.protocol.ranks import RankSet, parse_ranks


@dataclass(frozen=True)
class CellToRerun:
    """A cell that made what could not be saved."""

    execution_count: int
    code: str
    ranks: str
    names: tuple[str, ...]


@dataclass
class Restored:
    """The end of a restore."""

    save: SaveInfo
    notes: str = ""  # what ranks wrote about names that differ from the saved ones
    results: list[Result] = field(default_factory=list)  # of the cells that were run again
    num_names: int | None = None  # variables that were restored, on the rank with the most

    @property
    def cells(self) -> list[CellToRerun]:
        """Return the cells that made what could not be saved, in their order."""
        return cells_to_rerun(self.save.skipped, self.save.world_size)

    def __repr__(self) -> str:
        saved = self.save.num_names
        count = str(saved) if self.num_names in (None, saved) else f"{self.num_names} of {saved}"
        lines = [f"Restored '{self.save.name}': {count} names on {self.save.world_size} ranks."]
        lines += [self.notes.rstrip()] if self.notes.strip() else []
        lines += skipped_lines(self.save.model["skipped"])
        again = ", ".join(f"[{cell.execution_count}]" for cell in self.cells)
        if again and not self.results:
            lines.append(f"Run {again} again to make them: restore with rerun.")
        elif again:
            lines.append(f"Ran {again} again.")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


def cells_to_rerun(skipped: Sequence[SkippedInfo], world_size: int) -> list[CellToRerun]:
    """Return the cells that made these names, each once with all of its ranks, in the order in which they ran."""
    found: dict[tuple[int, str], tuple[set[int], dict[str, None]]] = {}
    for one in skipped:
        if one.execution_count is not None and one.code:
            ranks, names = found.setdefault((one.execution_count, one.code), (set(), {}))
            ranks.update(parse_ranks(one.ranks, world_size))
            names[one.name] = None
    return [
        CellToRerun(count, code, str(RankSet(sorted(ranks))), tuple(names))
        for (count, code), (ranks, names) in sorted(found.items())
    ]
