"""Errors in the calls of libraries: a fact is of one rank, with the numbers and texts of observing/calls."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise

from jupyter_dist.parts.checks.judging.seen import Seen, alike
from jupyter_dist.parts.checks.judging.words import Proof, number, prove, times
from jupyter_dist.parts.checks.reports import CallFact
from jupyter_dist.protocol.models.sentences import say, say_n

MOST_APART = 1.0  # seconds between two writes of a file
MANY_LABELS = 8  # that cannot be numbers of ranks


def find(seen: Seen) -> Iterator[Proof]:
    """Find errors that calls show: of GradScaler, of loaders and their workers, of torch.save()."""
    replicas = {rank for trained in seen.trained() for rank in trained.model.averaging}
    yield from _steps_skipped(seen)
    yield from _training_mode({rank: one for _, facts in seen.facts_of("evaluation") for rank, one in facts.items()})
    for name, facts in seen.facts_of("labels"):
        yield from _labels_differ(seen, name, {rank: one for rank, one in facts.items() if rank in replicas})
    for _, facts in seen.facts_of("padding"):
        one = facts[min(facts)]
        length, total, number_of_ranks = map(int, one.numbers)
        if len(facts) == number_of_ranks:
            samples = say_n("%1 sample", "%1 samples", total - length)
            evidence = [(length, number_of_ranks, total // number_of_ranks, total)]
            yield prove("padding_counted", facts, (samples,), evidence, (None, one.place))
    for path, facts in seen.facts_of("file"):
        yield from _one_file(path, facts)
    for _, facts in seen.facts_of("workers"):
        yield from _workers(facts, replicas)
    for _, facts in seen.facts_of("repeats"):
        one = facts[min(facts)]
        last, words = int(one.numbers[0]), _source_words(one)
        rows = [(min(facts), number + 1, words, one.texts[1]) for number in (last - 1, last)]
        yield prove("same_random_numbers/passes", facts, (words, last, last + 1), rows, (None, one.place))


def _training_mode(facts: dict[int, CallFact]) -> Iterator[Proof]:
    """Find an evaluation that changes the statistics of batch norm."""
    found = {rank: one for rank, one in facts.items() if all(one.numbers)}  # in training mode, several batches, layers
    if found:
        one = found[min(found)]
        layers = say_n("%1 batch norm layer", "%1 batch norm layers", int(one.numbers[2]))
        yield prove("evaluation_in_training_mode", found, (layers,), [(min(found), 3)], (None, one.place))


def _steps_skipped(seen: Seen) -> Iterator[Proof]:
    """Find a GradScaler that has halved its scale below 1, and still skips each step."""
    found = {rank: one for _, facts in seen.facts_of("skipped") for rank, one in facts.items() if one.numbers[0]}
    if found:
        rows = [
            (rank, int(one.numbers[0]), number(one.numbers[1]), number(one.numbers[2])) for rank, one in found.items()
        ]
        yield prove("steps_skipped", found, (), rows, (None, found[min(found)].place))


def _labels_differ(seen: Seen, name: str, facts: dict[int, CallFact]) -> Iterator[Proof]:
    """Find dictionaries that number the same names by other numbers on ranks that average gradients."""
    sets = alike({rank: one.texts[1] for rank, one in facts.items()})
    size = max((int(one.numbers[0]) for one in facts.values()), default=0)
    names = {one.texts[0] for one in facts.values()}
    if len(sets) > 1 and len(names) == 1 and size > min(len(seen.ranks), MANY_LABELS):
        evidence = [(ranks[0], facts[ranks[0]].texts[2]) for ranks in sets]
        yield prove("labels_differ", facts, (name, size), evidence)


def _one_file(path: str, facts: dict[int, CallFact]) -> Iterator[Proof]:
    """Find a file that several ranks have written at the same time."""
    for ranks in alike({rank: one.texts[0] for rank, one in facts.items()}):
        written = sorted((*facts[rank].numbers[:2], rank) for rank in ranks)
        if len(ranks) > 1 and all(later[0] - earlier[1] <= MOST_APART for earlier, later in pairwise(written)):
            evidence = [(rank, _clock(began), _clock(ended), path) for began, ended, rank in written]
            values = path.rpartition("/")[2], times(len(ranks))
            yield prove("one_file", ranks, values, evidence, (None, facts[ranks[0]].place))


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at).strftime("%H:%M:%S.%f")[:-3]


def _source_words(fact: CallFact) -> str:
    words = {"numpy": "NumPy", "random": say("Python's random"), "dataset": say("a generator in the dataset")}
    return words.get(fact.texts[0], fact.texts[0])


def _workers(facts: dict[int, CallFact], replicas: set[int]) -> Iterator[Proof]:
    """Find loader workers, of one rank or of several, that draw the same random numbers."""
    first = facts[min(facts)]
    loader, words = first.texts[1], _source_words(first)
    within = tuple(rank for rank, one in facts.items() if len(set(one.texts[2:])) < len(one.texts[2:]))
    between = alike({rank: one.texts[2] for rank, one in facts.items() if rank in replicas})
    ranks = within or next((ranks for ranks in between if len(ranks) > 1), ())
    if ranks:
        who = say("Workers") if within else say("The first workers")
        evidence = [
            (rank, worker, words, facts[rank].texts[2 + worker])
            for rank in ranks
            for worker in range(2 if within else 1)
        ]
        yield prove("same_random_numbers/workers", ranks, (who, loader, words), evidence)
