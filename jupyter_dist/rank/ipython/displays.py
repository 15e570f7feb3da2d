"""Sends display(), execute_result and clear_output as frames."""

from __future__ import annotations

import base64
import datetime
import math
import numbers
import re
from collections.abc import Callable
from typing import Any

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher

from jupyter_dist.protocol.models.models import WIDGET_MIME
from jupyter_dist.rank.guard.own import json
from jupyter_dist.transport.frames import MAX_PAYLOAD_BYTES

from .ipython_compat import finish_result
from .laststates import LastStates

Emit = Callable[[str, dict[str, Any]], None]  # message type, Jupyter content


MAX_DISPLAYS = 10_000  # displays that later cells can update; the server finds a cell's own displays
MAX_OWNERS = 16  # cells that have shown the same display
# In JSON: an escaped backslash, both halves of a character, or one without the other.
_HALVES = re.compile(r"\\\\|\\u(?:d[89ab]..\\ud[c-f]..|(d[89a-f]..))")


class RankDisplayPublisher(DisplayPublisher):
    """Publishes the messages of `display()` and `clear_output()`."""

    emit: Emit

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._last_states = LastStates()

    def publish(
        self,
        data: dict[str, Any],
        metadata: dict[str, Any] | None = None,
        *_source: Any,
        transient: dict[str, Any] | None = None,
        update: bool = False,
        **_: Any,
    ) -> None:
        """Send display_data or update_display_data."""
        for name, value in (("data", data), ("metadata", metadata or {}), ("transient", transient or {})):
            if not isinstance(value, dict):
                raise TypeError(f"{name} must be a dict, got {type(value).__name__}")
        content = {"data": data, "metadata": metadata or {}, "transient": transient or {}}
        if WIDGET_MIME in data and not update:
            self._last_states.remember(content)
        self.emit("update_display_data" if update else "display_data", content)

    def clear_output(self, wait: bool = False) -> None:
        """Send clear_output."""
        self.emit("clear_output", {"wait": wait})

    def end_cell(self) -> None:
        """Send the last states of widgets."""
        self._last_states.send(self.emit)


class DisplayOwners:
    """Which executions have shown a display: an update from any cell changes their outputs."""

    def __init__(self) -> None:
        self._by_display: dict[str, dict[str | None, None]] = {}  # the newest last

    def owners(self, msg_type: str, display_id: str | None, execution_id: str | None) -> list[str | None]:
        """Return the executions whose output an output belongs to, and remember a display."""
        if display_id is None or msg_type == "clear_output":
            return [execution_id]
        if msg_type == "update_display_data":
            return list(self._by_display.get(display_id, ())) or [execution_id]
        owners = self._by_display.pop(display_id, {})
        owners.pop(execution_id, None)
        self._by_display[display_id] = {**dict(list(owners.items())[1 - MAX_OWNERS :]), execution_id: None}
        if len(self._by_display) > MAX_DISPLAYS:
            del self._by_display[next(iter(self._by_display))]
        return [execution_id]


class RankDisplayHook(DisplayHook):
    """Displays the value of the last expression of a cell."""

    emit: Emit

    def write_output_prompt(self) -> None:
        """Write nothing: the execution count is part of the message."""

    def write_format_data(self, format_dict: dict[str, Any], md_dict: dict[str, Any] | None = None) -> None:
        """Send execute_result."""
        content = {"execution_count": self.prompt_count, "data": format_dict, "metadata": md_dict or {}}
        self.emit("execute_result", content)

    def log_output(self, format_dict: dict[str, Any]) -> None:
        """Log nothing: IPython would keep the data of every output forever."""

    def finish_displayhook(self) -> None:
        """Print nothing after a result."""
        finish_result(self)


def encode_content(content: dict[str, Any]) -> bytes:
    """Return strict JSON, even if `_repr_mimebundle_` returned other values."""
    try:
        text = json.dumps(content, default=_plain, allow_nan=False)
    except (ValueError, TypeError):  # a NaN, or a key that is not a string
        text = json.dumps(_cleaned(content))
    return _with_whole_characters(text).encode()


def _with_whole_characters(text: str) -> str:
    r"""Return an ASCII JSON text in which half a character (a lone surrogate, as in `'\ud83d'`) stands as its escape.

    UTF-8 has no halves: a notebook with one cannot be saved. Printed text has the same escapes.
    """
    if r"\ud" not in text:
        return text
    return _HALVES.sub(lambda found: rf"\\u{found[1]}" if found[1] else found[0], text)


def check_size(payload: bytes) -> None:
    """Raise ValueError, with a message for the user, if an output is too large to be sent."""
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise ValueError(
            f"This output is {len(payload) >> 20} MiB; the limit is {MAX_PAYLOAD_BYTES >> 20} MiB. "
            "Save it to a file, or display part of it."
        )


def _plain(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (set, frozenset)):
        return list(value)
    return str(value)


def _cleaned(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _cleaned(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_cleaned(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if value is None or isinstance(value, (str, int, float)):
        return value
    return _cleaned(_plain(value))
