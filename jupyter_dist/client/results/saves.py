"""What a restore gave back, and the cells to run again for what could not be saved."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from jupyter_dist.client.answers.infos import LastSaveInfo, SaveInfo, SavePreviewInfo, SkippedInfo
from jupyter_dist.protocol.ranks import RankSet, parse_ranks

from .result import Result

MAX_NAMES = 20
MEGABYTE = 1e6


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
        lines += skipped_lines(self.save.skipped)
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


def save_text(save: SaveInfo) -> str:
    """Return a save as text."""
    written = f"{_size(save.written_bytes)} written of {_size(save.total_bytes)}"
    first = (
        f"Saved '{save.name}': {save.num_names} names on {save.world_size} ranks, {written}, in {save.seconds:.1f} s."
    )
    return "\n".join([first, *skipped_lines(save.skipped)])


def preview_text(preview: SavePreviewInfo) -> str:
    """Return the preview of a save as text."""
    notes = [f"{one.name}, rank {one.ranks}: {one.reason}" for one in preview.notes]
    first = f"A save would have {len(preview.names)} names, {_size(preview.total_bytes)} of all ranks."
    return "\n".join([first, *skipped_lines(preview.skipped), *notes])


def saves_text(saves: Sequence[SaveInfo]) -> str:
    """Return saves as a line each."""
    lines = [
        f"{save.name}: group '{save.group}', {save.world_size} ranks, {save.num_names} names,"
        f" {_size(save.total_bytes)}{f'. {save.problem}' if save.problem else ''}"
        for save in saves
    ]
    return "\n".join(lines) or "There are no saves."


def last_saves_text(saves: Sequence[LastSaveInfo]) -> str:
    """Return the newest saves of groups as a line each."""
    lines = [
        f"{save.group}, {save.world_size} ranks: '{save.name}' of"
        f" {time.strftime('%Y-%m-%d %H:%M', time.localtime(save.saved_at))} in {save.folder}"
        for save in saves
    ]
    return "\n".join(lines) or "There are no saves."


def skipped_lines(skipped: Sequence[SkippedInfo]) -> list[str]:
    """Return a line for each name that could not be saved."""
    lines = []
    for one in skipped[:MAX_NAMES]:
        cell = f" (cell [{one.execution_count}])" if one.execution_count is not None else ""
        lines.append(f"Not saved: {one.name}{cell}, rank {one.ranks}: {one.reason}")
    more = len(skipped) - MAX_NAMES
    return [*lines, f"... and {more} more names."] if more > 0 else lines


def _size(num_bytes: int) -> str:
    return f"{num_bytes / MEGABYTE:.1f} MB" if num_bytes >= MEGABYTE else f"{num_bytes} bytes"
