"""What the ranks of a cell have reported of their steps, side by side."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from jupyter_dist.parts.checks.reports import About, Batch, CallFact, EndedSteps, Model, ModelCalls, Pass, StepLook

MAX_LOOKS = 32  # of an optimizer on a rank
MAX_PASSES = 200  # of a rank
MAX_FACTS = 256  # of a kind, each of some ranks
NUM_NEWEST = 2  # common steps that must show an error

Ranks = tuple[int, ...]


def alike(values: Mapping[int, Hashable]) -> list[Ranks]:
    """Return the sets of ranks that have equal values."""
    found: dict[Hashable, list[int]] = {}
    for rank, value in values.items():
        found.setdefault(value, []).append(rank)
    return [tuple(ranks) for ranks in found.values()]


class CommonStep(NamedTuple):
    """The looks of some ranks at the same step of the same optimizer."""

    step: int
    looks: dict[int, StepLook]

    @property
    def first(self) -> StepLook:
        """The look of the lowest rank."""
        return self.looks[min(self.looks)]


@dataclass
class Seen:
    """The reports of one cell."""

    ranks: Ranks = ()
    has_ended: bool = False
    looks: dict[int, dict[int, deque[StepLook]]] = field(default_factory=dict)  # by optimizer and rank
    about: dict[tuple[int, int], About] = field(default_factory=dict)  # by optimizer and rank
    passes: dict[int, deque[Pass]] = field(default_factory=partial(defaultdict, partial(deque, maxlen=MAX_PASSES)))
    ended: dict[int, list[EndedSteps]] = field(default_factory=dict)  # by rank
    facts: dict[str, dict[str, dict[int, CallFact]]] = field(default_factory=dict)  # by kind, key and rank
    missed: dict[int, str] = field(default_factory=dict)  # what a rank has not run, in words

    def add(self, rank: int, look: StepLook) -> None:
        """Add a look of a rank."""
        if look.about is not None:
            self.about[look.optimizer, rank] = look.about
        of_optimizer = self.looks.setdefault(look.optimizer, {})
        of_optimizer.setdefault(rank, deque(maxlen=MAX_LOOKS)).append(look)
        self.passes[rank].extend(look.passes)

    def add_fact(self, rank: int, fact: CallFact) -> None:
        """Add a fact of a rank, in place of an earlier one of the same kind and key."""
        found = self.facts.setdefault(fact.kind, {})
        if len(found) < MAX_FACTS or fact.key in found:
            by_rank = {**found.get(fact.key, {}), rank: fact}
            found[fact.key] = dict(sorted(by_rank.items()))

    def facts_of(self, kind: str) -> Iterable[tuple[str, dict[int, CallFact]]]:
        """Return each key with the facts that ranks have of it."""
        return self.facts.get(kind, {}).items()

    def rows(self, optimizer: int, ranks: Sequence[int]) -> list[CommonStep]:
        """Return the steps at which all of these ranks were looked at, with parameters alike in name and shape."""
        by_rank = self.looks.get(optimizer, {})
        if not ranks or any(rank not in by_rank for rank in ranks):
            return []
        by_step = {rank: {look.step: look for look in by_rank[rank]} for rank in ranks}
        common = set.intersection(*(set(steps) for steps in by_step.values()))
        rows = [CommonStep(step, {rank: by_step[rank][step] for rank in ranks}) for step in sorted(common)]
        return [row for row in rows if len({look.signature for look in row.looks.values()}) == 1]

    def trained(self) -> Iterator[Trained]:
        """Yield each model that the optimizers of several ranks train together, as far as they have reported."""
        for optimizer, by_rank in self.looks.items():
            done: set[tuple[int, Ranks]] = set()
            for rank in by_rank:
                about = self.about.get((optimizer, rank))
                for number, model in enumerate(about.models if about is not None else ()):
                    if len(model.averaging) > 1 and (number, model.averaging) not in done:
                        done.add((number, model.averaging))
                        yield Trained(self, optimizer, number, model, about)

    def alone(self) -> Iterator[tuple[int, int, list[StepLook]]]:
        """Yield the optimizer, the rank and the looks of each optimizer of each rank."""
        for optimizer, by_rank in self.looks.items():
            for rank, looks in sorted(by_rank.items()):
                yield optimizer, rank, list(looks)


class Trained(NamedTuple):
    """A model, and the ranks that average its gradients."""

    seen: Seen
    optimizer: int
    number: int  # of the model in the list of the optimizer
    model: Model
    about: About | None

    def rows(self, ranks: Ranks | None = None) -> list[CommonStep]:
        """Return the steps at which all of them were looked at."""
        return self.seen.rows(self.optimizer, self.model.averaging if ranks is None else ranks)

    def calls(self, row: CommonStep) -> dict[int, ModelCalls]:
        """Return the calls of this model on each rank, as far as they are known."""
        return {rank: look.calls[self.number] for rank, look in row.looks.items() if self.number < len(look.calls)}

    def ended(self) -> dict[int, EndedSteps]:
        """Return the steps of the optimizer in cells that have ended, by rank."""
        by_rank = {rank: self.seen.ended.get(rank, ()) for rank in self.model.averaging}
        return {rank: one for rank, found in by_rank.items() for one in found if one.optimizer == self.optimizer}

    def batches(self, row: CommonStep) -> dict[int, Batch]:
        """Return the batch of the model on each rank, as far as it is known."""
        return {rank: one.batch for rank, one in self.calls(row).items() if one.batch is not None}

    def name_of(self, index: int) -> str:
        """Return the name of a parameter."""
        names = self.about.names if self.about is not None else ()
        return names[index] if index < len(names) else f"parameter {index}"
