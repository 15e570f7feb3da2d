"""The differences of a variable between ranks: the result of `group.compare()` as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from jupyter_dist.client.answers.base import ApiList, listed
from jupyter_dist.client.answers.infos import NotComparedInfo, TensorDifferenceInfo
from jupyter_dist.client.answers.texts import format_bytes
from jupyter_dist.client.bundles.bundle import rank_label
from jupyter_dist.protocol.models import differences as models


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
        return "\n".join([*lines, *notes(model)])


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


def notes(model: Mapping[str, Any]) -> Iterator[str]:
    """Yield notes about ranks that were not asked, and what is not listed."""
    if model["busy"]:
        yield f"Busy: {rank_label(model['busy'])}. They answer between cells."
    if model["silent"]:
        yield f"No answer: {rank_label(model['silent'])}."
    if model["left_out"]:
        yield f"Not listed: {model['left_out']} more."
