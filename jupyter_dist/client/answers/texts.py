"""Answers of the API as text, for commands, magics and tools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jupyter_dist.protocol.operations import Operation

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def answer_text(operation: Operation, answer: Any) -> str:
    """Return the answer of an operation as its row in the table words it, else by its fields."""
    return fields_text(answer) if operation.text is None else operation.text(answer)


def fields_text(answer: Mapping[str, Any]) -> str:
    """Return an answer as a line for each field."""
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in answer.items()}
    return "\n".join(f"{name.replace('_', ' ')}: {text}" for name, text in texts.items())


def format_bytes(size: int) -> str:
    """Return a size as `1.5 MiB`."""
    number, unit = float(size), 0
    while number >= 1024 and unit < len(_UNITS) - 1:
        number, unit = number / 1024, unit + 1
    return f"{number:.1f} {_UNITS[unit]}" if unit else f"{size} B"
