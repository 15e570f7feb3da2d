"""Answers of the API as text, for commands, magics and tools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jupyter_dist.protocol.operations import Operation


def answer_text(operation: Operation, answer: Any) -> str:
    """Return the answer of an operation as its row in the table words it, else by its fields."""
    return fields_text(answer) if operation.text is None else operation.text(answer)


def fields_text(answer: Mapping[str, Any]) -> str:
    """Return an answer as a line for each field."""
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in answer.items()}
    return "\n".join(f"{name.replace('_', ' ')}: {text}" for name, text in texts.items())
