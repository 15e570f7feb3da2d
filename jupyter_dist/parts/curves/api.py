"""What clients may ask: the curves of an execution, as a list and as comma-separated values."""

from __future__ import annotations

from jupyter_dist.protocol.operations.declaration import Answer, Operation
from jupyter_dist.protocol.operations.of_execution import READING

from .models import MAX_NUMBERS, CurvesModel

READING_SECONDS = 60.0  # reading a long log takes seconds

OPERATIONS = (
    Operation(
        name="curves",
        verb="get",
        path="groups/{group}/executions/{execution_id}/curves",
        right="read",
        sentence="Return the curves of an execution: numbers with a name that recur in the output of its ranks.",
        details="All lines so far are read, including lines that the view leaves out.",
        answer=Answer(f"The curves; at most {MAX_NUMBERS} numbers", CurvesModel),
        is_of_last=True,
        errors=(*READING, "too_many"),
        is_capped=True,
        answer_seconds=READING_SECONDS,
    ),
    Operation(
        name="curves_file",
        verb="get",
        path="groups/{group}/executions/{execution_id}/curves/download",
        right="read",
        sentence="Download the curves of an execution as comma-separated values.",
        answer=Answer("curve,step,rank,value", content_type="text/csv", headers=("Content-Disposition",)),
        errors=(*READING, "too_many"),
        is_capped=True,
        answer_seconds=READING_SECONDS,
    ),
)
