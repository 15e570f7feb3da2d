"""Saves as text, for commands, magics and tools."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jupyter_dist.parts.saves.models import LastSavesModel, SaveModel, SavePreview, SavesModel, Skipped

MAX_NAMES = 20
MEGABYTE = 1e6


def save_text(save: SaveModel) -> str:
    """Return a save as text."""
    written = f"{_size(save['written_bytes'])} written of {_size(save['total_bytes'])}"
    names = f"{save['num_names']} names on {save['world_size']} ranks"
    first = f"Saved '{save['name']}': {names}, {written}, in {save['seconds']:.1f} s."
    return "\n".join([first, *skipped_lines(save["skipped"])])


def preview_text(preview: SavePreview) -> str:
    """Return the preview of a save as text."""
    notes = [f"{one['name']}, rank {one['ranks']}: {one['reason']}" for one in preview["notes"]]
    first = f"A save would have {len(preview['names'])} names, {_size(preview['total_bytes'])} of all ranks."
    return "\n".join([first, *skipped_lines(preview["skipped"]), *notes])


def saves_text(answer: SavesModel) -> str:
    """Return saves as a line each."""
    lines = [
        f"{save['name']}: group '{save['group']}', {save['world_size']} ranks, {save['num_names']} names,"
        f" {_size(save['total_bytes'])}{f'. {problem}' if (problem := save.get('problem')) else ''}"
        for save in answer["saves"]
    ]
    return "\n".join(lines) or "There are no saves."


def last_saves_text(answer: LastSavesModel) -> str:
    """Return the newest saves of groups as a line each."""
    lines = [
        f"{save['group']}, {save['world_size']} ranks: '{save['name']}' of"
        f" {time.strftime('%Y-%m-%d %H:%M', time.localtime(save['saved_at']))} in {save['folder']}"
        for save in answer["saves"]
    ]
    return "\n".join(lines) or "There are no saves."


def skipped_lines(skipped: Sequence[Skipped]) -> list[str]:
    """Return a line for each name that could not be saved."""
    lines = []
    for one in skipped[:MAX_NAMES]:
        count = one["execution_count"]
        cell = f" (cell [{count}])" if count is not None else ""
        lines.append(f"Not saved: {one['name']}{cell}, rank {one['ranks']}: {one['reason']}")
    more = len(skipped) - MAX_NAMES
    return [*lines, f"... and {more} more names."] if more > 0 else lines


def _size(num_bytes: int) -> str:
    return f"{num_bytes / MEGABYTE:.1f} MB" if num_bytes >= MEGABYTE else f"{num_bytes} bytes"
