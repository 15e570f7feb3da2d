"""The operations: their requests go to the group's agent, which has their cells."""

from __future__ import annotations

from typing import Any

from jupyter_dist.parts.undo.models import UndoableCells
from jupyter_dist.protocol.models.models import ExecutionModel
from jupyter_dist.protocol.wire.earlier import FIRST_PROTOCOL
from jupyter_dist.server.groups.group import ManagedGroup
from jupyter_dist.server.groups.operations import execution_id_of
from jupyter_dist.server.part import ServerPart


class UndoOperations(ServerPart):
    """Asks agents for the cells that can be undone, and to undo them."""

    async def undoable(self, group: ManagedGroup) -> UndoableCells:
        """Return the cells that can be undone now, newest first."""
        if group.mirror.status.protocol == FIRST_PROTOCOL:
            return {"cells": []}  # its ranks keep no undo
        answer, _ = await group.mirror.ask("undoable")
        return {name: list(answer.get(name) or []) for name in ("cells", "undone", "lost")}  # type: ignore[return-value]

    async def undo(
        self, group: ManagedGroup, count: int | None = None, executions: list[str] | None = None, key: str | None = None
    ) -> ExecutionModel:
        """Queue the undo of the last cells that kept undo, or of the named ones; return its execution.

        Raises:
            JupyterDistError: `cannot_undo`, if their state was not kept, or is not kept any more.
        """
        return await self._begin(group, "undo", count, executions, key)

    async def redo(
        self, group: ManagedGroup, count: int | None = None, executions: list[str] | None = None, key: str | None = None
    ) -> ExecutionModel:
        """Queue the redo of the cells that were undone last, or of the named ones; return its execution.

        Raises:
            JupyterDistError: `cannot_undo`, if a cell may have changed something since.
        """
        return await self._begin(group, "redo", count, executions, key)

    async def _begin(
        self, group: ManagedGroup, do: str, count: int | None, executions: list[str] | None, key: str | None
    ) -> ExecutionModel:
        mirror, execution_id = group.mirror, execution_id_of(key)
        mirror.status.check_takes_cells()
        fields: dict[str, Any] = {"execution_id": execution_id, "count": count, "executions": executions}
        await mirror.ask(do, take=mirror.on_submitted, **fields)
        return mirror.executions.get(execution_id)
