"""Errors of data: one batch on several replicas, samplers that do not fit each other, orders that repeat."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

from jupyter_dist.parts.checks.judging.seen import NUM_NEWEST, CommonStep, Ranks, Seen, Trained, alike
from jupyter_dist.parts.checks.judging.words import Proof, number, prove, steps, times
from jupyter_dist.parts.checks.reports import Pass, Value
from jupyter_dist.protocol.models.sentences import say

LEAST_ALIKE = 3  # steps
LEAST_STEPS = 2  # in a pass, so that it was no look at the first batch


def find(seen: Seen) -> Iterator[Proof]:
    """Find data that several ranks have alike, samplers that do not fit, and orders that repeat."""
    for trained in seen.trained():
        rows = [row for row in trained.rows() if len(trained.batches(row)) == len(row.looks)]
        if len(rows) >= NUM_NEWEST:
            yield from _same_batch(trained, rows)
            yield from _same_numbers(trained, rows[-LEAST_ALIKE:])
    for ranks in {trained.model.averaging for trained in seen.trained()}:
        newest = distributed_passes(seen, ranks)
        if newest:
            yield from _samplers(ranks, newest)
    yield from _epoch_not_set(seen)


def _same_batch(trained: Trained, rows: Sequence[CommonStep]) -> Iterator[Proof]:
    """Find ranks whose model gets equal batches, step after step, though the batches of one rank differ."""
    for ranks in _with_one_batch(trained, rows[-1]):
        same = list(takewhile(lambda row: ranks in _with_one_batch(trained, row), reversed(rows)))  # noqa: B023
        # A model may be made to fit one batch on purpose.
        changes = len({trained.batches(row)[ranks[0]].digest for row in same}) == len(same)
        if len(same) >= NUM_NEWEST and changes:
            step, since, batches = same[0].step, same[-1].step, trained.batches(same[0])
            values = steps(since, step), times(len(ranks)), len(ranks), _why_same(trained.seen, ranks)
            evidence = [
                (step, rank, batches[rank].digest, number(batches[rank].first), list(batches[rank].shape))
                for rank in ranks
            ]
            yield prove("same_batch", ranks, values, evidence, (since, batches[ranks[0]].place))


def _with_one_batch(trained: Trained, row: CommonStep) -> list[Ranks]:
    """Return the sets of ranks that have the same batch."""
    digests = {rank: batch.digest for rank, batch in trained.batches(row).items() if batch.varies}
    return [ranks for ranks in alike(digests) if len(ranks) > 1]


def _why_same(seen: Seen, ranks: Ranks) -> str:
    loaders = [passes[-1] for rank in ranks if (passes := [one for one in seen.passes[rank] if one.trains])]
    samplers = [one.distributed for one in loaders]
    if loaders and not any(samplers):
        return say(" The loader has no DistributedSampler, but a %1.", loaders[0].sampler)
    numbers = {one.rank for one in samplers if one is not None}
    return say(" Their DistributedSampler has rank %1 on each.", numbers.pop()) if len(numbers) == 1 else ""


def _same_numbers(trained: Trained, rows: Sequence[CommonStep]) -> Iterator[Proof]:
    """Find ranks whose batches differ but for one tensor of random numbers, which is another one in each step."""
    parts = [_parts_alike(trained, row) for row in rows]
    if len(rows) < LEAST_ALIKE or any(_with_one_batch(trained, row) for row in rows):
        return
    for index in set.intersection(*map(set, parts)):
        tensors = [one[index] for one in parts]
        if len({one.digest for one in tensors}) == len(tensors) and len({one.shape for one in tensors}) == 1:
            ranks, step, last = trained.model.averaging, rows[-1].step, tensors[-1]
            evidence = [(step, rank, index + 1, last.digest) for rank in ranks]
            values = index + 1, list(last.shape)
            yield prove("same_random_numbers", ranks, values, evidence, (rows[0].step, rows[-1].first.place))


def _parts_alike(trained: Trained, row: CommonStep) -> dict[int, Value]:
    """Return the tensors of random numbers that all ranks have alike in a row, by their places."""
    places = zip(*(batch.parts for batch in trained.batches(row).values()), strict=False)
    return {index: parts[0] for index, parts in enumerate(places) if parts[0].is_rich and len(set(parts)) == 1}


_LOST = say("ranks take their parts of different orders: samples repeat or are lost")
_SETTINGS = {
    "seed": say("each rank shuffles in another order, so that samples are lost or repeated"),
    "epoch": _LOST,
    "num_replicas": say("their parts of the data overlap or leave samples out"),
    "shuffle": _LOST,
    "total_size": say("their parts are of different data"),
}


def _samplers(ranks: Ranks, newest: Mapping[int, Pass]) -> Iterator[Proof]:
    """Find DistributedSamplers of ranks that do not fit each other, or the ranks that average gradients."""
    told = {rank: one.distributed for rank, one in newest.items() if one.distributed is not None}
    place = newest[ranks[0]].place
    for name, follows in _SETTINGS.items():
        values = {rank: getattr(one, name) for rank, one in told.items()}
        if len(set(values.values())) > 1:
            evidence = [(rank, name, value) for rank, value in values.items()]
            yield prove("samplers_differ", ranks, (name, follows), evidence, (None, place))
            break
    else:
        replicas = next(iter(told.values())).num_replicas
        are_same = len({one.rank for one in told.values()}) < len(ranks)
        places = [(rank, one.rank, one.num_replicas) for rank, one in told.items()]
        which = "few" if replicas < len(ranks) else "many" if replicas > len(ranks) else "same" if are_same else ""
        if which:
            yield prove(f"samplers_differ/{which}", ranks, (replicas, len(ranks)), places, (None, place))
    orders = {rank: one.order for rank, one in newest.items() if one.order is not None}
    if len(orders) == len(newest) and len(set(orders.values())) > 1:
        kind = "subsets_differ" if orders[ranks[0]].startswith("+") else "subsets_differ/order"
        yield prove(kind, ranks, (), [(rank, order.strip("+")) for rank, order in orders.items()], (None, place))


def distributed_passes(seen: Seen, ranks: Ranks) -> dict[int, Pass]:
    """Return the newest pass over the same loader on all of these ranks; empty if there is none for training."""
    found = {
        rank: {
            (one.loader, one.number): one
            for one in seen.passes.get(rank, ())
            if one.trains and one.distributed is not None
        }
        for rank in ranks
    }
    common = set.intersection(*(set(one) for one in found.values())) if found else set()
    return {rank: found[rank][max(common)] for rank in ranks} if common else {}


def _epoch_not_set(seen: Seen) -> Iterator[Proof]:
    """Find a sampler that shuffles, and whose order repeats from one pass to the next."""
    found = {}
    for rank, passes in seen.passes.items():
        last: dict[int, tuple[int, int, int]] = {}  # number, epoch and seed of the newest pass, by loader
        for one in passes:
            if (sampler := one.distributed) is not None:
                before, last[one.loader] = last.get(one.loader), (one.number, sampler.epoch, sampler.seed)
                repeats = before is not None and before[:2] == (one.number - 1, sampler.epoch) and sampler.shuffle
                if before is not None and repeats and one.trains and one.before >= LEAST_STEPS:
                    found[rank] = before, last[one.loader], one.place
                elif before is not None:
                    found.pop(rank, None)
    if found:
        *two, place = found[min(found)]
        evidence = [(min(found), number + 1, epoch, seed) for number, epoch, seed in two]
        yield prove("epoch_not_set", found, [row[1] for row in evidence], evidence, (None, place))
