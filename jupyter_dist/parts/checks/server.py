"""The answers about checks: what an execution has, and the switch."""

from __future__ import annotations

import json
from typing import Any, cast

from jupyter_dist.parts.checks import models
from jupyter_dist.protocol.models import differences
from jupyter_dist.protocol.wire import earlier
from jupyter_dist.server.analysis.comparison import compare
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

    async def check(self, group: ManagedGroup, name: str) -> differences.ComparisonModel:
        """Return which parts of a model, and of what trains it, differ between ranks."""
        group.mirror.status.check_awake()

        async def ask(rank: int, asked: dict[str, Any]) -> dict[str, Any]:
            answer, _ = await group.mirror.ask("check_model", json.dumps(asked).encode(), rank=rank)
            return dict(answer["reply"])

        return await compare(ask, name, list(range(group.mirror.world_size)))

    async def set_checks(self, group: ManagedGroup, on: bool) -> dict[str, Any]:
        """Switch checks on or off."""
        answer, _ = await group.mirror.ask("set_checks", on=on)
        return {"on": answer["on"]}
