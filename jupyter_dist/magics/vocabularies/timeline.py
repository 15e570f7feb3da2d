"""nbdistributed's timeline, measured by the group's agent: which cells ran on which ranks, and for how long."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from IPython.core.magic import line_magic, magics_class

from jupyter_dist.client import Group
from jupyter_dist.magics.base import RankMagics
from jupyter_dist.magics.failures import DistError, MagicParser, no_arguments, sentences, takes
from jupyter_dist.magics.session import notebook_path
from jupyter_dist.protocol.models.models import ExecutionModel

MAX_LINE = 60
FIELDS = (
    "id",
    "execution_count",
    "line",
    "ranks",
    "state",
    "notebook",
    "cell_id",
    "queued_at",
    "started_at",
    "ended_at",
    "rank_seconds",
    "error",
)


def save_parser() -> MagicParser:
    """Return the parser of `%timeline_save`."""
    parser = MagicParser("%timeline_save")
    parser.add_argument("file", nargs="?")
    return parser


@magics_class
class TimelineMagics(RankMagics):
    """The cells that this notebook's group ran."""

    _since = 0.0  # cells queued before this were cleared

    @line_magic
    @sentences
    @takes(save_parser)
    def timeline_save(self, line: str) -> None:
        """Write the timeline to a JSON file; without a name, beside the notebook."""
        options = save_parser().parse(line)
        group = self.group_if_any()
        if group is None:
            return
        path = Path(options.file).expanduser() if options.file else self._default_path()
        cells = self._cells(group)
        found = {"version": 1, "group": group.name, "world_size": group.world_size, "saved_at": time.time()}
        try:
            path.write_text(json.dumps({**found, "cells": [*map(_saved, cells)]}, indent=1) + "\n")
        except OSError as err:
            raise DistError(f"'{path}' cannot be written: {err.strerror}. Use another: %timeline_save FILE.") from None
        print(f"{_num_cells(cells)} in {path.resolve()}")

    @line_magic
    @sentences
    def timeline_debug(self, line: str) -> None:
        """Print the timeline as a table."""
        no_arguments("%timeline_debug", line)
        group = self.group_if_any()
        if group is None:
            return
        cells = self._cells(group)
        print("\n".join([f"Group '{group.name}': {_num_cells(cells)}", *map(timeline_line, cells)]))

    @line_magic
    @sentences
    def timeline_clear(self, line: str) -> None:
        """Clear the timeline; the group's own history and logs are kept."""
        no_arguments("%timeline_clear", line)
        group = self.group_if_any()
        if group is None:
            return
        num_cells = _num_cells(self._cells(group))
        self._since = time.time()
        print(f"The timeline was cleared ({num_cells}).")

    def _cells(self, group: Group) -> list[ExecutionModel]:
        listed: list[ExecutionModel] = group.client.ask("GET", "groups", group.id, "executions")["executions"]
        return [cell for cell in listed if not cell["silent"] and cell["queued_at"] >= self._since]

    def _default_path(self) -> Path:
        notebook = Path(notebook_path(self.shell) or "notebook.ipynb")
        folder = notebook.parent if notebook.is_absolute() and notebook.parent.is_dir() else Path.cwd()
        return folder / f"{notebook.stem}-timeline.json"


def timeline_line(cell: ExecutionModel) -> str:
    """Return when a cell began, where and how long it ran, and its first line."""
    began = time.strftime("%H:%M:%S", time.localtime(cell["started_at"])) if cell["started_at"] else "not begun"
    line = cell["line"] or ""
    shown = line if len(line) <= MAX_LINE else line[: MAX_LINE - 3] + "..."
    place = f"[{cell['execution_count'] or ' '}]"
    return f"{place:>6} {began:>9}  ranks {cell['ranks']:<8} {cell['state']:<11} {_seconds(cell):<22} {shown}".rstrip()


def _seconds(cell: ExecutionModel) -> str:
    """Return how long a cell took on its ranks; a range if they differ."""
    by_rank = sorted((seconds, rank) for rank, seconds in cell["rank_seconds"].items())
    if not by_rank:
        return ""
    (least, quickest), (most, slowest) = by_rank[0], by_rank[-1]
    if most - least < 0.01 * most + 0.01:
        return f"{most:.2f} s"
    return f"{least:.2f} s ({quickest}) to {most:.2f} s ({slowest})"


def _num_cells(cells: Sequence[ExecutionModel]) -> str:
    return f"{len(cells)} cell{'' if len(cells) == 1 else 's'}"


def _saved(cell: Mapping[str, object]) -> dict[str, object]:
    return {name: cell[name] for name in FIELDS}
