"""How long a head reads nothing after output of ranks, so that what comes meanwhile is read together. Pure."""

from __future__ import annotations

from jupyter_dist.journal.records.gathering import MANY_RANKS

MOST_REST_SECONDS, RANK_REST_SECONDS = 0.02, 0.00002
SPREAD_SECONDS = 0.25  # nodes whose messages take longer than this to arrive do not answer in one moment
SPREAD_FACTOR = 3.0  # of a rest then: each rest costs the same, whether much has come or little


def rest_seconds(num_ranks: int) -> float:
    """Return how long a rest is while messages of all nodes arrive in one moment."""
    return min(MOST_REST_SECONDS, RANK_REST_SECONDS * num_ranks) if num_ranks > MANY_RANKS else 0.0


class Rests:
    """Finds from what arrived in the last rest how long the next one is: longer while messages come one by one."""

    def __init__(self, num_ranks: int, num_nodes: int) -> None:
        self._short_seconds = self.seconds = rest_seconds(num_ranks)
        self._most_per_second = num_nodes / SPREAD_SECONDS
        self._num_arrived = 0  # since the last rest
        self._follows_rest = False

    def arrived(self) -> None:
        """Count a message with output of ranks."""
        self._num_arrived += 1

    def read(self) -> None:
        """Find the next rest: what arrived in the last one was read, or the first message after a pause."""
        is_spread = self._follows_rest and self._num_arrived < self._most_per_second * self.seconds
        self._follows_rest = self._num_arrived > 0
        self.seconds = self._short_seconds * (SPREAD_FACTOR if is_spread and self._follows_rest else 1.0)
        self._num_arrived = 0
