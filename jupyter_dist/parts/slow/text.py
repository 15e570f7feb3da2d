"""The pace of a cell as text: why it is slow, and where its time goes by rank, by line and by step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jupyter_dist.protocol.operations.declaration import finding_lines

if TYPE_CHECKING:
    from . import models


_HEAD = ("rank", "compute", "communicate", "wait", "for", "input")


def pace_text(model: models.Pace) -> str:
    """Return lines about a Pace of docs/api.md."""
    parts = [_causes(model), _ranks(model), _lines(model), _steps(model), model["unknown"]]
    return "\n".join(line for part in parts for line in part)


def _causes(model: models.Pace) -> Iterator[str]:
    if not model["causes"]:
        yield f"Nothing was found that makes it slow, in {model['seconds']:.0f} s."
    yield from finding_lines(model["causes"], "To try")


def _ranks(model: models.Pace) -> Iterator[str]:
    if not model["ranks"]:
        return
    rows = [_HEAD, *map(_row, model["ranks"])]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(map(str.rjust, row, widths))


def _row(rank: models.RankPace) -> tuple[str, ...]:
    compute, communicate, wait, loading = (f"{rank[name]:.0%}" for name in ("compute", "communicate", "wait", "input"))
    for_whom = "" if rank["waits_for"] is None or rank["wait"] < 0.005 else f"rank {rank['waits_for']}"
    return str(rank["rank"]), compute, communicate, wait, for_whom, loading


def _lines(model: models.Pace) -> Iterator[str]:
    for share in model["lines"]:
        line = share["line"]
        who = f"rank {share['ranks']}" if share["ranks"].isdigit() else f"ranks {share['ranks']}"
        yield f"{share['share']:4.0%}  {line['name']}:{line['line']}  {line['code']}  ({who})"


def _steps(model: models.Pace) -> Iterator[str]:
    steps = model["steps"]
    if steps is None:
        return
    collectives = "" if steps["collectives"] is None else f", {steps['collectives']} collectives each"
    first = steps["trend"][0]
    before = f"; {first:.3g} s at first" if abs(first - steps["seconds"]) > 0.1 * first else ""
    yield f"A step takes {steps['seconds']:.3g} s{collectives}{before}."
