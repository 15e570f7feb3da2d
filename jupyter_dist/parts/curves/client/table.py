"""The curves of an execution, as `group.curves()` returns them, and their text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from jupyter_dist.client.bundles.bundle import rank_label
from jupyter_dist.parts.curves.reading import Curve
from jupyter_dist.protocol.ranks import RankSet

_HEAD = ("curve", "ranks", "numbers", "steps", "first", "last", "lowest", "highest")


class CurveTable(Mapping[str, dict[int, Curve]]):
    """Curves by name, then by rank; `model` is the answer of the API (docs/api.md, Curves)."""

    def __init__(self, model: Mapping[str, Any]) -> None:
        self.model = model
        self._by_name = {one["name"]: {part["rank"]: _curve(part) for part in one["ranks"]} for one in model["curves"]}

    def __getitem__(self, name: str) -> dict[int, Curve]:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def __repr__(self) -> str:
        rows = [_HEAD, *(_row(name, by_rank) for name, by_rank in self.items())]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows] if self else ["No curves."]
        return "\n".join([*lines, *_notes(self.model)])


def _curve(part: Mapping[str, Any]) -> Curve:
    return Curve(part["steps"], [math.nan if value is None else value for value in part["values"]])


def _row(name: str, by_rank: dict[int, Curve]) -> tuple[str, ...]:
    full = [curve for curve in by_rank.values() if curve.values]
    steps = [step for curve in full for step in curve.steps]
    finite = [value for curve in full for value in curve.values if math.isfinite(value)]
    ends = (_mean([curve.values[0] for curve in full]), _mean([curve.values[-1] for curve in full]))
    numbers = str(max((len(curve.values) for curve in full), default=0))
    shown = [f"{value:.4g}" for value in (*ends, min(finite, default=math.nan), max(finite, default=math.nan))]
    places = f"{min(steps)}-{max(steps)}" if steps else ""
    return name, rank_label(str(RankSet(by_rank))), numbers, places, *shown


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def _notes(model: Mapping[str, Any]) -> Iterator[str]:
    if model["left_out"]:
        yield f"{model['left_out']} numbers are not listed here; the CSV file has them."
    if model["unread_bytes"]:
        yield f"{model['unread_bytes']} bytes of the output, in its middle, were not read; their numbers are missing."
