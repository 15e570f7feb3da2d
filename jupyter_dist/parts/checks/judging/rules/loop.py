"""Errors of a loop that a rank shows by itself: the wrong optimizer, old gradients, the wrong mode, numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jupyter_dist.parts.checks.judging.findings import (
    Proof,
    at_place,
    listed,
    name_ranks,
    number,
    ranks_of,
    several,
    steps,
)
from jupyter_dist.parts.checks.judging.reports import StepLook
from jupyter_dist.parts.checks.judging.seen import NUM_NEWEST, Seen

LEAST_IDLE = 9  # steps: another one may use another layer

By = dict[int, StepLook]  # the newest look of each rank that shows it


def _newest(seen: Seen, shows: Callable[[StepLook], bool | None], least: int = NUM_NEWEST) -> tuple[By, int]:
    """Return the newest looks of the ranks whose last looks all show something, and since which step.

    `shows` returns None for a look without evidence.
    """
    found: By = {}
    since: list[int] = []
    for _, rank, looks in seen.alone():
        showing: list[StepLook] = []
        for look in reversed(looks):
            does = shows(look)
            if does is False:
                break
            if does:
                showing.append(look)
        if len(showing) >= least:
            found[rank] = showing[0]
            since.append(showing[-1].step)
    return found, min(since, default=0)


def other_optimizer(seen: Seen) -> Iterator[Proof]:
    """Find an optimizer whose parameters get no gradient, while a model has gradients that nothing uses."""
    found, since = _newest(seen, lambda look: look.left.idle == look.left.held > 0 and look.strangers is not None)
    if found:
        rank = min(found)
        look = found[rank]
        assert look.strangers is not None
        strangers = look.strangers
        yield Proof(
            "other_optimizer",
            ranks_of(found),
            f"The optimizer of {name_ranks(found).lower()}{at_place(look.place)} trains nothing: none of its "
            f"{several(look.left.held, 'parameter')} got a gradient in {steps(since, look.step)}, and "
            f"{several(strangers.number, 'parameter')} of a {strangers.module} did, which no optimizer holds. It was "
            "made for an earlier model.",
            [
                f"step {look.step}, rank {rank}: the optimizer holds {look.left.held}, of which {look.left.idle} have "
                "no gradient",
                f"step {look.step}, rank {rank}: gradients are in {listed(strangers.names, strangers.number)} of "
                f"{strangers.module}",
            ],
            "Make the optimizer again after the model: run both in one cell.",
            since,
            look.place,
        )


def new_parameters(seen: Seen) -> Iterator[Proof]:
    """Find parameters that were put into the place of others which the optimizer still holds."""
    found, since = _newest(seen, lambda look: bool(look.left.unheld) and (look.left.gone > 0 or _is_frozen(look)))
    if found:
        rank = min(found)
        look = found[rank]
        yield Proof(
            "parameters_not_held",
            ranks_of(found),
            f"{listed(look.left.unheld)} of the model on {name_ranks(found).lower()} get gradients, but no optimizer "
            f"holds them{at_place(look.place)}: the optimizer was made before, and still holds {_useless(look)}.",
            [
                f"step {look.step}, rank {rank}: {look.left.gone} of {look.left.held} parameters of the optimizer are "
                f"not in the model, {look.left.frozen} are frozen",
                f"step {look.step}, rank {rank}: {listed(look.left.unheld)} have gradients",
            ],
            "Make the optimizer after the last change of the model, or use optimizer.add_param_group().",
            since,
            look.place,
        )


def _is_frozen(look: StepLook) -> bool:
    return look.left.frozen == look.left.held > 0


def _useless(look: StepLook) -> str:
    gone = f"{several(look.left.gone, 'parameter')} that the model has no more"
    return "frozen parameters alone" if _is_frozen(look) else gone


def idle_layers(seen: Seen) -> Iterator[Proof]:
    """Find layers that are called, and of which the optimizer holds parameters that never get a gradient."""
    found, _ = _newest(seen, lambda look: bool(look.idle_layers) if look.step >= LEAST_IDLE else None, 1)
    if found:
        rank = min(found)
        look = found[rank]
        yield Proof(
            "layer_without_gradient",
            ranks_of(found),
            f"The loss on {name_ranks(found).lower()} does not depend on {listed(look.idle_layers)}"
            f"{at_place(look.place)}: called, and without a gradient in {steps(1, look.step)}, though the "
            "optimizer holds its parameters.",
            [
                f"step {look.step}, rank {rank}: {look.left.idle} of {look.left.held} parameters of the optimizer have "
                f"no gradient: {listed(look.left.idle_names, look.left.idle)}"
            ],
            "Look for detach(), .data, item(), argmax or no_grad() between the layer and the loss; set "
            "requires_grad_(False) if it should not be trained.",
            1,
            look.place,
        )


def not_zeroed(seen: Seen) -> Iterator[Proof]:
    """Find backward passes that add to the gradients which the last step has used."""

    def shows(look: StepLook) -> bool | None:
        stale = look.stale
        return None if stale is None else stale.stale > 0 and not stale.fresh and stale.value > 0

    found, since = _newest(seen, shows)
    if found:
        rank = min(found)
        look = found[rank]
        assert look.stale is not None
        yield Proof(
            "not_zeroed",
            ranks_of(found),
            f"The gradients on {name_ranks(found).lower()} are not set to zero between steps{at_place(look.place)}: "
            "each backward pass adds to those of all steps before.",
            [
                f"step {look.step}, rank {rank}: the first backward pass found the gradient of {look.stale.name} "
                f"that step {look.step - 1} had used, at most {number(look.stale.value)} and not zero",
            ],
            "Call optimizer.zero_grad() once in each step.",
            since,
            look.place,
        )


def eval_mode(seen: Seen) -> Iterator[Proof]:
    """Find a model that is trained in evaluation mode, in which dropout and batch norm do nothing."""

    def shows(look: StepLook) -> bool:
        return any(one.is_training is False and one.num_layers > 0 and not one.num_active for one in look.calls)

    found, since = _newest(seen, shows)
    if found:
        rank = min(found)
        look = found[rank]
        calls = next(one for one in look.calls if one.is_training is False and one.num_layers)
        yield Proof(
            "training_in_eval_mode",
            ranks_of(found),
            f"{name_ranks(found)} train{'s' if len(found) == 1 else ''} in evaluation mode since step {since}"
            f"{at_place(look.place)}: {several(calls.num_layers, 'layer')} of dropout or batch norm act as in "
            "evaluation.",
            [f"step {look.step}, rank {rank}: model.training is False, and so it is in all {calls.num_layers} layers"],
            "Call model.train() before training; an evaluation has switched it off, or the model was loaded so.",
            since,
            look.place,
        )


def training_mode(seen: Seen) -> Iterator[Proof]:
    """Find an evaluation that changes the statistics of batch norm."""
    found = {
        rank: one
        for rank, one in seen.evaluations.items()
        if one.is_training and one.is_different and one.num_active > 0
    }
    if found:
        rank = min(found)
        one = found[rank]
        yield Proof(
            "evaluation_in_training_mode",
            ranks_of(found),
            f"{name_ranks(found)} evaluate{'s' if len(found) == 1 else ''} in training mode{at_place(one.place)}: "
            f"{several(one.num_active, 'batch norm layer')} normalize by the batches and add them to their running "
            "statistics, so that the data of the evaluation changes the model.",
            [f"rank {rank}: model.training is True in 3 batches in a row without gradients"],
            "Call model.train(False) before an evaluation, and model.train() after it.",
            None,
            one.place,
        )


def not_finite(seen: Seen) -> Iterator[Proof]:
    """Find the step, the rank and the tensor in which a number was not finite first."""
    first: dict[int, StepLook] = {}
    for _, rank, looks in seen.alone():
        wrong = next((look for look in looks if look.weight_wrong is not None), None)
        was_finite = any(look.weight_wrong is None for look in looks)
        is_new = wrong is not None and (was_finite or wrong.gradient_wrong is not None)
        if wrong is not None and is_new and (rank not in first or wrong.step < first[rank].step):
            first[rank] = wrong
    if not first:
        return
    step = min(look.step for look in first.values())
    early = {rank: look for rank, look in first.items() if look.step == step}
    for call, words in (("input", "the batch that the model was called with"), ("output", "what the model returned")):
        cause = {rank: look for rank, look in early.items() if look.wrong_call == call}
        if cause:
            yield _not_finite(cause, f"{words} on {name_ranks(cause).lower()} had it first", first)
            return
    look = early[min(early)]
    source = look.gradient_wrong
    where = (
        f"the gradient of {listed(source.names, source.number)}"
        if source
        else "the step itself: its gradients are finite"
    )
    yield _not_finite(early, f"{where} had it first, the call before was finite or is not known", first)


def _not_finite(cause: By, words: str, first: By) -> Proof:
    rank = min(cause)
    look = cause[rank]
    wrong = look.weight_wrong
    assert wrong is not None
    evidence = [f"step {look.step}, rank {rank}: {wrong.number} of {wrong.of} parameters have {wrong.value}"]
    if look.gradient_wrong is not None:
        told = look.gradient_wrong
        evidence.append(f"step {look.step}, rank {rank}: {told.number} of {told.of} gradients have {told.value}")
    return Proof(
        "not_finite",
        ranks_of(cause),
        f"Parameters are not finite on {name_ranks(first).lower()} since step {look.step}{at_place(look.place)}: "
        f"{words}.",
        evidence,
        "Training cannot recover from it: begin again from the last checkpoint. Look at the data of that step, the "
        "learning rate, and divisions, logarithms and roots near zero.",
        look.step,
        look.place,
    )
