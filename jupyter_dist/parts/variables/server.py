"""The variables of ranks side by side. Ranks answer between cells."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from jupyter_dist.protocol.models.differences import ComparisonModel, VariableOnRank
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.server.analysis.asking import Ask, BusyError, ask_all
from jupyter_dist.server.analysis.comparison import compare
from jupyter_dist.server.groups.group import ManagedGroup
from jupyter_dist.server.part import ServerPart

from . import models


class VariablesServer(ServerPart):
    """Lists and compares variables."""

    async def variables(self, group: ManagedGroup, ranks: str = "all") -> models.VariablesModel:
        """Return the variables of idle ranks; no code of users runs there."""
        group.mirror.status.check_awake()  # else its ranks would be listed as silent
        return await list_variables(partial(_ask, group), list(group.mirror.status.rank_set(ranks)))

    async def compare(self, group: ManagedGroup, name: str, ranks: str = "all") -> ComparisonModel:
        """Compare a variable between ranks."""
        group.mirror.status.check_awake()
        return await compare(partial(_ask, group), name, list(group.mirror.status.rank_set(ranks)))


async def _ask(group: ManagedGroup, rank: int, asked: dict[str, Any]) -> dict[str, Any]:
    """Ask a rank about its variables, between cells (docs/messaging.md)."""
    answer, _ = await group.mirror.ask("variables", json.dumps(asked).encode(), rank=rank)
    return dict(answer["reply"])


async def list_variables(ask: Ask, ranks: list[int]) -> models.VariablesModel:
    """Return the variables of these ranks, in the order of the first rank that has them; equal ones once.

    Raises:
        JupyterDistError: `agent_unreachable`, ...
    """

    async def of(rank: int) -> dict[str, Any]:
        answer = await ask(rank, {"do": "list"})
        if answer["busy"]:
            raise BusyError
        return answer

    asked = await ask_all(of, ranks)
    listed = {rank: answer["variables"] for rank, answer in asked.answers.items()}
    return {
        "ranks": str(RankSet(listed)),
        "busy": str(RankSet(asked.busy)),
        "silent": str(RankSet(asked.silent)),
        "left_out": max((answer["left_out"] for answer in asked.answers.values()), default=0),
        "variables": fold_variables(listed),
        "memory": [one["memory"] | {"rank": rank} for rank, one in asked.answers.items()],
    }


def fold_variables(listed: Mapping[int, Mapping[str, VariableOnRank]]) -> list[models.Variable]:
    """Group the ranks that have an equal variable under a name. Pure."""
    names = dict.fromkeys(name for variables in listed.values() for name in variables)
    return [_fold(name, listed) for name in names]


def _fold(name: str, listed: Mapping[int, Mapping[str, VariableOnRank]]) -> models.Variable:
    alike: dict[str, list[int]] = {}  # by the variable: all of thousands of ranks may differ
    missing = []
    for rank, variables in listed.items():
        if name in variables:
            alike.setdefault(json.dumps(variables[name], sort_keys=True), []).append(rank)
        else:
            missing.append(rank)
    rows: list[models.VariableRow] = [
        {**listed[ranks[0]][name], "ranks": str(RankSet(ranks))} for ranks in alike.values()
    ]
    return {"name": name, "rows": rows, "missing": str(RankSet(missing))}
