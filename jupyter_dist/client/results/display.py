"""Showing a result while it grows: one output that is updated in a notebook, lines in a terminal."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable
from typing import TextIO

from jupyter_dist.protocol.ranks import expand_ranks, format_ranks

from .bundle import item_text, mime_bundle, rank_label
from .result import Result

# How long what one rank said waits for the others to say the same.
TOGETHER_SECONDS = 0.2


def show_live(*, states: bool = True) -> Callable[[Result], None]:
    """The right way to show one execution here; without `states` nothing is shown of one that says nothing."""
    return NotebookDisplay(states) if in_notebook() else TextDisplay(sys.stdout)


def in_notebook() -> bool:
    """Whether outputs go to a Jupyter frontend."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


class NotebookDisplay:
    """One display of the folded bundle, replaced by each later state."""

    def __init__(self, states: bool) -> None:
        self._states = states
        self._display_id: str | None = None
        self._shown: tuple[object, ...] = ()

    def __call__(self, result: Result) -> None:
        """Show the state of now."""
        from IPython.display import display  # noqa: PLC0415  (a script has no IPython loaded)

        state = (result.execution, result.folded)
        if state == self._shown or not (self._states or result.folded):
            return
        self._shown = state
        bundle = mime_bundle(result.bundle())
        if self._display_id is None:
            self._display_id = f"jupyter-dist-{result.id}"
            display(bundle, raw=True, display_id=self._display_id)
        else:
            display(bundle, raw=True, display_id=self._display_id, update=True)


class TextDisplay:
    """Prints whole lines as they come, under the set of ranks that said them since the last time."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._printed: dict[int, int] = {}
        self._ranks = ""
        self._waiting_since: float | None = None

    def __call__(self, result: Result) -> None:
        """Print what is new."""
        new: dict[int, list[str]] = {}
        printed = dict(self._printed)
        for rank, text in _texts(result).items():
            start = min(self._printed.get(rank, 0), len(text))
            end = len(text) if result.done else text.rfind("\n") + 1
            if end > start:
                printed[rank] = end
                new[rank] = text[start:end].splitlines(keepends=True)
        if self._waits_for_others(result, len(new)):
            return
        self._printed = printed
        self._print(new)
        if result.done and result.execution["error"]:
            self._file.write(f"[{result.state}] {result.execution['error']['message']}\n")
        self._file.flush()

    def _waits_for_others(self, result: Result, num_said: int) -> bool:
        """Ranks say the same a few milliseconds apart: what some said waits a moment for the others."""
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
        """What ranks say alike once, up to where they part; then each set of ranks for itself."""
        same = sum(1 for _ in itertools.takewhile(lambda row: len(set(row)) == 1, zip(*new.values(), strict=False)))
        if same:
            self._write(format_ranks(new), "".join(next(iter(new.values()))[:same]))
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
    """Prints whole lines as they come, each behind the rank that said it."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._printed: dict[int, int] = {}

    def __call__(self, result: Result) -> None:
        """Print what is new."""
        width = len(str(max(result.ranks, default=0)))
        for rank, text in _texts(result).items():
            start = min(self._printed.get(rank, 0), len(text))
            end = len(text) if result.done else text.rfind("\n") + 1
            for line in text[start:end].splitlines():
                self._file.write(f"{rank:{width}}| {line}\n")
            self._printed[rank] = max(start, end)
        if result.done and result.execution["error"]:
            self._file.write(f"[{result.state}] {result.execution['error']['message']}\n")
        self._file.flush()


def _texts(result: Result) -> dict[int, str]:
    parts: dict[int, list[str]] = {}
    for item in result.folded:
        text = item_text(item)
        if "output" in item and item["output"]["output_type"] != "stream" and not text.endswith("\n"):
            text += "\n"
        for rank in expand_ranks(item["ranks"]):
            parts.setdefault(rank, []).append(text)
    return {rank: "".join(texts) for rank, texts in sorted(parts.items())}
