"""The text beside a widget, for readers that cannot show it: its last state instead of its first, as a bar at `0%`.

nbclient, VS Code and files show this text. It is made from the widget's values, by what each kind of widget has; a
widget of another kind keeps the text of its library.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from typing import Any

from jupyter_dist.protocol.models.models import WIDGET_MIME

from .ipython_compat import living_widgets

MAX_WIDGETS = 64  # the newest displays; older ones keep their text
MAX_DEPTH = 8  # of boxes in boxes
MAX_CHARS = 10_000
BAR_CELLS = 10

_TAGS = re.compile(r"<[^>]*>")
_SPACES = str.maketrans("\u2007\xa0", "  ")  # that do not break, as tqdm writes them


class LastStates:
    """The widgets that cells have shown, with what was sent of them."""

    def __init__(self) -> None:
        self._shown: dict[str, dict[str, Any]] = {}  # by model, the newest last

    def remember(self, content: dict[str, Any]) -> None:
        """Remember a display of a widget. It gets a display id, by which its text can be replaced."""
        model = content["data"][WIDGET_MIME]
        model_id = model.get("model_id") if isinstance(model, dict) else None
        if isinstance(model_id, str):
            content["transient"] = {"display_id": f"widget-{model_id}", **content["transient"]}
            self._shown.pop(model_id, None)
            self._shown[model_id] = content
            if len(self._shown) > MAX_WIDGETS:
                del self._shown[next(iter(self._shown))]

    def send(self, emit: Callable[[str, dict[str, Any]], None]) -> None:
        """Replace the texts of widgets that have changed."""
        living = living_widgets()
        for model_id, content in list(self._shown.items()):
            text = _text_of(living[model_id]) if model_id in living else ""  # it was closed
            if text is not None and text != content["data"].get("text/plain"):
                newest = {**content, "data": {**content["data"], "text/plain": text[:MAX_CHARS]}}
                self._shown[model_id] = newest
                emit("update_display_data", newest)


def _text_of(widget: Any, depth: int = 0) -> str | None:
    """Return the state of a widget as text; empty if it is hidden, None for a kind of widget without such a text."""
    if widget is None or depth > MAX_DEPTH:
        return None
    if getattr(getattr(widget, "layout", None), "display", None) == "none":
        return ""
    if (children := getattr(widget, "children", None)) is not None:
        texts = [_text_of(child, depth + 1) for child in children]
        if None in texts:
            return None
        between = " " if type(widget).__name__.endswith("HBox") else "\n"
        return between.join(text for text in texts if text)
    if (outputs := getattr(widget, "outputs", None)) is not None:
        return "".join(_text_of_output(output) for output in outputs).rstrip("\n")
    value = getattr(widget, "value", None)
    return None if value is None else _of_value(widget, value)


def _of_value(widget: Any, value: Any) -> str:
    description = str(getattr(widget, "description", ""))
    if hasattr(widget, "bar_style") and hasattr(widget, "max"):
        shown = _bar(value, widget.min, widget.max)
    else:
        shown = html.unescape(_TAGS.sub("", value)).translate(_SPACES).strip() if isinstance(value, str) else str(value)
    return f"{description} {shown}".strip()


def _bar(value: float, least: float, most: float) -> str:
    share = (value - least) / (most - least) if most > least else 1.0
    full = round(BAR_CELLS * min(max(share, 0.0), 1.0))
    return "|" + "\u2588" * full + " " * (BAR_CELLS - full) + "|"


def _text_of_output(output: Any) -> str:
    if not isinstance(output, dict):
        return ""
    text = output.get("text") or output.get("data", {}).get("text/plain") or output.get("evalue") or ""
    joined = text if isinstance(text, str) else "".join(text)
    return joined if joined.endswith("\n") else joined + "\n"
