"""The answers to `complete` and `inspect`, each of one rank."""

from __future__ import annotations

from typing import Any

from jupyter_dist.server.groups.group import ManagedGroup
from jupyter_dist.server.part import ServerPart
from jupyter_dist.transport.frames import Header

from . import models


class IntrospectionOperations(ServerPart):
    """Completions and documentation of a rank."""

    async def complete(
        self, group: ManagedGroup, rank: int, code: str, cursor_pos: int | None = None
    ) -> models.CompletionModel:
        """Complete the code before the cursor with the names of a rank.

        Raises:
            JupyterDistError: `unknown_rank`, `rank_dead`, `timed_out` if the rank cannot answer at once, ...
        """
        answer = await _ask(group, "complete", rank, code, cursor_pos)
        found: models.CompletionModel = {
            "matches": answer["matches"],
            "cursor_start": answer["cursor_start"],
            "cursor_end": answer["cursor_end"],
        }
        if "types" in answer:  # the rank runs no cell
            found["types"], found["signatures"] = answer["types"], answer["signatures"]
        return found

    async def inspect(
        self, group: ManagedGroup, rank: int, code: str, cursor_pos: int | None = None, detail: int = 0
    ) -> models.Inspection:
        """Return the documentation that a rank has of the name at the cursor."""
        answer = await _ask(group, "inspect", rank, code, cursor_pos, detail=detail)
        return {"found": answer["found"], "data": answer["data"], "busy": answer["busy"]}


async def _ask(
    group: ManagedGroup, request: str, rank: int, code: str, cursor_pos: int | None, **fields: Any
) -> Header:
    group.mirror.check_rank(rank)
    position = len(code) if cursor_pos is None else min(cursor_pos, len(code))
    payload = code.encode("utf-8", "replace")
    answer, _ = await group.mirror.ask(request, payload, rank=rank, cursor_pos=position, **fields)
    return answer
