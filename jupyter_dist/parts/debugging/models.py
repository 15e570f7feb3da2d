"""What the API sends and takes about debuggers of ranks.

See protocol/models/models.py for what is generated from these types.
"""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from typing_extensions import NotRequired

from jupyter_dist.protocol.field import Field
from jupyter_dist.protocol.wire.requests import MAX_CODE_BYTES, Expression, json_value

_MESSAGE = {
    "type": "object",
    "maxProperties": 20,
    "propertyNames": {"type": "string", "maxLength": 100},
    "additionalProperties": json_value(4, MAX_CODE_BYTES),
}


class DebugRequest(TypedDict):
    """The body of POST .../debug."""

    message: Annotated[
        dict[str, Any],
        Field(
            "In the format of Jupyter's debug_request: `seq`, `type`, `command` and `arguments`.",
            schema=_MESSAGE,
        ),
    ]
    ranks: NotRequired[Expression]


class DebugReply(TypedDict):
    """The reply of one rank's debugger."""

    rank: int
    content: Annotated[dict[str, Any], Field("In the format of Jupyter's debug_reply.")]


class DebugReplies(TypedDict):
    """The replies of all ranks that were asked."""

    replies: list[DebugReply]
