"""What clients may ask: the trace of a profiled cell."""

from __future__ import annotations

from jupyter_dist.protocol.operations.declaration import Answer, Operation
from jupyter_dist.protocol.operations.of_execution import READING

OPERATIONS = (
    Operation(
        name="trace_file",
        verb="get",
        path="groups/{group}/executions/{execution_id}/trace",
        right="read",
        sentence="Download the trace of a profiled cell.",
        answer=Answer(
            "A Chrome trace of all its ranks, each a process, for Perfetto and chrome://tracing",
            headers=("Content-Disposition",),
        ),
        errors=(*READING, "not_found", "too_many"),
        is_capped=True,
    ),
)
