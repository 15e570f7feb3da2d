"""Differences between the monotonic clocks of hosts and of the agent, from questions and answers. Pure.

A host's time in an answer lies between the question and the answer. Each exchange so bounds the difference, and all
together bound it closer than the quickest one. No wall clock is used: others set it.
"""

from __future__ import annotations

from typing import NamedTuple

DRIFT = 1e-4  # crystals differ less


class Bounds(NamedTuple):
    """The limits of a difference, in microseconds, and the agent's time at which they were found."""

    low: float
    high: float
    at: float


class Clocks:
    """The difference of each host's clock."""

    def __init__(self) -> None:
        self._bounds: dict[str, Bounds] = {}

    def note(self, host: str, asked: float, answered: float, now: float) -> None:
        """Take an exchange into account; times in microseconds, `now` of the host's clock."""
        low, high = now - answered, now - asked
        before = self._bounds.get(host)
        if before is not None:
            drift = DRIFT * (answered - before.at)
            earlier_low, earlier_high = before.low - drift, before.high + drift
            if max(low, earlier_low) <= min(high, earlier_high):  # else the clock is another one: its host was resumed
                low, high = max(low, earlier_low), min(high, earlier_high)
        self._bounds[host] = Bounds(low, high, answered)

    def shift(self, host: str) -> tuple[float, float]:
        """Return the microseconds to subtract from a host's times, and the largest error of that."""
        bounds = self._bounds.get(host)
        if bounds is None:
            return 0.0, float("inf")
        return (bounds.low + bounds.high) / 2, (bounds.high - bounds.low) / 2
