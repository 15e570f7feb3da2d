"""Joins calls within a moment, so that answers of many ranks share a record of the journal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

GATHER_SECONDS, MOST_GATHER_SECONDS = 0.01, 0.1
MANY_RANKS = 64  # with fewer, records are written in each turn of the event loop
RANK_GATHER_SECONDS = 0.0001  # a rank's share: a record costs the agent, the server and each page the same


def gather_seconds(num_ranks: int) -> float:
    """Return how long records of many ranks are gathered: longer for more ranks, but not so that a reader notices."""
    return min(MOST_GATHER_SECONDS, max(GATHER_SECONDS, RANK_GATHER_SECONDS * num_ranks))


class Gathering:
    """Calls a function soon: in the next turn of the event loop, or a moment later if the last call was just before.

    The first answers of ranks are recorded at once. Answers that come late, one by one, as from many nodes or on a busy
    machine, would else cost a record each, in the agent, the server and the page.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float = GATHER_SECONDS) -> None:
        self._loop = loop
        self._seconds = seconds
        self._called_at = loop.time() - seconds

    def __call__(self, function: Callable[[], None]) -> None:
        """Call the function."""
        left = self._called_at + self._seconds - self._loop.time()
        if left <= 0:
            self._loop.call_soon(self._call, function)
        else:
            self._loop.call_later(left, self._call, function)

    def _call(self, function: Callable[[], None]) -> None:
        self._called_at = self._loop.time()
        function()
