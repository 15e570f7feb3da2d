"""Errors of replicas: parameters or settings that differ between ranks that should have them alike."""

from __future__ import annotations

from collections.abc import Iterator

from jupyter_dist.parts.checks.judging.findings import (
    Proof,
    at_place,
    listed,
    name_ranks,
    number,
    ranks_of,
    several,
)
from jupyter_dist.parts.checks.judging.reports import StepLook
from jupyter_dist.parts.checks.judging.seen import NUM_NEWEST, CommonStep, Seen, Trained

from .gradients import averaged_by_hand, differing

LEAST_IDLE_STEPS = 8  # with a learning rate of zero: a warm-up may begin with it
LEAST_ENDED = 4  # steps
PART_OF_STEPS = 0.5


def replicas_differ(seen: Seen) -> Iterator[Proof]:
    """Find replicas with different parameters although their gradients are equal."""
    for trained in [*_with_replicas(seen), *averaged_by_hand(seen)]:
        rows = trained.rows(trained.model.replicas)
        newest = rows[-NUM_NEWEST:]
        if len(newest) < NUM_NEWEST or any(differing(row) or not differing_weights(row) for row in newest):
            continue
        if any(_settings(row) for row in rows):
            continue  # what follows from them
        yield _replicas(trained, rows)


def _with_replicas(seen: Seen) -> Iterator[Trained]:
    for trained in seen.trained():
        if len(trained.model.replicas) > 1 and not trained.model.has_comm_hook:
            yield trained


def differing_weights(row: CommonStep) -> list[int]:
    """Return the numbers of the parameters that differ between the ranks of a row."""
    of_ranks = [look.weights for look in row.looks.values()]
    return [
        index
        for index in range(min(map(len, of_ranks)))
        if len({value.digest for weights in of_ranks if (value := weights[index]) is not None}) > 1
    ]


def _replicas(trained: Trained, rows: list[CommonStep]) -> Proof:
    row, ranks = rows[-1], trained.model.replicas
    differ = differing_weights(row)
    since = next(one for one in rows if differing_weights(one))
    alike = _alike(row, differ[0])
    names = listed([trained.name_of(index) for index in differ])
    sets = " and ".join(str(ranks_of(group)) for group in alike[:3])
    when = "from the begin" if since is rows[0] else f"since step {since.step}"
    message = (
        f"The parameters {names} differ between ranks {sets} {when}{at_place(row.first.place)}, though their gradients "
        "are averaged: these are different models, and the gradients are of none of them."
    )
    evidence = [
        f"step {row.step}, rank {group[0]}, {trained.name_of(differ[0])}: first value {number(value.first)}, "
        f"digest {value.digest}"
        for group in alike[:4]
        if (value := row.looks[group[0]].weights[differ[0]]) is not None
    ]
    evidence.append(f"{len(differ)} of {several(len(row.first.weights), 'compared parameter')} differ")
    return Proof(
        "replicas_differ",
        ranks_of(ranks),
        message,
        evidence,
        "Load checkpoints and initialize on all ranks, or copy: "
        "for t in model.state_dict().values(): dist.broadcast(t, 0).",
        since.step,
        row.first.place,
    )


def _alike(row: CommonStep, index: int) -> list[list[int]]:
    found: dict[str, list[int]] = {}
    for rank, look in row.looks.items():
        value = look.weights[index]
        if value is not None:
            found.setdefault(value.digest, []).append(rank)
    return list(found.values())


def settings_differ(seen: Seen) -> Iterator[Proof]:
    """Find optimizers of replicas with different settings."""
    for trained in [*seen.trained(), *averaged_by_hand(seen)]:
        rows = trained.rows()
        if not rows or not (names := _settings(rows[-1])):
            continue
        row, ranks, name = rows[-1], trained.model.averaging, names[0]
        since = next(one for one in rows if _settings(one))
        words = {"lr": "learning rate", "weight_decay": "weight decay"}.get(name, name)
        values = {rank: _setting(look, name) for rank, look in row.looks.items()}
        yield Proof(
            "settings_differ",
            ranks_of(ranks),
            f"The {words} differs between {name_ranks(ranks).lower()} since step {since.step}"
            f"{at_place(row.first.place)}: replicas that step by different rules drift apart.",
            [f"step {row.step}, rank {rank}: {name} {value}" for rank, value in list(values.items())[:4]],
            "Give the optimizer the same settings on all ranks, and step the scheduler as often on each.",
            since.step,
            row.first.place,
        )


def _settings(row: CommonStep) -> list[str]:
    """Return the names of the settings that differ between the ranks of a row."""
    names = dict.fromkeys(name for look in row.looks.values() for group in look.settings for name in group)
    return [name for name in names if len({str(_setting(look, name)) for look in row.looks.values()}) > 1]


def _setting(look: StepLook, name: str) -> object:
    values = [group.get(name) for group in look.settings]
    return values[0] if len(set(map(str, values))) == 1 else values


def zero_learning_rate(seen: Seen) -> Iterator[Proof]:
    """Find optimizers that change nothing because their learning rate is zero."""
    ranks: dict[int, list[StepLook]] = {}
    for _, rank, looks in seen.alone():
        idle: list[StepLook] = []
        for look in reversed(looks):
            if not look.settings or any(group.get("lr") != 0.0 for group in look.settings):
                break
            idle.insert(0, look)
        if idle and idle[-1].step - idle[0].step >= LEAST_IDLE_STEPS:
            ranks[rank] = idle
    if ranks:
        looks = ranks[min(ranks)]
        first, last = looks[0], looks[-1]
        yield Proof(
            "zero_learning_rate",
            ranks_of(ranks),
            f"The learning rate on {name_ranks(ranks).lower()} is 0 in steps {first.step}-{last.step}"
            f"{at_place(last.place)}: the parameters do not change.",
            [f"step {look.step}, rank {min(ranks)}: lr 0" for look in (first, last)],
            "Look at the scheduler: it has ended, or its warm-up counts other steps.",
            first.step,
            last.place,
        )


def steps_less(seen: Seen) -> Iterator[Proof]:
    """Find ranks that stepped less often than their peers, once the cell has ended on all."""
    if not seen.has_ended:
        return
    for trained in seen.trained():
        ranks = trained.model.averaging
        if trained.model.kind != "ddp" or not set(ranks) <= set(seen.ranks):
            continue
        ended = {rank: _steps(seen, rank, trained.optimizer) for rank in ranks}
        most = max(ended.values())
        fewer = [rank for rank, count in ended.items() if count <= PART_OF_STEPS * most]
        if most >= LEAST_ENDED and fewer:
            yield Proof(
                "fewer_steps",
                ranks_of(fewer),
                f"{name_ranks(fewer)} stepped {ended[fewer[0]]} times, and its peers {most} times: their gradients are "
                "averaged, but their parameters are not the same any more.",
                [f"rank {rank}: {count} steps in the cell" for rank, count in list(ended.items())[:6]],
                "Call optimizer.step() on all ranks of the process group, not under a condition of the rank.",
                None,
                seen.looks[trained.optimizer][max(ended, key=lambda rank: ended[rank])][-1].place,
            )


def _steps(seen: Seen, rank: int, optimizer: int) -> int:
    return sum(one.steps for one in seen.ended.get(rank, ()) if one.optimizer == optimizer)
