"""Which version of which cell ran on which ranks of a group: from what its agent told, with code from its journal."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from jupyter_dist.protocol import models
from jupyter_dist.protocol.differences import Drift
from jupyter_dist.server.mirror.executions import MAX_KEPT
from jupyter_dist.server.script.missed import Cell, Processes, cells_of, ordered, with_code

from .group import ManagedGroup

MAX_CODE_CHARS = 4 << 20


async def find_drift(group: ManagedGroup) -> Drift:
    """Return the cells of a group since its last restart, and which ranks have missed them.

    Raises:
        JupyterDistError: `group_not_ready`, if the group has ended; `agent_unreachable`, `incompatible`.
    """
    group.status.check_takes_cells()
    model, known = group.model(), group.executions.listed()
    begun = _of_generation(group, model, known)
    cells = await asyncio.to_thread(cells_of, begun, Processes.of(model))
    codes = await _codes(group, [cell for cell in cells if cell.is_missed])
    shown = await asyncio.to_thread(ordered, cells, codes)
    kept = [cell for cell in shown if not cell.is_missed or cell.model["execution_id"] in codes]
    return {
        "generation": model["generation"],
        "cells": [with_code(cell, codes.get(cell.model["execution_id"])) for cell in kept],
        "left_out": len(shown) - len(kept),
        "forgotten": len(known) >= MAX_KEPT,
    }


def _of_generation(
    group: ManagedGroup, model: models.Group, known: Sequence[models.Execution]
) -> list[models.Execution]:
    """Return the executions that began since the last restart, oldest first."""
    since = model["started_at"] or 0.0
    begun = [run for run in known if run["started_at"] is not None and not run["silent"]]
    begun.sort(key=lambda run: group.executions.begin_seq(run["id"]) or 0)
    return [run for run in begun if (run["started_at"] or 0.0) >= since]


async def _codes(group: ManagedGroup, cells: Sequence[Cell]) -> dict[str, str]:
    """Return the code of the first of these cells, up to MAX_CODE_CHARS, by their execution."""
    codes: dict[str, str] = {}
    left = MAX_CODE_CHARS
    for cell in sorted(cells, key=lambda cell: cell.first):
        execution_id = cell.model["execution_id"]
        code = (await group.execution(execution_id)).get("code") or ""
        left -= len(code)
        if left < 0 and codes:
            break
        codes[execution_id] = code
    return codes
