"""What the API sends about curves: numbers with a name that recur in what ranks print.

See protocol/models/models.py for what is generated from these types.
"""

from __future__ import annotations

from typing import Annotated, TypedDict

from jupyter_dist.protocol.field import Field

MAX_NUMBERS = 50_000  # the event loop makes JSON of so many in a few hundredths of a second


class CurveOfRank(TypedDict):
    """The numbers of one rank under one name."""

    rank: int
    steps: Annotated[list[int], Field("The step of each number, if steps rise on every rank; else a count from 0.")]
    values: Annotated[list[float | None], Field("As printed, in seconds if with a unit of time; null is nan or inf.")]


class CurveModel(TypedDict):
    """The numbers of all ranks under one name."""

    name: str
    ranks: list[CurveOfRank]


class CurvesModel(TypedDict):
    """The curves of an execution, in the order in which they appeared."""

    execution_id: str
    curves: list[CurveModel]
    left_out: Annotated[int, Field("How many numbers are not listed, the last of all; the file has them.")]
    unread_bytes: Annotated[int, Field("Of the log, in the middle of a very long output; their numbers are missing.")]
