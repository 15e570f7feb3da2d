"""Judges the training of a cell. Pure, and silent where it is not sure."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from .findings import Proof
from .rules import data, facts, gradients, loop, replicas
from .seen import Seen

if TYPE_CHECKING:
    from jupyter_dist.parts.checks import models

MAX_SHOWN = 4
OF_MISSED = ("replicas_differ", "settings_differ", "samplers_differ", "subsets_differ", "labels_differ")

RULES: Sequence[Callable[[Seen], Iterator[Proof]]] = (
    loop.not_finite,
    facts.steps_skipped,
    loop.other_optimizer,
    gradients.not_averaged,
    data.same_batch,
    gradients.layer_forgotten,
    gradients.loss_averaged,
    replicas.replicas_differ,
    replicas.settings_differ,
    data.samplers,
    facts.labels_differ,
    data.same_numbers,
    data.epoch_not_set,
    loop.not_zeroed,
    loop.new_parameters,
    loop.eval_mode,
    loop.training_mode,
    replicas.zero_learning_rate,
    replicas.steps_less,
    loop.idle_layers,
    facts.padding,
    facts.one_file,
    facts.workers,
)


def judge(seen: Seen) -> list[Proof]:
    """Return the errors, the worst first."""
    return [_with_missed(seen, finding) for rule in RULES for finding in rule(seen)][:MAX_SHOWN]


def _with_missed(seen: Seen, finding: Proof) -> Proof:
    """Return a difference between ranks with the cells that some of them have not run."""
    missed = {rank: words for rank, words in seen.missed.items() if rank in finding.ranks}
    if finding.kind not in OF_MISSED or not missed:
        return finding
    evidence = [*list(finding.evidence)[:4], *(f"rank {rank} has not run {words}" for rank, words in missed.items())]
    return replace(finding, evidence=evidence, advice=f"Run what was missed there, with Catch up. {finding.advice}")


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
