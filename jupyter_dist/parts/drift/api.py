"""What clients may ask: which cells ran on which ranks, and which ranks have missed them."""

from __future__ import annotations

from jupyter_dist.protocol.operations.declaration import Answer, Operation

from .models import DriftModel

OPERATIONS = (
    Operation(
        name="drift",
        verb="get",
        path="groups/{group}/drift",
        right="read",  # from what the server knows; asks no rank
        sentence="Return the versions of cells that ran on ranks since the last restart, and which ranks missed them.",
        answer=Answer("The cells since the last restart", DriftModel),
        errors=("unknown_group", "group_not_ready", "incompatible", "agent_unreachable"),
    ),
)
