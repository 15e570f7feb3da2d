"""The variables of ranks and how they differ: what `group.variables()` and `group.compare()` return, and their text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from jupyter_dist.protocol import differences as models

from .bundle import rank_label
from .held import Held, format_bytes

COLUMNS = ("type", "shape", "dtype", "device", "bytes", "value")


class Variables:
    """The variables of ranks; `model` is the answer of the API (docs/api.md, Variables)."""

    def __init__(self, model: models.Variables) -> None:
        self.model = model

    def __iter__(self) -> Iterator[models.Variable]:
        return iter(self.model["variables"])

    def __len__(self) -> int:
        return len(self.model["variables"])

    def __getitem__(self, name: str) -> models.Variable:
        found = next((one for one in self if one["name"] == name), None)
        if found is None:
            raise KeyError(name)
        return found

    @property
    def memory(self) -> Held:
        """Return what holds the memory of each rank: variables, results in Out, calls of the last traceback."""
        return Held(self.model.get("memory", []), list(_notes(self.model)))

    @property
    def differing(self) -> list[models.Variable]:
        """Return those that are not the same on all ranks that answered."""
        return [one for one in self if differs(one)]

    def __repr__(self) -> str:
        return "\n".join([*_table(list(_rows(self))), *_notes(self.model)]) or "No variables."

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in ("name", "ranks", *COLUMNS))
        body = "".join(_html_rows(one) for one in self)
        notes = "".join(f"<p>{escape(note)}</p>" for note in _notes(self.model))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"


class Comparison:
    """In what the tensors of a variable differ; `model` is the answer of the API (docs/api.md, Comparison)."""

    def __init__(self, model: models.Comparison) -> None:
        self.model = model

    @property
    def differences(self) -> list[models.TensorDifference]:
        """Return an entry per tensor and set of ranks that differ from the others."""
        return self.model["differences"]

    @property
    def is_equal(self) -> bool:
        """Whether all ranks that answered have it, and all tensors that were compared are the same, bit by bit."""
        return not self.differences and not self.model["missing"]

    def __repr__(self) -> str:
        model, found = self.model, self.differences
        size = format_bytes(model["bytes"])
        tensors = f"{model['tensors']} tensor{'' if model['tensors'] == 1 else 's'}"
        head = f"{model['name']}: {tensors}, {size}, {rank_label(model['ranks'])}: "
        told = f"{len(found)} difference{'s' if len(found) > 1 else ''}" if found else "all equal"
        lines = [head + told]
        names = [one["path"] or model["name"] for one in found]
        width = max(map(len, names), default=0)
        if model["missing"]:
            lines.append(f"  not defined on {rank_label(model['missing'])}")
        lines += [f"  {name:{width}}  {difference_text(one)}" for name, one in zip(names, found, strict=True)]
        return "\n".join([*lines, *_notes(model)])


def differs(variable: models.Variable) -> bool:
    """Return whether a variable is not the same on all ranks."""
    return len(variable["rows"]) > 1 or bool(variable["missing"])


def difference_text(one: models.TensorDifference) -> str:
    """Return a line about one difference."""
    ranks, reference = rank_label(one["ranks"]), rank_label(one["reference"])
    if one["what"] == "missing":
        return f"missing on {ranks}"
    if one["what"] == "shape":
        return f"{ranks}: {one['dtype']}{one['shape']}, another shape or dtype than {reference}"
    if not one["compared"]:
        return f"{ranks}: differs from {reference}; by how much was not compared"
    most = "" if one["max_abs"] is None else f", by at most {one['max_abs']:.3g}"
    odd = ", nan or inf" if one["nonfinite"] else ""
    return f"{ranks}: {one['different']} of {one['compared']} elements differ from {reference}{most}{odd}"


def _cells(row: models.VariableRow) -> list[str]:
    size = "" if row["bytes"] is None else format_bytes(row["bytes"])
    return [row["type"], row["shape"], row["dtype"], row["device"], size, row["value"]]


def _rows(variables: Variables) -> Iterator[list[str]]:
    for one in variables:
        marked = "*" if differs(one) else " "
        for number, row in enumerate(one["rows"]):
            yield [f"{marked} {one['name']}" if number == 0 else "", rank_label(row["ranks"]), *_cells(row)]
        if one["missing"]:
            yield ["", rank_label(one["missing"]), "not defined"]


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    full = [[*row, *[""] * (len(COLUMNS) + 2 - len(row))] for row in rows]
    widths = [max(len(row[column]) for row in full) for column in range(len(COLUMNS) + 2)] if full else []
    return ["  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in full]


def _html_rows(one: models.Variable) -> str:
    cells = [_cells(row) for row in one["rows"]]
    odd = [len({row[column] for row in cells}) > 1 for column in range(len(COLUMNS))]
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


def _notes(model: models.Variables | models.Comparison) -> Iterator[str]:
    if model["busy"]:
        yield f"Busy: {rank_label(model['busy'])}. They answer between cells."
    if model["silent"]:
        yield f"No answer: {rank_label(model['silent'])}."
    if model["left_out"]:
        yield f"Left out: {model['left_out']}."
