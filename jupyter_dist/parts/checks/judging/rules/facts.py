"""Errors in the calls of libraries: a fact is of one rank, with the numbers and texts of observing/calls."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise

from jupyter_dist.parts.checks.judging.findings import Proof, at_place, name_ranks, number, ranks_of, several, times
from jupyter_dist.parts.checks.judging.reports import CallFact
from jupyter_dist.parts.checks.judging.seen import Seen

MOST_APART = 1.0  # seconds between two writes of a file
MANY_LABELS = 8  # that cannot be numbers of ranks


def _facts(seen: Seen, kind: str) -> Iterator[tuple[str, dict[int, CallFact]]]:
    """Yield each key with the facts that ranks have of it."""
    by_rank = seen.facts.get(kind, {})
    for key in dict.fromkeys(key for facts in by_rank.values() for key in facts):
        yield key, {rank: facts[key] for rank, facts in sorted(by_rank.items()) if key in facts}


def _replicas(seen: Seen) -> set[int]:
    """Return the ranks that average gradients with others."""
    return {rank for trained in seen.trained() for rank in trained.model.averaging}


def _alike(values: dict[int, str]) -> list[list[int]]:
    """Return the ranks by their values."""
    found: dict[str, list[int]] = {}
    for rank, value in values.items():
        found.setdefault(value, []).append(rank)
    return list(found.values())


def steps_skipped(seen: Seen) -> Iterator[Proof]:
    """Find a GradScaler that has halved its scale below 1, and still skips each step."""
    by_rank = {rank: one for _, facts in _facts(seen, "skipped") for rank, one in facts.items() if one.numbers[0]}
    if by_rank:
        one = by_rank[min(by_rank)]
        yield Proof(
            "steps_skipped",
            ranks_of(by_rank),
            f"GradScaler skips every step on {name_ranks(by_rank).lower()}{at_place(one.place)}: the parameters do not "
            f"change. Its scale has fallen below 1, so it is not too high: the gradients are NaN or infinite.",
            [
                f"rank {rank}: {one.numbers[0]:.0f} calls of step() in a row changed nothing, the scale was "
                f"{number(one.numbers[1])} at the first and is {number(one.numbers[2])}"
                for rank, one in list(by_rank.items())[:4]
            ],
            "Look for NaN in the loss and in the batches: torch.autograd.set_detect_anomaly(True) names the operation.",
            None,
            one.place,
        )


def labels_differ(seen: Seen) -> Iterator[Proof]:
    """Find dictionaries that number the same names by other numbers on ranks that average gradients."""
    for name, facts in _facts(seen, "labels"):
        told = {rank: one.texts for rank, one in facts.items() if rank in _replicas(seen)}
        sets = _alike({rank: items for rank, (_, items, _) in told.items()})
        size = max((int(one.numbers[0]) for one in facts.values()), default=0)
        if len(sets) < 2 or len({keys for keys, *_ in told.values()}) > 1 or size <= min(len(seen.ranks), MANY_LABELS):
            continue
        yield Proof(
            "labels_differ",
            ranks_of(told),
            f"`{name}` has the same {size} names on {name_ranks(told).lower()}, and other numbers: the model learns "
            "another meaning of each number on each rank.",
            [f"rank {ranks[0]}: {told[ranks[0]][2]}" for ranks in sets[:4]],
            "The order of a set differs between processes: number sorted(names), not set(names).",
        )


def padding(seen: Seen) -> Iterator[Proof]:
    """Find an evaluation whose sums over ranks have the samples with which DistributedSampler has padded them."""
    for _, facts in _facts(seen, "padding"):
        one = facts[min(facts)]
        length, total, replicas = map(int, one.numbers)
        if len(facts) == replicas:
            yield Proof(
                "padding_counted",
                ranks_of(facts),
                f"The evaluation on {name_ranks(facts).lower()}{at_place(one.place)} counts "
                f"{several(total - length, 'sample')} twice: DistributedSampler repeats the first ones until each rank "
                "has as many, and what was summed over the ranks has them, too.",
                [f"the dataset has {length} samples", f"{replicas} ranks with {total // replicas} each are {total}"],
                "Gather the results and keep the first len(dataset) of them, or give each rank a Subset of its own: "
                "Subset(dataset, range(rank, len(dataset), world_size)).",
                None,
                one.place,
            )


def one_file(seen: Seen) -> Iterator[Proof]:
    """Find a file that several ranks have written at the same time."""
    for path, facts in _facts(seen, "file"):
        for ranks in _alike({rank: one.texts[0] for rank, one in facts.items()}):
            written = sorted((*facts[rank].numbers[:2], rank) for rank in ranks)
            pairs = pairwise(written)
            if len(ranks) < 2 or any(later[0] - earlier[1] > MOST_APART for earlier, later in pairs):
                continue
            place = facts[ranks[0]].place
            yield Proof(
                "one_file",
                ranks_of(ranks),
                f"{name_ranks(ranks)} write {path.rpartition('/')[2]} at the same time{at_place(place)}: it has what "
                f"the last one has written, or parts of several. It was written {times(len(ranks))}.",
                [f"rank {rank}: {_clock(began)} to {_clock(ended)}, {path}" for began, ended, rank in written[:4]],
                "Save on one rank (if rank == 0), or give each rank a file of its own.",
                None,
                place,
            )


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at).strftime("%H:%M:%S.%f")[:-3]


def workers(seen: Seen) -> Iterator[Proof]:
    """Find loader workers, of one rank or of several, that draw the same random numbers."""
    for _, facts in _facts(seen, "workers"):
        source, loader, *_ = facts[min(facts)].texts
        words = {"numpy": "NumPy", "random": "Python's random"}.get(source, source)
        within = {rank: one.texts[2] for rank, one in facts.items() if len(set(one.texts[2:])) < len(one.texts[2:])}
        first = {rank: one.texts[2] for rank, one in facts.items() if rank in _replicas(seen)}
        between = next((ranks for ranks in _alike(first) if len(ranks) > 1), [])
        ranks = [*within] or between
        if not ranks:
            continue
        who = f"{'Workers' if within else 'The first workers'} of {loader} on {name_ranks(ranks).lower()}"
        rows = [(rank, number) for rank in ranks for number in range(2 if within else 1)]
        yield Proof(
            "same_random_numbers",
            ranks_of(ranks),
            f"{who} draw the same random numbers of {words}: what is random about their samples, such as "
            "augmentation, is alike.",
            [
                f"rank {rank}, worker {number}: {words} begins with the state {facts[rank].texts[2 + number]}"
                for rank, number in rows[:4]
            ],
            "Seed each worker by itself: torch.manual_seed(seed + rank) before the loader is used, and no fixed seed "
            "in worker_init_fn.",
        )
