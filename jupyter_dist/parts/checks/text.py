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


def compared_text(model: models.ComparedModel) -> str:
    """Return lines about ComparedModel of docs/api.md."""
    lines = [f"{model['name']} on ranks {model['ranks']}: {model['alike']} parts are alike, {model['differ']} differ."]
    if model["sharded"]:
        lines.append(f"{model['sharded']} are sharded, and not compared.")
    for one in model["differences"]:
        lines.append(f"{one['what']} {one['name']}")
        lines += [f"  {value}" for value in one["values"]]
    return "\n".join([*lines, *(f"Not compared: {one}" for one in model["not_asked"])])


def switch_text(model: Mapping[str, Any]) -> str:
    """Return a sentence about the switch."""
    return f"Checks are {'on' if model['on'] else 'off'}."
