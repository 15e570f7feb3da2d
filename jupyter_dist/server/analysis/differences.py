"""The variables of ranks side by side. Ranks answer between cells; comparison.py compares one of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models import differences as models
from jupyter_dist.protocol.ranks import RankSet

_SILENT = ("rank_dead", "timed_out", "group_not_ready", "node_unreachable")

Ask = Callable[[int, dict[str, Any]], Awaitable[dict[str, Any]]]


class BusyError(Exception):
    """The rank runs a cell."""


@dataclass
class Answered:
    """The answers of the ranks that gave one, and why others did not."""

    answers: dict[int, Any] = field(default_factory=dict)
    busy: list[int] = field(default_factory=list)
    silent: list[int] = field(default_factory=list)


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


def fold_variables(listed: Mapping[int, Mapping[str, models.VariableOnRank]]) -> list[models.Variable]:
    """Group the ranks that have an equal variable under a name. Pure."""
    names = dict.fromkeys(name for variables in listed.values() for name in variables)
    return [_fold(name, listed) for name in names]


def _fold(name: str, listed: Mapping[int, Mapping[str, models.VariableOnRank]]) -> models.Variable:
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


async def ask_all(ask: Callable[[int], Awaitable[Any]], ranks: list[int]) -> Answered:
    """Ask all of these ranks. An error of one rank is returned; an error that concerns all of them is raised."""
    answers = await asyncio.gather(*map(ask, ranks), return_exceptions=True)
    asked = Answered()
    for rank, answer in zip(ranks, answers, strict=True):
        if isinstance(answer, BusyError):
            asked.busy.append(rank)
        elif isinstance(answer, JupyterDistError) and answer.code in _SILENT:
            asked.silent.append(rank)
        elif isinstance(answer, BaseException):
            raise answer
        else:
            asked.answers[rank] = answer
    return asked
