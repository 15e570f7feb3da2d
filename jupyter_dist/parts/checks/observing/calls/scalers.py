"""Calls of GradScaler.step() that change nothing: it calls no optimizer while gradients are not finite."""

from __future__ import annotations

import functools
from typing import Any

import torch

from jupyter_dist.parts.checks.observing.facts import Facts

INTERRUPTIBLE = True  # the optimizer steps below the wrapper

LEAST_SKIPPED = 4  # in a row, with a scale below 1: a scale that begins too high is halved some times, and then fits


class Scalers:
    """Counts the calls in a row in which no optimizer stepped."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._skipped: dict[int, tuple[int, float]] = {}  # by id of the optimizer: how often, and the first scale
        self.has_stepped = False  # an optimizer, since the call began

    def begin_cell(self) -> None:
        """Count from here on."""
        self._skipped.clear()

    def install(self) -> None:
        """Begin to note calls."""
        call = torch.amp.GradScaler.step

        @functools.wraps(call)
        def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            self.has_stepped = False
            result = call(scaler, optimizer, *args, **kwargs)
            if self._facts.is_observed:
                self._stepped(scaler, optimizer)
            return result

        torch.amp.GradScaler.step = step

    def _stepped(self, scaler: Any, optimizer: Any) -> None:
        key = id(optimizer)
        if self.has_stepped or not scaler.is_enabled():
            if self._skipped.pop(key, (0, 0.0))[0] >= LEAST_SKIPPED:
                self._facts.add("skipped", key, [0])
            return
        scale = float(scaler.get_scale())  # the call has waited for the device already
        count, first = self._skipped.get(key, (0, scale))
        self._skipped[key] = count + 1, first
        if count + 1 >= LEAST_SKIPPED and scale < 1 and (count + 1) & count == 0:
            self._facts.add(
                "skipped", key, [count + 1, first, scale], [type(optimizer).__name__[:80]], self._facts.place(3)
            )
