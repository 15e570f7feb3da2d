"""Many objects with the same fields, field by field: what is alike in all of them is there once. Pure."""

from __future__ import annotations

from typing import Any

Rows = list[dict[str, Any]]


def in_columns(rows: Rows) -> Rows | dict[str, Any]:
    """Return rows as `alike`, the fields that all have alike, and `columns`, a list of values for each other field.

    Rows with different fields, or without any difference, are returned as they are.
    """
    if any(row.keys() != rows[0].keys() for row in rows):
        return rows
    alike, columns = {}, {}
    for name, first in rows[0].items() if rows else ():
        values = [row[name] for row in rows]
        if values.count(first) == len(values) and len(set(map(type, values))) == 1:  # True is 1
            alike[name] = first
        else:
            columns[name] = values
    return {"alike": alike, "columns": columns} if columns else rows


def in_rows(found: Rows | dict[str, Any]) -> Rows:
    """Return the rows of `in_columns`; fields may have another order."""
    if isinstance(found, list):
        return found
    alike, columns = found["alike"], found["columns"]
    return [{**alike, **dict(zip(columns, values, strict=True))} for values in zip(*columns.values(), strict=True)]
