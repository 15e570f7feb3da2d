"""What clients may ask: completions at a cursor, and documentation of the name there."""

from __future__ import annotations

from jupyter_dist.protocol.operations.declaration import Answer, Operation
from jupyter_dist.protocol.operations.of_rank import ASKING
from jupyter_dist.protocol.wire.requests import MAX_ASKED_BODY_BYTES

from .models import CompleteRequest, CompletionModel, Inspection, InspectRequest

ANSWER_SECONDS = 1.0  # the user is typing; a rank that can answer needs a few milliseconds

OPERATIONS = (
    Operation(
        name="complete",
        verb="post",
        path="groups/{group}/ranks/{rank}/complete",
        right="execute",  # access to attributes may run code of users
        sentence="Complete code at the cursor (in characters; default: the end) on a rank: Jupyter's complete_reply.",
        details="Attributes are completed while the rank is idle, only variables while it is busy.",
        body=CompleteRequest,
        max_body_bytes=MAX_ASKED_BODY_BYTES,
        answer=Answer("The matches, in the format of Jupyter's complete_reply", CompletionModel),
        errors=(*ASKING, "rank_dead"),
        answer_seconds=ANSWER_SECONDS,
    ),
    Operation(
        name="inspect",
        verb="post",
        path="groups/{group}/ranks/{rank}/inspect",
        right="execute",  # access to attributes may run code of users
        sentence="Describe the name at the cursor, as `name?` does on a rank; as `name??` with `detail=1`.",
        details="A rank that runs a cell answers at once: with `busy`, and only for functions, classes and modules.",
        body=InspectRequest,
        max_body_bytes=MAX_ASKED_BODY_BYTES,
        answer=Answer("The documentation, in the format of Jupyter's inspect_reply", Inspection),
        errors=(*ASKING, "rank_dead"),
        answer_seconds=ANSWER_SECONDS,
    ),
)
AT_CURSOR = {"complete_request": "complete", "inspect_request": "inspect"}
