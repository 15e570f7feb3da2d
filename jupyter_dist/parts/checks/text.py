"""Checks as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import models


def checks_text(model: models.CellChecks) -> str:
    """Return lines about CellChecks of docs/api.md."""
    if not model["on"]:
        return "Checks are off in this group."
    lines = []
    for check in model["checks"]:
        lines.append(check["message"])
        lines += [f"  {sentence}" for sentence in check["evidence"]]
        lines.append(f"  To do: {check['advice']}")
    return "\n".join(lines) or "Nothing was found that is wrong with the training in it."


def switch_text(model: Mapping[str, Any]) -> str:
    """Return a sentence about the switch."""
    return f"Checks are {'on' if model['on'] else 'off'}."
