"""The answers about checks: what an execution has, and the switch."""

from __future__ import annotations

from typing import Any, cast

from jupyter_dist.parts.checks import models
from jupyter_dist.protocol.wire import earlier
from jupyter_dist.server.groups.group import ManagedGroup
from jupyter_dist.server.part import ServerPart
from jupyter_dist.version import __version__


class ChecksOperations(ServerPart):
    """Answers whether the training in a cell is right."""

    async def checks(self, group: ManagedGroup, execution_id: str) -> models.CellChecks:
        """Return the checks of a cell."""
        execution = group.mirror.executions.get(execution_id)
        status = (group.mirror.model().get("parts") or {}).get("checks")
        if status is None and group.mirror.link.version not in ("", __version__):
            raise earlier.cannot("set_checks", group.mirror.link.version)
        return {
            "checks": cast("list[models.Check]", execution.get("checks") or []),
            "on": (status or {}).get("on", False),
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
