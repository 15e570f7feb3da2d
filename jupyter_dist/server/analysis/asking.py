"""Asks many ranks between cells: some are busy, and some give no answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from jupyter_dist.protocol.errors import JupyterDistError

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
