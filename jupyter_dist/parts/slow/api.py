"""What clients may ask and what a cell shows: where its time goes, and why it is slow."""

from __future__ import annotations

from typing import Annotated

from jupyter_dist.protocol.field import Field
from jupyter_dist.protocol.operations.declaration import Answer, CellNote, Operation
from jupyter_dist.protocol.operations.of_execution import READING

from .models import Pace, SlowCause
from .text import pace_text

EXECUTION_FIELDS = {
    "slowness": Annotated[list[SlowCause], Field("Why it is slow, while it runs; the costliest first, at most 3.")],
    "pace": Annotated[Pace, Field("Where its time went, of an ended cell that was watched. Not in lists.")],
}
NOT_IN_LISTS = ("pace",)
CELL_NOTES = (CellNote("slowness", "slow", same_by=("kind", "ranks")),)
OPERATIONS = (
    Operation(
        name="pace",
        verb="get",
        path="groups/{group}/executions/{execution_id}/pace",
        right="read",
        sentence="Return where the time of a cell goes, or went: by rank, by line and by step, and why it is slow.",
        details="Cells that run for less than four seconds are not watched.",
        answer=Answer("Where its time goes", Pace),
        errors=(*READING, "not_found"),
        is_of_last=True,
        command="pace",
        text=pace_text,
        tool="Say why a cell is slow: which rank the others wait for, waiting for data, memory that grows, with the "
        "line of code; and where its time goes by rank and line. By default of the last cell, which must have run for "
        "4 s.",
    ),
)
