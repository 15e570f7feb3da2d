"""The values of names as text: a line for each value, with its ranks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jupyter_dist.protocol.ranks import RankSet

if TYPE_CHECKING:
    from . import models


def peeked_text(answer: models.Peeked) -> str:
    """Return lines about a Peeked of docs/reference/http.md."""
    return "\n".join(_lines(answer)) or "There are no names."


def _lines(answer: models.Peeked) -> Iterator[str]:
    for value in answer["values"]:
        kind = " ".join(filter(None, (value["type"], value["dtype"], value["shape"], value["device"])))
        shown = f"{value['value']}  ({kind})" if value["value"] else kind
        place = f", in {value['place']}" if value["place"] else ""
        yield f"{value['name']} = {shown}  on {_name(value['ranks'])}{place}"
    for name, ranks in answer["missing"].items():
        yield f"{name} is not there on {_name(ranks)}."
    for silent in answer["silent"]:
        yield f"Rank {silent['rank']} does not answer: {silent['why']}"


def _name(ranks: str) -> str:
    return f"rank{'s' if len(RankSet.from_text(ranks)) > 1 else ''} {ranks}"
