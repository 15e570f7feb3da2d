"""The variables of ranks: the result of `group.variables()` as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from jupyter_dist.client.answers.base import ApiList, listed
from jupyter_dist.client.answers.infos import VariableInfo
from jupyter_dist.client.answers.texts import format_bytes
from jupyter_dist.client.bundles.bundle import rank_label
from jupyter_dist.client.results.comparing import notes
from jupyter_dist.parts.variables import models

from .holders import MemoryHolders

MAX_NAMED = 10
COLUMNS = ("type", "shape", "dtype", "device", "bytes", "value")


class VariableTable:
    """The variables of ranks; `model` is the answer of the API (docs/api.md, Variables)."""

    def __init__(self, model: models.VariablesModel) -> None:
        self.model = model

    def __iter__(self) -> Iterator[VariableInfo]:
        return map(VariableInfo, self.model["variables"])

    def __len__(self) -> int:
        return len(self.model["variables"])

    def __getitem__(self, name: str) -> VariableInfo:
        found = next((one for one in self if one.name == name), None)
        if found is None:
            raise KeyError(name)
        return found

    @property
    def holders(self) -> MemoryHolders:
        """Return the holders of each rank's memory: variables, results in Out, calls of the last traceback."""
        return MemoryHolders(self.model.get("memory", []), list(notes(self.model)))

    @property
    def differing(self) -> ApiList[VariableInfo]:
        """Return the variables that are not the same on all ranks that answered."""
        return listed(VariableInfo, filter(differs, self.model["variables"]))

    def __repr__(self) -> str:
        return (
            "\n".join([*_table(list(_rows(self))), *notes(self.model), *_unseen(self.model["variables"])])
            or "No variables."
        )

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in ("name", "ranks", *COLUMNS))
        body = "".join(_html_rows(one) for one in self.model["variables"])
        said = "".join(f"<p>{escape(note)}</p>" for note in [*notes(self.model), *_unseen(self.model["variables"])])
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{said}"


def differs(variable: models.Variable) -> bool:
    """Return whether ranks have something else under a name, as far as the listing looked."""
    return len(variable["rows"]) > 1 or bool(variable["missing"])


def _cells(row: models.VariableRow) -> list[str]:
    size = "" if row["bytes"] is None else format_bytes(row["bytes"])
    return [row["type"], row["shape"], row["dtype"], row["device"], size, row["value"]]


INSIDE = "other contents"


def _values(one: models.Variable) -> list[str]:
    """Return the value of each row; where rows look the same, add that they differ."""
    rows = one["rows"]
    if len(rows) > 1 and len({tuple(_cells(row)) for row in rows}) < len(rows):
        return [f"{row['value']} ({INSIDE})" if row["value"] else INSIDE for row in rows]
    return [row["value"] for row in rows]


def _rows(variables: VariableTable) -> Iterator[list[str]]:
    for one in variables.model["variables"]:
        marked = "*" if differs(one) else " "
        for number, (row, value) in enumerate(zip(one["rows"], _values(one), strict=True)):
            cells = [*_cells(row)[:-1], value]
            yield [f"{marked} {one['name']}" if number == 0 else "", rank_label(row["ranks"]), *cells]
        if one["missing"]:
            yield ["", rank_label(one["missing"]), "not defined"]


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    full = [[*row, *[""] * (len(COLUMNS) + 2 - len(row))] for row in rows]
    widths = [max(len(row[column]) for row in full) for column in range(len(COLUMNS) + 2)] if full else []
    return ["  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in full]


def _html_rows(one: models.Variable) -> str:
    cells = [[*_cells(row)[:-1], value] for row, value in zip(one["rows"], _values(one), strict=True)]
    odd = [len({row[column] for row in cells}) > 1 or INSIDE in cells[0][column] for column in range(len(COLUMNS))]
    lines = []
    for row, texts in zip(one["rows"], cells, strict=True):
        marked = "".join(
            f"<td><strong>{escape(text)}</strong></td>" if is_odd else f"<td>{escape(text)}</td>"
            for text, is_odd in zip(texts, odd, strict=True)
        )
        lines.append(f"<tr><td>{escape(one['name'])}</td><td>{escape(rank_label(row['ranks']))}</td>{marked}</tr>")
    if one["missing"]:
        ranks = escape(rank_label(one["missing"]))
        lines.append(f"<tr><td></td><td>{ranks}</td><td><strong>not defined</strong></td></tr>")
    return "".join(lines)


def _unseen(variables: Sequence[models.Variable]) -> Iterator[str]:
    """Yield notes about variables that look the same on all ranks, but were not compared in full."""
    alike = [one for one in variables if not differs(one)]
    unseen = {one["name"]: one["rows"][0].get("unseen", "") for one in alike if one["rows"]}
    numbers = [name for name, words in unseen.items() if words.startswith(_NUMBERS)]
    others = [name for name, words in unseen.items() if words and (";" in words or name not in numbers)]
    if numbers:
        yield f"Numbers in tensors were not compared: {_list(numbers)}. `compare` does that."
    if others:
        yield f"Not looked at to the end: {_list(others)}."


_NUMBERS = "the numbers of"


def _list(names: Sequence[str]) -> str:
    rest = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {rest} more" if rest > 0 else "")
