"""Which version of which cell ran on which ranks of a group: from the agent's reports, with code from the journal."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from jupyter_dist.protocol.models import models
from jupyter_dist.server.groups.group import ManagedGroup
from jupyter_dist.server.mirror.executions import MAX_KEPT
from jupyter_dist.server.mirror.mirror import GroupMirror
from jupyter_dist.server.part import ServerPart

from .models import DriftModel
from .replaying.missed import Processes, cells_of, with_code
from .replaying.replay import MAX_RUNS, in_order

MAX_CODE_CHARS = 4 << 20


class DriftServer(ServerPart):
    """Answers which cells ranks have missed."""

    async def drift(self, group: ManagedGroup) -> DriftModel:
        """Return the cells since the last restart, and the ranks that have missed them."""
        return await find_drift(group.mirror)


async def find_drift(group: GroupMirror) -> DriftModel:
    """Return the cells of a group since its last restart or resize, and which ranks have missed them.

    Raises:
        JupyterDistError: `group_not_ready`, if the group has ended; `agent_unreachable`, `incompatible`.
    """
    group.status.check_takes_cells()
    model, known = group.model(), group.executions.listed()
    begun = _of_generation(group, model, known)
    cells = await asyncio.to_thread(cells_of, begun, Processes.of(model))
    missed = [cell for cell in cells if cell.is_missed]
    codes = await _codes(group, [cell.model["execution_id"] for cell in sorted(missed, key=lambda cell: cell.first)])
    kept = [cell for cell in cells if not cell.is_missed or cell.model["execution_id"] in codes]
    if any(with_code(cell, codes.get(cell.model["execution_id"]))["offered"] for cell in missed):
        earlier = [run["id"] for run in begun if run["id"] not in codes]
        codes |= await _codes(group, earlier if len(begun) <= MAX_RUNS else [])
    return {
        "generation": model["generation"],
        "cells": await asyncio.to_thread(in_order, begun, Processes.of(model), kept, codes),
        "left_out": len(cells) - len(kept),
        "forgotten": len(known) >= MAX_KEPT,
    }


def _of_generation(
    group: GroupMirror, model: models.GroupModel, known: Sequence[models.ExecutionModel]
) -> list[models.ExecutionModel]:
    """Return the executions that began since the last restart, resize or restore and were not undone, oldest first.

    The numbers of ranks mean other processes before a resize, and new ranks have copies of what the others had. A
    restore replaces the variables of all ranks.
    """
    fields: Mapping[str, Any] = model
    resized = fields.get("resized")
    restored = max((run["ended_at"] or 0.0 for run in known if _has_restored(run)), default=0.0)
    since = max(model["started_at"] or 0.0, restored, resized["at"] if resized and resized["error"] is None else 0.0)
    begun = [run for run in known if run["started_at"] is not None and not run["silent"]]
    begun.sort(key=lambda run: group.executions.begin_seq(run["id"]) or 0)
    return [run for run in begun if (run["started_at"] or 0.0) >= since and "undone_at" not in run]


def _has_restored(run: models.ExecutionModel) -> bool:
    """Whether all ranks have the variables of a save since this execution."""
    transfer: Any = run.get("transfer")  # of a part
    return transfer is not None and transfer["action"] == "restore" and run["state"] == "ok"


async def _codes(group: GroupMirror, executions: Sequence[str]) -> dict[str, str]:
    """Return the code of the first of these executions, up to MAX_CODE_CHARS."""
    codes: dict[str, str] = {}
    left = MAX_CODE_CHARS
    for execution_id in executions:
        code = (await group.execution(execution_id)).get("code") or ""
        left -= len(code)
        if left < 0 and codes:
            break
        codes[execution_id] = code
    return codes
