"""Passes requests of debuggers to ranks."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from jupyter_dist.server.groups.group import ManagedGroup
from jupyter_dist.server.part import ServerPart

from .models import DebugReplies


class DebuggingOperations(ServerPart):
    """Answers requests of a page's debugger."""

    async def debug(self, group: ManagedGroup, message: dict[str, Any], ranks: str = "all") -> DebugReplies:
        """Send a debug_request of Jupyter's to the debuggers of ranks."""
        mirror, payload = group.mirror, json.dumps(message).encode()
        chosen = list(mirror.status.rank_set(ranks))
        answers = await asyncio.gather(*(mirror.ask("debug", payload, rank=rank) for rank in chosen))
        return {
            "replies": [
                {"rank": rank, "content": answer["reply"]} for rank, (answer, _) in zip(chosen, answers, strict=True)
            ]
        }
