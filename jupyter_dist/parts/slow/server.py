"""The answer to `pace`: what the agent has found out, of a cell that runs or has ended."""

from __future__ import annotations

from typing import cast

from jupyter_dist.parts.slow import models
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.server.groups.group import ManagedGroup
from jupyter_dist.server.part import ServerPart


class SlowOperations(ServerPart):
    """Answers where the time of a cell goes."""

    async def pace(self, group: ManagedGroup, execution_id: str) -> models.Pace:
        """Return where the time of a cell goes, or went. Raises JupyterDistError `not_found`."""
        execution = group.mirror.executions.get(execution_id)
        found = cast("models.Pace | None", execution.get("pace"))
        if found is None and execution["state"] == "running":
            answer, _ = await group.mirror.ask("pace", execution_id=execution_id)
            found = answer["pace"]
        if found is None:
            message = "Nothing is known of the pace of this cell."
            hint = "Cells are watched that run for four seconds and longer. Ask again, or look at rank_seconds."
            raise JupyterDistError("not_found", message, hint)
        return found
