"""The variables of ranks and their differences: the results of `group.variables()` and `group.compare()` as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from jupyter_dist.client.answers.base import ApiList, listed
from jupyter_dist.client.answers.infos import NotComparedInfo, TensorDifferenceInfo, VariableInfo
from jupyter_dist.client.bundles.bundle import rank_label
from jupyter_dist.protocol.models import differences as models

from .holders import MemoryHolders, format_bytes

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
        return MemoryHolders(self.model.get("memory", []), list(_notes(self.model)))

    @property
    def differing(self) -> ApiList[VariableInfo]:
        """Return the variables that are not the same on all ranks that answered."""
        return listed(VariableInfo, filter(differs, self.model["variables"]))

    def __repr__(self) -> str:
        return (
            "\n".join([*_table(list(_rows(self))), *_notes(self.model), *_unseen(self.model["variables"])])
            or "No variables."
        )

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in ("name", "ranks", *COLUMNS))
        body = "".join(_html_rows(one) for one in self.model["variables"])
        notes = "".join(f"<p>{escape(note)}</p>" for note in [*_notes(self.model), *_unseen(self.model["variables"])])
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"


class VariableComparison:
    """The differences of a variable between ranks; `model` is the answer of the API (docs/api.md, Comparison)."""

    def __init__(self, model: models.ComparisonModel) -> None:
        self.model = model

    @property
    def differences(self) -> ApiList[TensorDifferenceInfo]:
        """Return an entry per tensor or value and set of ranks that differ from the others."""
        return listed(TensorDifferenceInfo, self.model["differences"])

    @property
    def not_compared(self) -> ApiList[NotComparedInfo]:
        """Return the parts that were not compared, each with the reason."""
        return listed(NotComparedInfo, self.model["not_compared"])

    @property
    def outcome(self) -> str:
        """Return `equal`, `differs` or `not_compared`: nothing that was compared differs, but some was not."""
        return self.model["outcome"]

    @property
    def is_equal(self) -> bool:
        """Whether everything was compared on all ranks that were asked, and is the same, bit by bit."""
        return self.outcome == "equal"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"

    def __repr__(self) -> str:
        model, found = self.model, self.model["differences"]
        lines = [f"{model['name']}: {_compared_text(model)}: {_outcome_text(model)}"]
        names = [one["path"] or model["name"] for one in found]
        width = max(map(len, names), default=0)
        if model["missing"]:
            lines.append(f"  not defined on {rank_label(model['missing'])}")
        lines += [f"  {name:{width}}  {difference_text(one)}" for name, one in zip(names, found, strict=True)]
        lines += [
            f"  {one['path'] or model['name']}  not compared on {rank_label(one['ranks'])}: {one['why']}"
            for one in model["not_compared"]
        ]
        return "\n".join([*lines, *_notes(model)])


def _compared_text(model: models.ComparisonModel) -> str:
    """Return the name of the compared variable, and the ranks."""
    words = []
    if model["tensors"] or not model["values"]:
        words.append(f"{_number(model['tensors'], 'tensor')}, {format_bytes(model['bytes'])}")
    if model["sharded"]:
        words.append(f"{model['sharded']} of them divided over ranks")
    if model["values"]:
        words.append(_number(model["values"], "other value" if words else "value"))
    return ", ".join([*words, rank_label(model["ranks"])])


def _outcome_text(model: models.ComparisonModel) -> str:
    num_gaps = len(model["not_compared"])
    told = {
        "equal": "all equal",
        "differs": _number(len(model["differences"]) + bool(model["missing"]), "difference"),
        "not_compared": "what was compared is equal" if model["tensors"] or model["values"] else "nothing was compared",
    }[model["outcome"]]
    return f"{told}, {_number(num_gaps, 'part')} not compared" if num_gaps else told


def _number(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def differs(variable: models.Variable) -> bool:
    """Return whether ranks have something else under a name, as far as the listing looked."""
    return len(variable["rows"]) > 1 or bool(variable["missing"])


def difference_text(one: models.TensorDifference) -> str:
    """Return a line about one difference."""
    ranks, reference = rank_label(one["ranks"]), rank_label(one["reference"])
    if one["what"] == "missing":
        return f"missing on {ranks}"
    if one["what"] == "values":
        return f"{ranks}: {_numbers_text(one, reference)}"
    words = {"value": f", {reference}: ", "shape": f", another shape or dtype than {reference}: "}
    return f"{ranks}: {one['found']}{words.get(one['what'], f', where {reference} has ')}{one['expected'] or 'others'}"


def _numbers_text(one: models.TensorDifference, reference: str) -> str:
    """Return how many of the compared numbers of a tensor differ."""
    if not one["compared"]:
        return f"differs from {reference}; by how much was not compared"
    if not one["different"]:
        looked = f"the first {one['compared']} of {one['elements']} elements are equal"
        return f"differs from {reference}; {looked}, and the others were not compared"
    most = "" if one["max_abs"] is None else f", by at most {one['max_abs']:.3g}"
    if one["max_abs"] == 0 and not one["nonfinite"]:
        most = ", in the sign of zero alone"
    odd = ", nan or inf" if one["nonfinite"] else ""
    part = "" if one["compared"] >= one["elements"] else f" (of {one['elements']} in all)"
    return f"{one['different']} of {one['compared']} elements{part} differ from {reference}{most}{odd}"


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


def _notes(model: models.VariablesModel | models.ComparisonModel) -> Iterator[str]:
    if model["busy"]:
        yield f"Busy: {rank_label(model['busy'])}. They answer between cells."
    if model["silent"]:
        yield f"No answer: {rank_label(model['silent'])}."
    if model["left_out"]:
        yield f"Not listed: {model['left_out']} more."


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
