"""The options of a start for forms: each row with its label, its sentence and its limits, and this server's default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jupyter_dist.protocol.field import OptionRow
from jupyter_dist.protocol.models import machine
from jupyter_dist.protocol.models.sentences import say, words_of
from jupyter_dist.protocol.schemas import Schema, form_rows, schema_of

KINDS = {"string": "text", "integer": "integer", "number": "number", "boolean": "flag", "array": "words"}


def start_option_rows(defaults: Mapping[str, Any]) -> list[machine.StartOptionRow]:
    """Return the rows; one of another package with a type that no field of a form has is left out.

    Args:
        defaults: of the server, by the name of the option.
    """
    found = (_model(part, row, defaults.get(row.name, row.default)) for part, row in form_rows())
    return [model for model in found if model is not None]


def _model(part: str, row: OptionRow, default: Any) -> machine.StartOptionRow | None:
    schema: Schema = {**(row.option.schema or schema_of(row.sent)), **row.option.keywords}
    texts = schema.get("items", {}) if schema.get("type") == "array" else schema
    choices = schema.get("enum", [])
    kind: Any = KINDS.get("string" if choices else str(schema.get("type")))
    if kind is None or (kind == "words" and texts.get("type") != "string"):
        return None
    label = row.option.label or row.name.replace("_", " ").capitalize()
    return {
        "name": row.name,
        "part": part,
        "label": label,
        "label_words": words_of(say(label)),
        "help": row.option.description,
        "help_words": words_of(say(row.option.description)),
        "kind": kind,
        "choices": [str(choice) for choice in choices],
        "minimum": schema.get("minimum"),
        "maximum": schema.get("maximum"),
        "max_length": texts.get("maxLength"),
        "default": list(default) if isinstance(default, tuple) else default,
    }
