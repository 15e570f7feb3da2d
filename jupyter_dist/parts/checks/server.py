"""The answers about checks: what an execution has, and the switch."""

from __future__ import annotations

from typing import Any, cast

from jupyter_dist.parts.checks import models
from jupyter_dist.server.groups.group import ManagedGroup
from jupyter_dist.server.part import ServerPart


class ChecksOperations(ServerPart):
    """Answers whether the training in a cell is right."""

    async def checks(self, group: ManagedGroup, execution_id: str) -> models.CellChecks:
        """Return the checks of a cell."""
        execution = group.mirror.executions.get(execution_id)
        status = group.mirror.model().get("parts") or {}
        return {
            "checks": cast("list[models.Check]", execution.get("checks") or []),
            "on": (status.get("checks") or {}).get("on", False),
        }

    async def check(self, group: ManagedGroup, name: str) -> models.ComparedModel:
        """Return which parts of a model differ between ranks."""
        answer, _ = await group.mirror.ask("check_model", name=name)
        found: models.ComparedModel = answer["found"]
        return found

    async def set_checks(self, group: ManagedGroup, on: bool) -> dict[str, Any]:
        """Switch checks on or off."""
        answer, _ = await group.mirror.ask("set_checks", on=on)
        return {"on": answer["on"]}
