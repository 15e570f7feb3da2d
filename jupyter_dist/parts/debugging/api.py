"""What clients may ask: the debuggers of ranks."""

from __future__ import annotations

from jupyter_dist.protocol.operations.declaration import Answer, Operation
from jupyter_dist.protocol.operations.of_group import ASKING
from jupyter_dist.protocol.wire.requests import MAX_ASKED_BODY_BYTES

from .models import DebugReplies, DebugRequest

OPERATIONS = (
    Operation(
        name="debug",
        verb="post",
        path="groups/{group}/debug",
        right="execute",
        sentence="Send a request to the debuggers of ranks, and return their replies.",
        details="The first is `initialize`, which imports debugpy. `events` waits for the next events of a rank.",
        body=DebugRequest,
        max_body_bytes=MAX_ASKED_BODY_BYTES,
        answer=Answer("Their replies, in the format of Jupyter's debug_reply", DebugReplies, field="replies"),
        errors=(*ASKING, "bad_ranks", "rank_dead"),
    ),
)
