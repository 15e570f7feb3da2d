"""Judges the training of a cell. Pure, and silent where it is not sure."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from .findings import Proof
from .rules import data, gradients, loop, replicas
from .seen import Seen

if TYPE_CHECKING:
    from jupyter_dist.parts.checks import models

MAX_SHOWN = 4

RULES: Sequence[Callable[[Seen], Iterator[Proof]]] = (
    loop.not_finite,
    loop.other_optimizer,
    gradients.not_averaged,
    data.same_batch,
    gradients.layer_forgotten,
    replicas.replicas_differ,
    replicas.settings_differ,
    data.samplers,
    data.epoch_not_set,
    loop.not_zeroed,
    loop.new_parameters,
    loop.eval_mode,
    loop.training_mode,
    replicas.zero_learning_rate,
    replicas.steps_less,
)


def judge(seen: Seen) -> list[Proof]:
    """Return the errors, the worst first."""
    return [finding for rule in RULES for finding in rule(seen)][:MAX_SHOWN]


class ShownChecks:
    """The checks of a cell that are shown, each from the step on in which it was seen first."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, str], tuple[float, int | None]] = {}

    def after(self, findings: Iterable[Proof]) -> list[models.Check]:
        """Return the checks to show when these were found."""
        found = {finding.key: finding for finding in findings}
        now = time.time()
        self._since = {key: self._since.get(key, (now, finding.step)) for key, finding in found.items()}
        return [finding.model(*self._since[key]) for key, finding in found.items()]
