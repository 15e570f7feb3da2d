"""What clients may ask: where the time of a cell goes, and why it is slow."""

from __future__ import annotations

from jupyter_dist.protocol.models import pace
from jupyter_dist.protocol.operations.declaration import Answer, Operation
from jupyter_dist.protocol.operations.of_execution import READING

from .text import pace_text

OPERATIONS = (
    Operation(
        name="pace",
        verb="get",
        path="groups/{group}/executions/{execution_id}/pace",
        right="read",
        sentence="Return where the time of a cell goes, or went: by rank, by line and by step, and why it is slow.",
        details="Cells that run for less than four seconds are not watched.",
        answer=Answer("Where its time goes", pace.Pace),
        errors=(*READING, "not_found"),
        is_of_last=True,
        command="pace",
        text=pace_text,
        tool="Say why a cell is slow: which rank the others wait for, waiting for data, memory that grows, with the "
        "line of code; and where its time goes by rank and line. By default of the last cell, which must have run for "
        "4 s.",
    ),
)
