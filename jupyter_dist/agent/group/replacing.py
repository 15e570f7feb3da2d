"""Starts processes in place of dead ranks; whatever fails there, the other ranks keep their variables."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from jupyter_dist.agent.processes.ending import give_up
from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.ranks import format_ranks

log = logging.getLogger(__name__)


async def start_fresh(start: Callable[[], Awaitable[None]], fresh: list[RankProcess]) -> str:
    """Start these in place of dead ranks; return a sentence about how it went. They are dead if it failed."""
    numbers = format_ranks(rank.rank for rank in fresh)
    try:
        await start()
    except Exception as err:  # also an error of ours: the group must go on with the ranks that live
        if not isinstance(err, JupyterDistError):
            log.exception("Cannot replace rank %s", numbers)
        await give_up(fresh, "the replacement failed")  # later deaths would be attributed to the next attempt
        why = err.message if isinstance(err, JupyterDistError) else f"{err!r:.300}"
        return f"Rank {numbers} could not be replaced: {why}"
    shards = "What was sharded over all ranks lacks its part: make it again on all ranks, and load a checkpoint."
    return f"Rank {numbers} was replaced: its variables are gone, the other ranks keep theirs. {shards}"
