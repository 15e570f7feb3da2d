"""Errors of a loop that a rank shows by itself: the wrong optimizer, old gradients, the wrong mode, numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from jupyter_dist.parts.checks.judging.seen import NUM_NEWEST, Seen
from jupyter_dist.parts.checks.judging.words import Proof, listed, number, parameters, prove, steps
from jupyter_dist.parts.checks.reports import NO_RATE, StepLook
from jupyter_dist.protocol.models.sentences import say, say_n, templates
from jupyter_dist.protocol.ranks import RankSet, name_ranks

LEAST_IDLE = 9  # steps: another one may use another layer
LEAST_AT_ZERO = 8  # steps: a warm-up may begin with a learning rate of zero

By = dict[int, StepLook]  # a look of each rank that shows an error
Words = tuple[Sequence[Any], Sequence[Any]]  # values of the message, and of the evidence after step and rank


class LoopRule(NamedTuple):
    """A kind of error: which looks show it, and its words by the newest look and the step since which looks do."""

    kind: str
    shows: Callable[[StepLook], bool | None]  # None: a look without evidence
    words: Callable[[StepLook, int], Words]
    num_looks: int = NUM_NEWEST
    num_steps: int = 0  # from the first of the looks to the last


def _other_optimizer(look: StepLook, since: int) -> Words:
    left, strangers = look.left, look.strangers
    assert strangers is not None
    held, others = parameters(left.held), parameters(strangers.number)
    names = listed(strangers.names, strangers.number)
    return (held, steps(since, look.step), others, strangers.module), (held, left.idle, names, strangers.module)


def _is_never_averaged(look: StepLook) -> bool:
    left, is_fsdp = look.left, any(one.kind == "fsdp" and one.outer for one in look.calls)
    return left.idle == left.held > 0 and is_fsdp and look.stale is None


def _never_averaged(look: StepLook, since: int) -> Words:
    held = parameters(look.left.held)
    return (held, steps(since, look.step)), (look.left.idle, held)


def _is_frozen(look: StepLook) -> bool:
    return look.left.frozen == look.left.held > 0


def _not_held(look: StepLook, _: int) -> Words:
    left, names = look.left, listed(look.left.unheld)
    gone = say("%1 that the model has no more", parameters(left.gone))
    useless = say("frozen parameters alone") if _is_frozen(look) else gone
    return (names, useless), (left.gone, left.held, left.frozen, names)


def _idle_layers(look: StepLook, _: int) -> Words:
    left = look.left
    names = listed(left.idle_names, left.idle)
    return (listed(look.idle_layers), steps(1, look.step)), (left.idle, left.held, names)


def _is_stale(look: StepLook) -> bool | None:
    stale = look.stale
    return None if stale is None else stale.stale == stale.passes > 0 and stale.value > 0


def _not_zeroed(look: StepLook, _: int) -> Words:
    assert look.stale is not None
    return (), (look.stale.name, look.step - 1, number(look.stale.value))


def _are_lost(look: StepLook) -> bool | None:
    """Whether each pass had another batch, and gradients of some were gone before the next."""
    stale = look.stale
    averaged = [one for one in look.calls if one.kind in ("ddp", "fsdp")]
    return None if stale is None else stale.lost > 0 and any(one.batches == stale.passes for one in averaged)


def _lost(look: StepLook, _: int) -> Words:
    assert look.stale is not None
    return (look.stale.passes,), (look.stale.name, look.stale.lost)


def _is_empty(look: StepLook) -> bool | None:
    return None if look.stale is None else look.left.idle == look.left.held > 0


def _empty(look: StepLook, since: int) -> Words:
    assert look.stale is not None
    return (parameters(look.left.held), steps(since, look.step)), (look.stale.name, look.stale.passes)


def _num_in_eval_mode(look: StepLook) -> int:
    """Return how many layers of a model act as in evaluation, if it is trained in that mode, and all of them do."""
    idle = [one.num_layers for one in look.calls if one.is_training is False and not one.num_active]
    return max(idle, default=0)


def _eval_mode(look: StepLook, since: int) -> Words:
    count = _num_in_eval_mode(look)
    return (since, say_n("%1 layer", "%1 layers", count)), (count,)


def _has_no_rate(look: StepLook) -> bool:
    return bool(look.settings) and all(abs(group.get("lr", 1.0)) < NO_RATE for group in look.settings)


ROWS = (
    LoopRule(
        "other_optimizer",
        lambda look: look.strangers is not None and look.stale is None and not _is_never_averaged(look),
        _other_optimizer,
    ),
    LoopRule("no_sync/fsdp", _is_never_averaged, _never_averaged),
    LoopRule(
        "parameters_not_held",
        lambda look: bool(look.left.unheld) and (look.left.gone > 0 or _is_frozen(look)),
        _not_held,
    ),
    LoopRule(
        "layer_without_gradient",
        lambda look: bool(look.idle_layers) if look.step >= LEAST_IDLE else None,
        _idle_layers,
        num_looks=1,
    ),
    LoopRule(
        "parameters_not_held/never",
        lambda look: look.left.forgotten > 0 and not look.left.gone if look.step >= LEAST_IDLE else None,
        lambda look, _: ((listed(look.left.unheld, look.left.forgotten),), (look.left.forgotten, look.left.held)),
        num_looks=1,
    ),
    LoopRule("gradients_discarded", _are_lost, _lost),
    LoopRule("gradients_discarded/all", _is_empty, _empty),
    LoopRule("not_zeroed", _is_stale, _not_zeroed),
    LoopRule("training_in_eval_mode", lambda look: _num_in_eval_mode(look) > 0, _eval_mode),
    LoopRule(
        "zero_learning_rate",
        _has_no_rate,
        lambda look, since: ((steps(since, look.step),), (number(max(group["lr"] for group in look.settings)),)),
        num_steps=LEAST_AT_ZERO,
    ),
)


def find(seen: Seen) -> Iterator[Proof]:
    """Find errors that the newest looks of a rank show, and numbers that are not finite."""
    yield from _not_finite(seen)
    for row in ROWS:
        found, since = _showing(seen, row)
        if found:
            rank = min(found)
            look = found[rank]
            values, evidence = row.words(look, since)
            since = 1 if row.num_looks == 1 else since
            yield prove(row.kind, found, values, [(look.step, rank, *evidence)], (since, look.place))


def _showing(seen: Seen, row: LoopRule) -> tuple[By, int]:
    """Return the newest looks of the ranks whose last looks all show an error, and since which step."""
    found: By = {}
    since: list[int] = []
    for _, rank, looks in seen.alone():
        showing: list[StepLook] = []
        for look in reversed(looks):
            does = row.shows(look)
            if does is False:
                break
            if does:
                showing.append(look)
        if len(showing) >= row.num_looks and showing[0].step - showing[-1].step >= row.num_steps:
            found[rank] = showing[0]
            since.append(showing[-1].step)
    return found, min(since, default=0)


def _not_finite(seen: Seen) -> Iterator[Proof]:
    """Find the step, the rank and the tensor in which a number was not finite first."""
    first: By = {}
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
    given = {rank: look for rank, look in early.items() if look.wrong_call == "input"}
    returned = {rank: look for rank, look in early.items() if look.wrong_call == "output"}
    cause = given or returned or early
    look, who = cause[min(cause)], name_ranks(cause)
    source = look.gradient_wrong
    if given:
        words = say("the batch that the model was called with on %1 had it first", who)
    elif returned:
        words = say("what the model returned on %1 had it first", who)
    elif source:
        names = listed(source.names, source.number)
        words = say("the gradient of %1 had it first, the call before was finite or is not known", names)
    else:
        words = say("the step itself had it first: its gradients are finite")
    counts = zip((look.weight_wrong, source), templates("%1 of %2 parameters", "%1 of %2 gradients"), strict=True)
    evidence = [(say(what, one.number, one.of), one.value) for one, what in counts if one is not None]
    rows = [(look.step, min(cause), *row) for row in evidence]
    yield replace(prove("not_finite", first, (look.step, words), rows, (look.step, look.place)), ranks=RankSet(cause))
