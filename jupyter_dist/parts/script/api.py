"""What clients may ask: the cells of a notebook as a script."""

from __future__ import annotations

from jupyter_dist.protocol.operations.declaration import Answer, Operation
from jupyter_dist.protocol.wire.requests import MAX_CODE_BODY_BYTES

from .models import Script, ScriptRequest

OPERATIONS = (
    Operation(
        name="script",
        verb="post",
        path="groups/{group}/script",
        right="read",
        why_not_execute="It is a POST because the notebook's cells are sent; it writes no file and runs nothing.",
        sentence="Return the cells of a notebook that ran on ranks as a script for torchrun.",
        body=ScriptRequest,
        max_body_bytes=MAX_CODE_BODY_BYTES,
        answer=Answer("The script", Script),
        errors=("unknown_group", "not_found", "too_large", "agent_unreachable", "timed_out"),
    ),
)
