"""REST: completing code with the names of a rank."""

from __future__ import annotations

from jupyter_dist.protocol import models, requests
from jupyter_dist.server.http.base import DistHandler
from jupyter_dist.server.http.operations import Answer, Operation, operation
from jupyter_dist.server.http.schemas import MAX_COMPLETE_BYTES


class CompleteHandler(DistHandler):
    """Completion on one rank."""

    @operation(
        Operation(
            "Complete code with the names of a rank",
            "execute",  # asking an object for its attributes may run its code
            {200: Answer("What fits, in the words of Jupyter's complete_reply", models.Completion)},
            body=requests.CompleteRequest,
            body_bytes=MAX_COMPLETE_BYTES,
            errors=("unknown_group", "unknown_rank", "group_not_ready", "rank_dead", "agent_unreachable", "timed_out"),
        )
    )
    async def post(self, name: str, rank: str) -> None:
        """Attributes while the rank is idle, its variables alone while it is busy."""
        found = await self.group(name).complete(int(rank), self.body["code"], self.body.get("cursor_pos"))
        self.answer(found)
