"""Shows a growing result: outputs of a notebook, lines in a terminal."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from jupyter_dist.client.bundles.bundle import rank_label
from jupyter_dist.client.bundles.outputs import BundleOutputs, emit_display, in_notebook
from jupyter_dist.client.results.result import Result
from jupyter_dist.protocol.models.models import PART_MIME
from jupyter_dist.protocol.operations import BUNDLE_FIELDS, CELL_NOTES
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.system.terminal import filtered

from .growing import Growing, Hidden, nothing

# How long output of one rank waits for the same output of the others.
TOGETHER_SECONDS = 0.2

Show = Callable[[Result], None]


def show_live(*, states: bool = True) -> Show:
    """Return the display for one execution; without `states`, an execution without output shows nothing."""
    return NotebookDisplay(states) if in_notebook() else TextDisplay(filtered(sys.stdout))


def show_table(table: object) -> None:
    """Show an object with a text and maybe HTML: in a notebook as an output, else as text."""
    if in_notebook():
        from IPython.display import display  # noqa: PLC0415  (scripts do not load IPython)

        display(table)
    else:
        filtered(sys.stdout).write(f"{table}\n")


class NotebookDisplay:
    """The output in a notebook of a Python kernel, by IPython's displays."""

    def __init__(self, states: bool) -> None:
        self._states = states
        self._show = BundleOutputs(emit_display, _found_by_parts)
        self._news = CellNews(sys.stderr, _show_part)

    def __call__(self, result: Result) -> None:
        """Show the current state."""
        if self._states or result.folded:
            self._show(result)
            self._news.update(result)


def _show_part(result: Result, sentence: str) -> None:
    """Show a sentence as a part of the bundle, which a page with our extension does not show."""
    data = {PART_MIME: {"of": result.id}, "text/plain": sentence}
    emit_display("display_data", {"data": data, "metadata": {}, "transient": {}})


def _found_by_parts(execution: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of parts for the bundle of a running cell: VS Code has no server."""
    fields = BUNDLE_FIELDS if execution["state"] == "running" else ()
    return {field: found for field in fields if (found := execution.get(field))}


class CellNews:
    """Prints once what parts find in a running cell, as that it cannot end, and why; and the news of the nodes."""

    def __init__(self, file: TextIO, show_part: Callable[[Result, str], None] | None = None) -> None:
        """`show_part` gets what the bundle of the cell has, too, in place of the file."""
        self._file = file
        self._show_part = show_part
        self._noticed: set[str] = set()
        self._noted: set[tuple[str, ...]] = set()
        self._has_warned = False

    def update(self, result: Result) -> None:
        """Write each sentence that is new."""
        if (warning := result.execution.get("warning")) and not self._has_warned:
            self._has_warned = True
            self._file.write(f"[warning] {warning}\n")
        for notice in result.notices:
            if notice not in self._noticed:
                self._noticed.add(notice)
                self._file.write(f"[warning] {notice}\n")
        for note in CELL_NOTES:
            for one in note.findings(result.execution):
                if (key := (note.field, *(one[name] for name in note.same_by))) not in self._noted:
                    self._noted.add(key)
                    self._say(result, note.field, f"[{note.label}] {one['message']} {one['advice']}")

    def _say(self, result: Result, field: str, sentence: str) -> None:
        if self._show_part is not None and field in BUNDLE_FIELDS:
            self._show_part(result, sentence)
            return
        self._file.write(f"{sentence}\n")
        self._file.flush()


class TextDisplay:
    """Prints whole lines as they arrive, under a label of the ranks that wrote them."""

    def __init__(self, file: TextIO, hidden: Hidden = nothing) -> None:
        self._file = file
        self._growing = Growing(hidden)
        self._ranks = ""
        self._news = CellNews(file)
        self._waiting_since: float | None = None

    def __call__(self, result: Result) -> None:
        """Print new output."""
        new = self._growing.new(result)
        if self._waits_for_others(result, len(new)):
            return
        self._growing.take()
        self._print(new)
        self._news.update(result)
        if result.done and result.execution["error"]:
            self._file.write(f"[{result.state}] {result.execution['error']['message']}\n")
        self._file.flush()

    def _waits_for_others(self, result: Result, num_said: int) -> bool:
        """Whether to wait a moment: ranks write the same output a few milliseconds apart."""
        if result.done or num_said in (0, len(result)):
            self._waiting_since = None
            return False
        now = time.monotonic()
        if self._waiting_since is None:
            self._waiting_since = now
        if now - self._waiting_since < TOGETHER_SECONDS:
            return True
        self._waiting_since = None
        return False

    def _print(self, new: dict[int, list[str]]) -> None:
        """Print equal output once, up to where ranks differ; then each set of ranks separately."""
        same = sum(1 for _ in itertools.takewhile(lambda row: len(set(row)) == 1, zip(*new.values(), strict=False)))
        if same:
            self._write(str(RankSet(new)), "".join(next(iter(new.values()))[:same]))
        parted: dict[str, dict[int, list[str]]] = {}
        for rank, lines in new.items():
            if len(lines) > same:
                parted.setdefault(lines[same], {})[rank] = lines[same:]
        for rest in parted.values():
            self._print(rest)

    def _write(self, ranks: str, text: str) -> None:
        if ranks != self._ranks:
            self._ranks = ranks
            self._file.write(f"[{rank_label(ranks)}]\n")
        self._file.write(text if text.endswith("\n") else text + "\n")


class RankDisplay:
    """Prints whole lines as they arrive, each after the number of its rank."""

    def __init__(self, file: TextIO, hidden: Hidden = nothing) -> None:
        self._file = file
        self._growing = Growing(hidden)
        self._news = CellNews(file)

    def __call__(self, result: Result) -> None:
        """Print new output."""
        width = len(str(max(result.ranks, default=0)))
        for rank, lines in self._growing.new(result).items():
            for line in "".join(lines).splitlines():
                self._file.write(f"{rank:{width}}| {line}\n")
        self._growing.take()
        self._news.update(result)
        if result.done and result.execution["error"]:
            self._file.write(f"[{result.state}] {result.execution['error']['message']}\n")
        self._file.flush()
