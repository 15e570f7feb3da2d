"""REST: code completion with the names of a rank."""

from __future__ import annotations

from jupyter_dist.protocol import models, requests
from jupyter_dist.server.http.base import DistHandler
from jupyter_dist.server.http.operations import Answer, Operation, operation
from jupyter_dist.server.http.schemas import MAX_COMPLETE_BYTES


class CompleteHandler(DistHandler):
    """Code completion on one rank."""

    @operation(
        Operation(
            "Complete code with the names of a rank",
            "execute",  # attribute access may run user code
            {200: Answer("The matches, in the format of Jupyter's complete_reply", models.Completion)},
            body=requests.CompleteRequest,
            body_bytes=MAX_COMPLETE_BYTES,
            errors=("unknown_group", "unknown_rank", "group_not_ready", "rank_dead", "agent_unreachable", "timed_out"),
        )
    )
    async def post(self, name: str, rank: str) -> None:
        """Complete attributes while the rank is idle, only variables while it is busy."""
        found = await self.group(name).complete(int(rank), self.body["code"], self.body.get("cursor_pos"))
        self.answer(found)
