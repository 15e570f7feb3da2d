"""Judges why a cell is slow. Pure: it gets what was observed, and is silent where it is not sure."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from .observed import Observed
from .rules import accumulation, activities, communication, devices, growth, resources
from .rules.causes import Cause
from .rules.stragglers import find_in_messages, find_straggler

if TYPE_CHECKING:
    from jupyter_dist.parts.slow import models

MAX_CAUSES = 3
LOOKS_TO_SHOW = 2  # in a row that must find a cause, unless it is found by the course of several looks
LOOKS_TO_SHOW_MILD = 3  # a busy machine has them for a moment, and another cause takes two looks
MILD = frozenset({"contention", "uneven", "line"})
LOOKS_TO_HIDE = 2  # in a row that must miss it

RULES: Sequence[Callable[[Observed], Cause | None]] = (
    find_straggler,
    find_in_messages,
    *(partial(activities.find_habit, habit=habit) for habit in activities.HABITS),
    activities.find_blocked,
    resources.find_collecting,
    resources.find_memory,
    resources.find_contention,
    growth.find_growing,
    devices.find_synchronizing,
    devices.find_fragmentation,
    accumulation.find_accumulation,
    communication.find_communication,
    communication.find_uneven,
)


def judge(seen: Observed) -> list[Cause]:
    """Return why a cell is slow, the costliest cause first."""
    found = [cause for rule in RULES if (cause := rule(seen)) is not None]
    if not found and (line := activities.find_line(seen)) is not None:
        return [line]
    return sorted(found, key=lambda cause: -cause.share)[:MAX_CAUSES]


class ShownCauses:
    """The causes of a cell that are shown: found by several looks in a row, until several looks in a row miss them."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], int] = {}  # looks in a row
        self._missed: dict[tuple[str, str], int] = {}
        self._shown: dict[tuple[str, str], tuple[Cause, float]] = {}

    def after(self, causes: Iterable[Cause]) -> list[models.SlowCause]:
        """Return the causes to show after another look, which has found these."""
        now = {cause.key: cause for cause in causes}
        self._found = {key: self._found.get(key, 0) + 1 for key in now}
        self._missed = {key: self._missed.get(key, 0) + 1 for key in self._shown if key not in now}
        for key, cause in now.items():
            if key in self._shown:
                self._shown[key] = cause, self._shown[key][1]
            elif cause.spans_looks or self._found[key] >= (LOOKS_TO_SHOW_MILD if cause.kind in MILD else LOOKS_TO_SHOW):
                self._shown[key] = cause, time.time()
        for key in [key for key, looks in self._missed.items() if looks >= LOOKS_TO_HIDE]:
            del self._shown[key]
        ordered = sorted(self._shown.values(), key=lambda shown: -shown[0].share)
        return [cause.model(since) for cause, since in ordered[:MAX_CAUSES]]
