"""Finds the ranks that took much longer than others in a cell, as labextension/src/model/outputs/lateness.ts does."""

from __future__ import annotations

from collections.abc import Collection

from jupyter_dist.protocol.models.models import ExecutionModel, RanksStatus
from jupyter_dist.protocol.ranks import RankSet, parse_ranks

LATE_SECONDS = 1


def is_late(seconds: Collection[float]) -> bool:
    """Return whether the slowest took longer than the fastest by a second, and by a fifth of its time."""
    slowest = max(seconds, default=0.0)
    span = slowest - min(seconds, default=0.0)
    return span >= LATE_SECONDS and span >= slowest / 5


def statuses_apart(execution: ExecutionModel, world_size: int) -> list[RanksStatus]:
    """Return the statuses of an execution, with late ranks apart: a status has the time of its slowest rank."""
    seconds = {int(rank): one for rank, one in execution.get("rank_seconds", {}).items()}
    if not is_late(seconds.values()):
        return execution["statuses"]
    fastest = min(seconds.values())
    apart: list[RanksStatus] = []
    for status in execution["statuses"]:
        parts: dict[bool, list[int]] = {}
        for rank in parse_ranks(status["ranks"], world_size):
            parts.setdefault(is_late([fastest, seconds.get(rank, fastest)]), []).append(rank)
        for ranks in parts.values():
            slowest = None if status["seconds"] is None else max(seconds.get(rank, fastest) for rank in ranks)
            apart.append({"ranks": str(RankSet(ranks)), "status": status["status"], "seconds": slowest})
    return apart
