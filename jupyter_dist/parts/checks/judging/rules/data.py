"""Errors of data: one batch on several replicas, samplers that do not fit each other, orders that repeat."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from jupyter_dist.parts.checks.judging.findings import (
    Proof,
    at_place,
    name_ranks,
    number,
    ranks_of,
    steps,
    times,
)
from jupyter_dist.parts.checks.judging.reports import Batch, BatchTensor, Distributed, Pass
from jupyter_dist.parts.checks.judging.seen import NUM_NEWEST, CommonStep, Seen, Trained

LEAST_ALIKE = 3  # steps
LEAST_STEPS = 2  # in a pass, so that it was no look at the first batch


def same_batch(seen: Seen) -> Iterator[Proof]:
    """Find ranks whose model gets equal batches, step after step, though the batches of one rank differ."""
    for trained in seen.trained():
        rows = [row for row in trained.rows() if all(_batch(trained, row, rank) is not None for rank in row.looks)]
        if len(rows) < NUM_NEWEST:
            continue
        for ranks in _alike(trained, rows[-1]):
            same = _newest_alike(trained, rows, ranks)
            if len(same) >= NUM_NEWEST and _changes(trained, same, ranks[0]):
                yield _same_batch(trained, same, ranks)


def _batch(trained: Trained, row: CommonStep, rank: int) -> Batch | None:
    calls = trained.calls(row.looks[rank])
    return None if calls is None else calls.batch


def _alike(trained: Trained, row: CommonStep) -> list[tuple[int, ...]]:
    """Return the sets of ranks that have the same batch."""
    found: dict[str, list[int]] = {}
    for rank in row.looks:
        batch = _batch(trained, row, rank)
        if batch is not None and batch.varies:
            found.setdefault(batch.digest, []).append(rank)
    return [tuple(ranks) for ranks in found.values() if len(ranks) > 1]


def _changes(trained: Trained, rows: list[CommonStep], rank: int) -> bool:
    """Whether a rank has had several batches: a model may be made to fit one batch on purpose."""
    digests = [batch.digest for row in rows if (batch := _batch(trained, row, rank)) is not None]
    return len(set(digests)) == len(digests)


def _newest_alike(trained: Trained, rows: list[CommonStep], ranks: tuple[int, ...]) -> list[CommonStep]:
    """Return the newest rows that all show the same batch on these ranks."""
    index = len(rows)
    while index and ranks in _alike(trained, rows[index - 1]):
        index -= 1
    return rows[index:]


def _same_batch(trained: Trained, rows: list[CommonStep], ranks: tuple[int, ...]) -> Proof:
    first, last = rows[0].step, rows[-1].step
    batch = _batch(trained, rows[-1], ranks[0])
    assert batch is not None
    shape = list(batch.shape)
    evidence = [
        f"step {rows[-1].step}, rank {rank}: digest {one.digest}, first value {number(one.first)}, shape {shape}"
        for rank in ranks[:4]
        if (one := _batch(trained, rows[-1], rank)) is not None
    ]
    message = (
        f"{name_ranks(ranks)} got the same batch in {steps(first, last)}{at_place(batch.place)}: "
        f"each sample counts {times(len(ranks))}, and {len(ranks)} ranks do the work of one."
    )
    loader = _newest_pass(trained.seen, ranks)
    return Proof(
        "same_batch",
        ranks_of(ranks),
        f"{message}{_why_same(loader)}",
        evidence,
        "Give the DataLoader sampler=DistributedSampler(dataset), and call its set_epoch(epoch) before each epoch; "
        "or seed what draws the batches by rank.",
        first,
        batch.place,
    )


def same_numbers(seen: Seen) -> Iterator[Proof]:
    """Find ranks whose batches differ but for one tensor of random numbers, which is another one in each step."""
    for trained in seen.trained():
        rows = [row for row in trained.rows() if all(_batch(trained, row, rank) is not None for rank in row.looks)]
        newest = rows[-LEAST_ALIKE:]
        parts = [_parts_alike(trained, row) for row in newest]
        if len(newest) < LEAST_ALIKE or any(_alike(trained, row) for row in newest):
            continue
        for index in set.intersection(*map(set, parts)):
            alike = [one[index] for one in parts]
            if len({one.digest for one in alike}) == len(alike) and len({one.shape for one in alike}) == 1:
                ranks, step, place = trained.model.averaging, newest[-1].step, newest[-1].first.place
                yield Proof(
                    "same_random_numbers",
                    ranks_of(ranks),
                    f"{name_ranks(ranks)} call the model with other samples and the same random numbers"
                    f"{at_place(place)}: its tensor {index + 1}, of shape {list(alike[-1].shape)}, is another one in "
                    "each step, and alike on all ranks.",
                    [f"step {step}, rank {rank}, tensor {index + 1}: digest {alike[-1].digest}" for rank in ranks[:4]],
                    "Draw them from a generator of each rank: torch.Generator().manual_seed(seed + rank).",
                    newest[0].step,
                    place,
                )


def _parts_alike(trained: Trained, row: CommonStep) -> dict[int, BatchTensor]:
    """Return the tensors of random numbers that all ranks have alike in a row, by their places."""
    batches = [batch.parts for rank in row.looks if (batch := _batch(trained, row, rank)) is not None]
    return {
        index: parts[0]
        for index, parts in enumerate(zip(*batches, strict=False))
        if parts[0].is_rich and len(set(parts)) == 1
    }


def _newest_pass(seen: Seen, ranks: tuple[int, ...]) -> dict[int, Pass]:
    return {rank: passes[-1] for rank in ranks if (passes := [one for one in seen.passes[rank] if one.trains])}


def _why_same(loaders: dict[int, Pass]) -> str:
    if not loaders:
        return ""
    samplers = [one.distributed for one in loaders.values()]
    if not any(samplers):
        return f" The loader has no DistributedSampler, but a {next(iter(loaders.values())).sampler}."
    numbers = {one.rank for one in samplers if one is not None}
    return f" Their DistributedSampler has rank {numbers.pop()} on each." if len(numbers) == 1 else ""


class _Setting(NamedTuple):
    name: str
    get: Callable[[Distributed], object]
    follows: str


_SETTINGS = (
    _Setting("seed", lambda one: one.seed, "each rank shuffles in another order, so that samples are lost or repeated"),
    _Setting("epoch", lambda one: one.epoch, "ranks take their parts of different orders: samples repeat or are lost"),
    _Setting("num_replicas", lambda one: one.num_replicas, "their parts of the data overlap or leave samples out"),
    _Setting(
        "shuffle", lambda one: one.shuffle, "ranks take their parts of different orders: samples repeat or are lost"
    ),
    _Setting("length", lambda one: one.total_size, "their parts are of different data"),
)


def samplers(seen: Seen) -> Iterator[Proof]:
    """Find DistributedSamplers of ranks that do not fit each other, or the ranks that average gradients."""
    for ranks in {trained.model.averaging for trained in seen.trained()}:
        newest = _distributed_passes(seen, ranks)
        if newest is None:
            continue
        told = {rank: one.distributed for rank, one in newest.items() if one.distributed is not None}
        place = newest[ranks[0]].place
        for setting in _SETTINGS:
            values = {rank: setting.get(one) for rank, one in told.items()}
            if len(set(values.values())) > 1:
                yield _sampler(
                    ranks,
                    f"The DistributedSamplers of ranks {ranks_of(ranks)} have different values of {setting.name}",
                    setting.follows,
                    [f"rank {rank}: {setting.name} {value}" for rank, value in list(values.items())[:4]],
                    newest[ranks[0]],
                )
                break
        else:
            yield from _sampler_places(ranks, told, newest[ranks[0]])
        subsets = {rank: one.subset for rank, one in newest.items()}
        if None not in subsets.values() and len(set(subsets.values())) > 1:
            evidence = [f"rank {rank}: digest of the indices {value}" for rank, value in list(subsets.items())[:4]]
            yield Proof(
                "subsets_differ",
                ranks_of(ranks),
                f"The subsets of the data differ between ranks {ranks_of(ranks)}{at_place(place)}, and each is divided "
                "once more by a DistributedSampler: samples are lost, and validation data may be trained on.",
                evidence,
                "Split with the same seed on all ranks: random_split(..., generator=torch.Generator().manual_seed(0)).",
                None,
                place,
            )


def _sampler(ranks: tuple[int, ...], message: str, follows: str, evidence: list[str], one: Pass) -> Proof:
    return Proof(
        "samplers_differ",
        ranks_of(ranks),
        f"{message}{at_place(one.place)}: {follows}.",
        evidence,
        "Make the sampler with the same arguments on all ranks, but for rank; it takes rank and num_replicas from "
        "the process group by itself.",
        None,
        one.place,
    )


def _sampler_places(ranks: tuple[int, ...], told: dict[int, Distributed], one: Pass) -> Iterator[Proof]:
    """Find samplers that were made for another number of ranks, or with the rank of another one."""
    replicas = next(iter(told.values())).num_replicas
    evidence = [f"rank {rank}: rank {two.rank} of {two.num_replicas}" for rank, two in list(told.items())[:4]]
    if 1 < replicas < len(ranks) or (replicas == 1 and len(ranks) > 1):
        message = f"The DistributedSamplers of ranks {ranks_of(ranks)} have num_replicas {replicas}, and {len(ranks)} "
        yield _sampler(ranks, f"{message}ranks average gradients", "some get the same data", evidence, one)
    elif replicas > len(ranks):
        message = f"The DistributedSamplers of ranks {ranks_of(ranks)} have num_replicas {replicas}, and only "
        yield _sampler(ranks, f"{message}{len(ranks)} ranks train", "the other parts are never used", evidence, one)
    elif len({two.rank for two in told.values()}) < len(ranks):
        message = f"The DistributedSamplers of ranks {ranks_of(ranks)} have the same rank"
        yield _sampler(ranks, message, "some parts are used several times, and others never", evidence, one)


def _distributed_passes(seen: Seen, ranks: tuple[int, ...]) -> dict[int, Pass] | None:
    """Return the newest pass over the same loader on all of these ranks; None if there is none for training."""
    found = {}
    for rank in ranks:
        passes = [one for one in seen.passes.get(rank, ()) if one.trains and one.distributed is not None]
        if not passes:
            return None
        found[rank] = {(one.loader, one.number): one for one in passes}
    common = set.intersection(*(set(one) for one in found.values()))
    return {rank: found[rank][max(common)] for rank in ranks} if common else None


def epoch_not_set(seen: Seen) -> Iterator[Proof]:
    """Find a sampler that shuffles, and whose order repeats from one pass to the next."""
    found: dict[int, tuple[Pass, Pass]] = {}
    for rank, passes in seen.passes.items():
        by_loader: dict[int, Pass] = {}
        for one in passes:
            before = by_loader.get(one.loader)
            by_loader[one.loader] = one
            if before is None or one.distributed is None or before.distributed is None:
                continue
            repeats = one.distributed.shuffle and one.distributed.epoch == before.distributed.epoch
            if repeats and one.trains and one.number == before.number + 1 and one.before >= LEAST_STEPS:
                found[rank] = before, one
            else:
                found.pop(rank, None)
    if found:
        rank = min(found)
        before, one = found[rank]
        assert one.distributed is not None
        epoch = one.distributed.epoch
        yield Proof(
            "epoch_not_set",
            ranks_of(found),
            f"The order of the data repeats on {name_ranks(found).lower()}{at_place(one.place)}: set_epoch() was not "
            f"called, and passes {before.number + 1} and {one.number + 1} over the loader are shuffled alike.",
            [
                f"rank {rank}, pass {two.number + 1}: epoch {epoch}, seed {two.distributed.seed}"
                for two in (before, one)
                if two.distributed is not None
            ],
            "Call loader.sampler.set_epoch(epoch) before each pass.",
            None,
            one.place,
        )
