"""Errors of averaging: gradients that differ between the ranks of a process group when an optimizer uses them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from jupyter_dist.parts.checks.judging.findings import (
    Proof,
    at_place,
    listed,
    name_ranks,
    number,
    ranks_of,
    several,
)
from jupyter_dist.parts.checks.judging.reports import ModelCalls
from jupyter_dist.parts.checks.judging.seen import NUM_NEWEST, CommonStep, Seen, Trained

if TYPE_CHECKING:
    from jupyter_dist.parts.checks import models

NEVER_SYNCED_STEPS = 64  # fewer may be local steps between averages of the parameters
LEAST_STEPS = 16  # of a cell that has ended
NEAR = 0.05
PART = 0.5  # of the gradients, which are equal where a loop averages by hand


def not_averaged(seen: Seen) -> Iterator[Proof]:
    """Find gradients of a DDP model that no backward pass has averaged."""
    for trained in seen.trained():
        if trained.model.kind == "ddp" and not trained.model.has_comm_hook:
            rows = [row for row in trained.rows() if _is_watched(trained, row)]
            differ = [differing(row) for row in rows[-NUM_NEWEST:]]
            if len(differ) == NUM_NEWEST and all(differ):
                finding = _why(trained, rows, differ[-1])
                if finding is not None:
                    yield finding


def differing(row: CommonStep) -> list[int]:
    """Return the numbers of the gradients that differ between the ranks of a row."""
    of_ranks = [look.gradients for look in row.looks.values()]
    found = []
    for index in range(min(map(len, of_ranks))):
        values = [gradients[index] for gradients in of_ranks]
        if all(value is not None for value in values):
            if len({value.digest for value in values if value is not None}) > 1:
                found.append(index)
        elif any(value is not None and value.varies for value in values):
            found.append(index)
    return found


def _is_watched(trained: Trained, row: CommonStep) -> bool:
    calls = [trained.calls(look) for look in row.looks.values()]
    return all(one is not None and one.is_watched for one in calls)


def _calls(trained: Trained, row: CommonStep) -> list[ModelCalls]:
    return [one for look in row.looks.values() if (one := trained.calls(look)) is not None]


def _why(trained: Trained, rows: list[CommonStep], differ: list[int]) -> Proof | None:
    row = rows[-1]
    calls = _calls(trained, row)
    num_gradients = len(row.first.gradients)
    if all(one.outer == 0 for one in calls):
        return _inner_module(trained, rows, differ)
    if all(not one.is_synced for one in calls):
        is_mixed = any(one.num_synced for one in calls)
        return _no_sync(trained, rows, differ, is_mixed) if is_mixed or _was_never_synced(trained, rows) else None
    if len(differ) < num_gradients:
        return _left_out(trained, rows, differ)
    return _else(trained, rows, differ)


def _was_never_synced(trained: Trained, rows: list[CommonStep]) -> bool:
    """Whether no pass has averaged anything, in many steps or in all of a cell that has ended; nor has other code."""
    if any(look.is_written for row in rows for look in row.looks.values()):
        return False
    if any(call.num_synced for row in rows for call in _calls(trained, row)):
        return False
    if not trained.seen.has_ended:
        return rows[-1].step >= NEVER_SYNCED_STEPS
    ended = [
        one
        for rank in trained.model.averaging
        for one in trained.seen.ended.get(rank, ())
        if one.optimizer == trained.optimizer
    ]
    return bool(ended) and all(one.steps >= LEAST_STEPS and not one.num_synced and not one.is_written for one in ended)


def _evidence(trained: Trained, row: CommonStep, differ: list[int]) -> list[str]:
    index = differ[0]
    name = trained.name_of(index)
    found = []
    for rank, look in list(row.looks.items())[:4]:
        value = look.gradients[index]
        told = "none" if value is None else f"first value {number(value.first)}, digest {value.digest}"
        found.append(f"step {row.step}, rank {rank}, gradient of {name}: {told}")
    return [*found, f"{len(differ)} of {several(len(row.first.gradients), 'compared gradient')} differ"]


class _Words(NamedTuple):
    kind: models.CheckKind
    message: str
    advice: str


def _finding(trained: Trained, rows: list[CommonStep], differ: list[int], words: _Words) -> Proof:
    since = next((row for row in rows if differing(row)), rows[-1])
    ranks = trained.model.averaging
    evidence = _evidence(trained, rows[-1], differ)
    place = rows[-1].first.place
    return Proof(words.kind, ranks_of(ranks), words.message, evidence, words.advice, since.step, place)


def _inner_module(trained: Trained, rows: list[CommonStep], differ: list[int]) -> Proof:
    ranks, place = trained.model.averaging, rows[-1].first.place
    message = (
        f"{name_ranks(ranks)} train the module inside of DistributedDataParallel: it was called in place of the "
        f"wrapped model, so no gradient is averaged before the step{at_place(place)}, and each rank trains a model of "
        "its own."
    )
    advice = "Call the wrapped model, model(x), not model.module(x) or one of its methods."
    return _finding(trained, rows, differ, _Words("inner_module", message, advice))


def _no_sync(trained: Trained, rows: list[CommonStep], differ: list[int], is_mixed: bool) -> Proof:
    ranks, place = trained.model.averaging, rows[-1].first.place
    when = "the last backward pass before the step" if is_mixed else f"all passes up to step {rows[-1].step}"
    message = (
        f"The gradients of {name_ranks(ranks).lower()} are not averaged when the optimizer steps{at_place(place)}: "
        f"no_sync() covers {when}."
    )
    advice = "Use no_sync() for all passes of an accumulation but the last one, which must average."
    return _finding(trained, rows, differ, _Words("no_sync", message, advice))


def _left_out(trained: Trained, rows: list[CommonStep], differ: list[int]) -> Proof:
    ranks, place = trained.model.averaging, rows[-1].first.place
    names = listed([trained.name_of(index) for index in differ])
    message = (
        f"The gradients of {names} are not averaged over {name_ranks(ranks).lower()}{at_place(place)}, those of the "
        "others are: DistributedDataParallel does not know these parameters as trained ones. They were added, or "
        "required no gradient, when it was made."
    )
    advice = "Change modules and requires_grad first, and wrap the model with DistributedDataParallel afterwards."
    return _finding(trained, rows, differ, _Words("changed_after_wrap", message, advice))


def _else(trained: Trained, rows: list[CommonStep], differ: list[int]) -> Proof:
    ranks, place = trained.model.averaging, rows[-1].first.place
    message = (
        f"The gradients of {name_ranks(ranks).lower()} differ when the optimizer steps{at_place(place)}, so that the "
        "replicas drift apart: something has changed them after DistributedDataParallel averaged them, or a backward "
        "pass went around it."
    )
    advice = "Compute the loss from what the wrapped model returns, and change gradients alike on all ranks."
    return _finding(trained, rows, differ, _Words("not_averaged", message, advice))


def layer_forgotten(seen: Seen) -> Iterator[Proof]:
    """Find gradients that a loop does not average, though it averages the others by hand, without DDP."""
    for trained in averaged_by_hand(seen):
        rows = trained.rows()
        differ = [differing(row) for row in rows[-NUM_NEWEST:]]
        if len(differ) == NUM_NEWEST and all(differ):
            names = listed([trained.name_of(index) for index in differ[-1]])
            ranks, place = trained.model.averaging, rows[-1].first.place
            message = (
                f"The gradients of {names} differ between {name_ranks(ranks).lower()} when the optimizer steps"
                f"{at_place(place)}; those of all other parameters are averaged."
            )
            advice = "Average the gradients of all parameters: for p in model.parameters(): dist.all_reduce(p.grad)."
            yield _finding(trained, rows, differ[-1], _Words("layer_not_averaged", message, advice))


def loss_averaged(seen: Seen) -> Iterator[Proof]:
    """Find a loop that sums its loss over ranks before the backward pass, and no gradient; the models began alike."""
    for trained in _of_all_ranks(seen):
        rows = trained.rows()
        newest = rows[-NUM_NEWEST:]
        are_reduced = all(look.reduced for row in newest for look in row.looks.values())
        if len(newest) < NUM_NEWEST or not are_reduced or not _is_near(rows[0]):
            continue
        differ = [differing(row) for row in newest]
        if all(differ) and not any(look.is_written for row in newest for look in row.looks.values()):
            ranks, place = trained.model.averaging, newest[-1].first.place
            message = (
                f"{name_ranks(ranks)} average their loss, and not their gradients{at_place(place)}: all_reduce() "
                "changes the number and not what backward() computes, so that each rank trains a model of its own."
            )
            advice = (
                "Wrap the model with DistributedDataParallel, or average p.grad of all parameters after backward()."
            )
            yield _finding(trained, rows, differ[-1], _Words("loss_averaged", message, advice))


def _is_near(row: CommonStep) -> bool:
    """Whether the parameters of all ranks are nearly alike, as after one step from the same ones."""
    by_rank = [look.weights for look in row.looks.values()]
    pairs = [[one for one in values if one is not None] for values in zip(*by_rank, strict=False)]
    near = [
        max(firsts) - min(firsts) <= NEAR * (1 + abs(max(firsts)))
        for one in pairs
        if (firsts := [v.first for v in one])
    ]
    return bool(near) and all(near) and len({str(look.settings) for look in row.looks.values()}) == 1


def averaged_by_hand(seen: Seen) -> Iterator[Trained]:
    """Yield the models without a wrapper whose gradients are equal on all ranks although their batches differ.

    Equal gradients of different batches are averaged. Ranks of tensor parallelism get the same batch, separate models
    have other gradients.
    """
    for trained in _of_all_ranks(seen):
        rows = trained.rows()[-NUM_NEWEST:]
        if len(rows) == NUM_NEWEST and all(_is_averaged(trained, row) for row in rows):
            yield trained


def _of_all_ranks(seen: Seen) -> Iterator[Trained]:
    """Yield the models without a wrapper that all ranks of a cell train, as if they averaged something."""
    for optimizer, by_rank in seen.looks.items():
        ranks = tuple(sorted(by_rank))
        about = seen.about.get((optimizer, ranks[0])) if ranks else None
        if len(ranks) < 2 or ranks != seen.ranks or about is None or len(about.models) != 1:
            continue
        model = about.models[0]
        if model.kind != "plain" or model.averaging:
            continue
        yield Trained(seen, optimizer, 0, model._replace(averaging=ranks, replicas=ranks), about)


def _is_averaged(trained: Trained, row: CommonStep) -> bool:
    batches = [None if (calls := trained.calls(look)) is None else calls.batch for look in row.looks.values()]
    if any(batch is None for batch in batches) or len({one.digest for one in batches if one is not None}) < len(
        batches
    ):
        return False
    varied = [
        index for index, value in enumerate(row.first.gradients) if value is not None and (value.varies or value.first)
    ]
    equal = [index for index in varied if index not in set(differing(row))]
    return bool(equal) and len(equal) >= PART * len(varied)
