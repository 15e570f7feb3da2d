"""Showing a result while it grows: one output that is updated in a notebook, lines in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TextIO

from jupyter_dist.protocol.ranks import expand_ranks, format_ranks

from .bundle import item_text, mime_bundle, rank_label
from .result import Result


def show_live() -> Callable[[Result], None]:
    """The right way to show one execution here."""
    return NotebookDisplay() if in_notebook() else TextDisplay(sys.stdout)


def in_notebook() -> bool:
    """Whether outputs go to a Jupyter frontend."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


class NotebookDisplay:
    """One display of the folded bundle, replaced by each later state."""

    def __init__(self) -> None:
        self._display_id: str | None = None
        self._shown: tuple[object, ...] = ()

    def __call__(self, result: Result) -> None:
        """Show the state of now."""
        from IPython.display import display  # noqa: PLC0415  (a script has no IPython loaded)

        state = (result.execution, result.folded)
        if state == self._shown:
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
        self._label = ""

    def __call__(self, result: Result) -> None:
        """Print what is new."""
        said: dict[str, list[int]] = {}
        for rank, text in _texts(result).items():
            start = min(self._printed.get(rank, 0), len(text))
            end = len(text) if result.done else text.rfind("\n") + 1
            if end > start:
                self._printed[rank] = end
                said.setdefault(text[start:end], []).append(rank)
        for text, ranks in said.items():
            self._print(rank_label(format_ranks(ranks)), text)
        if result.done and result.execution["error"]:
            self._file.write(f"[{result.state}] {result.execution['error']['message']}\n")
        self._file.flush()

    def _print(self, label: str, text: str) -> None:
        if label != self._label:
            self._label = label
            self._file.write(f"[{label}]\n")
        self._file.write(text if text.endswith("\n") else text + "\n")


def _texts(result: Result) -> dict[int, str]:
    parts: dict[int, list[str]] = {}
    for item in result.folded:
        text = item_text(item)
        if "output" in item and item["output"]["output_type"] != "stream" and not text.endswith("\n"):
            text += "\n"
        for rank in expand_ranks(item["ranks"]):
            parts.setdefault(rank, []).append(text)
    return {rank: "".join(texts) for rank, texts in sorted(parts.items())}
