"""Methods of AsyncGroup."""

from __future__ import annotations

from jupyter_dist.client.asynchronous.group import AsyncGroup
from jupyter_dist.parts.curves.api import READING_SECONDS


async def curves_csv(group: AsyncGroup, execution_id: str | None = None) -> str:
    """Return every number of the curves of an execution as comma-separated values: curve, step, rank, value."""
    path = ("groups", group.id, "executions", execution_id or await group.last_begun(), "curves", "download")
    response = await group.client.api.fetch("GET", *path, timeout_seconds=READING_SECONDS)
    return response.body.decode()
