"""The words of checks, the worst first: message, line of evidence and advice of each kind, and a check in them.

A kind may have variants, named after a stroke. In a message `%1` are the ranks, and `%2` is the place.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jupyter_dist.agent.watch.findings import CellFinding
from jupyter_dist.protocol.models.sentences import say, say_n, templates
from jupyter_dist.protocol.ranks import RankSet, name_ranks
from jupyter_dist.transport.rows import CodePlace

if TYPE_CHECKING:
    from jupyter_dist.parts.checks import models

MAX_LISTED = 3
MAX_ROWS = 4
_OF_GRADIENT, _OF_SAMPLER, _AVERAGE, _SAME_ARGUMENTS = templates(
    "step %1, rank %2, gradient of %3: first value %4, digest %5",
    "rank %1: rank %2 of %3",
    "Wrap the model with DistributedDataParallel, or average p.grad of all parameters after backward().",
    "Make the sampler with the same arguments on all ranks, but for rank; it takes rank and num_replicas from the "
    "process group by itself.",
)

WORDS: Mapping[str, Sequence[str]] = {
    "not_finite": templates(
        "Parameters are not finite on %1 since step %3%2: %4.",
        "step %1, rank %2: %3 have %4",
        "Training cannot recover from it: begin again from the last checkpoint. Look at the data of that step, the "
        "learning rate, and divisions, logarithms and roots near zero.",
    ),
    "steps_skipped": templates(
        "GradScaler skips every step on %1%2: the parameters do not change. Its scale has fallen below 1, so it is "
        "not too high: the gradients are NaN or infinite.",
        "rank %1: %2 calls of step() in a row changed nothing, the scale was %3 at the first and is %4",
        "Look for NaN in the loss and in the batches: torch.autograd.set_detect_anomaly(True) names the operation.",
    ),
    "other_optimizer": templates(
        "The optimizer of %1%2 trains nothing: none of its %3 got a gradient in %4, and %5 of a %6 did, which no "
        "optimizer holds. It was made for an earlier model.",
        "step %1, rank %2: the optimizer holds %3, of which %4 have no gradient; gradients are in %5 of %6",
        "Make the optimizer again after the model: run both in one cell.",
    ),
    "inner_module": templates(
        "%1 train the module inside of DistributedDataParallel: it was called in place of the wrapped model, so no "
        "gradient is averaged before the step%2, and each rank trains a model of its own.",
        _OF_GRADIENT,
        "Call the wrapped model, model(x), not model.module(x) or one of its methods.",
    ),
    "no_sync": templates(
        "The gradients of %1 are not averaged when the optimizer steps%2: no_sync() covers %4.",
        _OF_GRADIENT,
        "Use no_sync() for all passes of an accumulation but the last one, which must average.",
    ),
    "no_sync/fsdp": templates(
        "The optimizer of %1%2 trains nothing: none of its %3 got a gradient in %4, because set_requires_gradient_sync"
        "(False) keeps FSDP from averaging gradients, and from giving them to the parameters.",
        "step %1, rank %2: %3 of %4 have no gradient",
        "Call model.set_requires_gradient_sync(True) before the last backward pass of each step.",
    ),
    "changed_after_wrap": templates(
        "The gradients of %3 are not averaged over %1%2, those of the others are: DistributedDataParallel does not "
        "know these parameters as trained ones. They were added, or required no gradient, when it was made.",
        _OF_GRADIENT,
        "Change modules and requires_grad first, and wrap the model with DistributedDataParallel afterwards.",
    ),
    "not_averaged": templates(
        "The gradients of %1 differ when the optimizer steps%2, so that the replicas drift apart: something has "
        "changed them after DistributedDataParallel averaged them, or a backward pass went around it.",
        _OF_GRADIENT,
        "Compute the loss from what the wrapped model returns, and change gradients alike on all ranks.",
    ),
    "same_batch": templates(
        "%1 got the same batch in %3%2: each sample counts %4, and %5 ranks do the work of one.%6",
        "step %1, rank %2: digest %3, first value %4, shape %5",
        "Give the DataLoader sampler=DistributedSampler(dataset), and call its set_epoch(epoch) before each epoch; or "
        "seed what draws the batches by rank.",
    ),
    "layer_not_averaged": templates(
        "The gradients of %3 differ between %1 when the optimizer steps%2; those of all other parameters are averaged.",
        _OF_GRADIENT,
        "Average the gradients of all parameters: for p in model.parameters(): dist.all_reduce(p.grad).",
    ),
    "loss_averaged": templates(
        "%1 average their loss, and not their gradients%2: all_reduce() changes the number and not what backward() "
        "computes, so that each rank trains a model of its own.",
        _OF_GRADIENT,
        _AVERAGE,
    ),
    "not_averaged/alone": templates(
        "%1 divide the data by a DistributedSampler, and communicate nothing in the whole cell%2: each rank trains a "
        "model of its own on its part.",
        _OF_GRADIENT,
        _AVERAGE,
    ),
    "replicas_differ": templates(
        "The parameters %3 differ between ranks %4 %5%2, though their gradients are averaged: these are different "
        "models, and the gradients are of none of them.",
        "step %1, rank %2, %3: first value %4, digest %5",
        "Load checkpoints and initialize on all ranks, or copy: "
        "for t in model.state_dict().values(): dist.broadcast(t, 0).",
    ),
    "replicas_differ/buffers": templates(
        "The buffers %3 differ between ranks %4%2 and do not change, though the parameters are alike: the replicas "
        "compute something else from the same data.",
        "step %1, rank %2, %3: first value %4, digest %5",
        "Make buffers from the same seed on all ranks, or copy: for t in model.buffers(): dist.broadcast(t, 0).",
    ),
    "settings_differ": templates(
        "The %3 differs between %1 since step %4%2: replicas that step by different rules drift apart.",
        "step %1, rank %2: %3 %4",
        "Give the optimizer the same settings on all ranks, and step the scheduler as often on each.",
    ),
    "samplers_differ": templates(
        "The DistributedSamplers of %1 have different values of %3%2: %4.", "rank %1: %2 %3", _SAME_ARGUMENTS
    ),
    "samplers_differ/few": templates(
        "The DistributedSamplers of %1 have num_replicas %3, and %4 ranks average gradients%2: some get the same data.",
        _OF_SAMPLER,
        _SAME_ARGUMENTS,
    ),
    "samplers_differ/many": templates(
        "The DistributedSamplers of %1 have num_replicas %3, and only %4 ranks train%2: other parts are never used.",
        _OF_SAMPLER,
        _SAME_ARGUMENTS,
    ),
    "samplers_differ/same": templates(
        "The DistributedSamplers of %1 have the same rank%2: some parts are used several times, and others never.",
        _OF_SAMPLER,
        _SAME_ARGUMENTS,
    ),
    "subsets_differ": templates(
        "The subsets of the data differ between %1%2, and each is divided once more by a DistributedSampler: samples "
        "are lost, and validation data may be trained on.",
        "rank %1: digest of the indices %2",
        "Split with the same seed on all ranks: random_split(..., generator=torch.Generator().manual_seed(0)).",
    ),
    "subsets_differ/order": templates(
        "The data is in another order on each of %1%2, and a DistributedSampler divides it by places: samples repeat, "
        "and others are lost.",
        "rank %1: digest of the order %2",
        "Sort what was listed, or shuffle it with the same seed on all ranks, before the sampler divides it.",
    ),
    "labels_differ": templates(
        "`%3` has the same %4 names on %1, and other numbers: the model learns another meaning of each number on each "
        "rank.",
        "rank %1: %2",
        "The order of a set differs between processes: number sorted(names), not set(names).",
    ),
    "same_random_numbers": templates(
        "%1 call the model with other samples and the same random numbers%2: its tensor %3, of shape %4, is another "
        "one in each step, and alike on all ranks.",
        "step %1, rank %2, tensor %3: digest %4",
        "Draw them from a generator of each rank: torch.Generator().manual_seed(seed + rank).",
    ),
    "epoch_not_set": templates(
        "The order of the data repeats on %1%2: set_epoch() was not called, and passes %3 and %4 over the loader are "
        "shuffled alike.",
        "rank %1, pass %2: epoch %3, seed %4",
        "Call loader.sampler.set_epoch(epoch) before each pass.",
    ),
    "not_zeroed": templates(
        "The gradients on %1 are not set to zero between steps%2: each backward pass adds to those of all steps "
        "before.",
        "step %1, rank %2: the first backward pass found the gradient of %3 that step %4 had used, at most %5 and not "
        "zero",
        "Call optimizer.zero_grad() once in each step.",
    ),
    "gradients_discarded": templates(
        "%1 step by a part of their %3 backward passes%2: gradients were set to zero between these, so that the other "
        "batches are not learned.",
        "step %1, rank %2: the gradient of %3 was gone before %4 of the later passes",
        "Call optimizer.zero_grad() once in each step, after optimizer.step(), and not in each pass.",
    ),
    "gradients_discarded/all": templates(
        "The optimizer of %1%2 trains nothing: the gradients of its %3 were set to zero between the backward pass and "
        "the step in %4.",
        "step %1, rank %2: the gradient of %3 was None when the step began, after %4 backward passes",
        "Call optimizer.zero_grad() before loss.backward(), or after optimizer.step().",
    ),
    "parameters_not_held": templates(
        "%3 of the model on %1 get gradients, but no optimizer holds them%2: the optimizer was made before, and still "
        "holds %4.",
        "step %1, rank %2: %3 of %4 parameters of the optimizer are not in the model, %5 are frozen; %6 have gradients",
        "Make the optimizer after the last change of the model, or use optimizer.add_param_group().",
    ),
    "parameters_not_held/never": templates(
        "%3 of the model on %1 get gradients, and no optimizer has them%2: they are never trained.",
        "step %1, rank %2: %3 parameters have a gradient, and are not among the %4 of the optimizer",
        "Give them to the optimizer, too, or set requires_grad_(False) if they should not be trained.",
    ),
    "training_in_eval_mode": templates(
        "Training on %1 is in evaluation mode since step %3%2: %4 of dropout or batch norm act as in evaluation.",
        "step %1, rank %2: model.training is False, and so it is in all %3 layers",
        "Call model.train() before training; an evaluation has switched it off, or the model was loaded so.",
    ),
    "evaluation_in_training_mode": templates(
        "The evaluation on %1 is in training mode%2: %3 normalize by the batches and add them to their running "
        "statistics, so that the data of the evaluation changes the model.",
        "rank %1: model.training is True in %2 batches in a row without gradients",
        "Call model.train(False) before an evaluation, and model.train() after it.",
    ),
    "zero_learning_rate": templates(
        "The learning rate on %1 is 0 in %3%2: the parameters do not change.",
        "step %1, rank %2: lr %3",
        "Look at the scheduler: it has ended, or its warm-up counts other steps.",
    ),
    "fewer_steps": templates(
        "%1 stepped %3 times, and the peers %4 times: their gradients are averaged, but their parameters are not the "
        "same any more.",
        "rank %1: %2 steps in the cell",
        "Call optimizer.step() on all ranks of the process group, not under a condition of the rank.",
    ),
    "layer_without_gradient": templates(
        "The loss on %1 does not depend on %3%2: called, and without a gradient in %4, though the optimizer holds its "
        "parameters.",
        "step %1, rank %2: %3 of %4 parameters of the optimizer have no gradient: %5",
        "Look for detach(), .data, item(), argmax or no_grad() between the layer and the loss; set "
        "requires_grad_(False) if it should not be trained.",
    ),
    "padding_counted": templates(
        "The evaluation on %1%2 counts %3 twice: DistributedSampler repeats the first ones until each rank has as "
        "many, and what was summed over the ranks has them, too.",
        "the dataset has %1 samples; %2 ranks with %3 each are %4",
        "Gather the results and keep the first len(dataset) of them, or give each rank a Subset of its own: "
        "Subset(dataset, range(rank, len(dataset), world_size)).",
    ),
    "one_file": templates(
        "%1 write %3 at the same time%2: it has what the last one has written, or parts of several. It was written %4.",
        "rank %1: %2 to %3, %4",
        "Save on one rank (if rank == 0), or give each rank a file of its own.",
    ),
    "same_random_numbers/passes": templates(
        "Workers on %1 draw the same random numbers of %3 in passes %4 and %5 over the loader%2: what is random about "
        "a sample, such as augmentation, is alike in each epoch.",
        "rank %1, pass %2: %3 of the first worker begins with the state %4",
        "Seed workers from torch.initial_seed(), which is another one in each pass, and not from a fixed number.",
    ),
    "same_random_numbers/workers": templates(
        "%3 of %4 on %1 draw the same random numbers of %5: what is random about their samples, such as augmentation, "
        "is alike.",
        "rank %1, worker %2: %3 begins with the state %4",
        "Seed each worker by itself: torch.manual_seed(seed + rank) before the loader is used, and no fixed seed in "
        "worker_init_fn.",
    ),
}


def at_place(place: CodePlace | None) -> str:
    """Return where it happens, to follow a sentence's begin; empty if it is not known."""
    return "" if place is None else say(" (%1)", say("line %1 of %2", place.line, place.name))


def steps(first: int, last: int) -> str:
    """Return steps in words: step 3, steps 1-5."""
    return say("step %1", first) if first == last else say("steps %1-%2", first, last)


def number(value: float | None) -> str:
    """Return a number so that a reader can compare it."""
    return f"{value:.6g}" if value is not None and math.isfinite(value) else say("not finite")


def parameters(count: int) -> str:
    """Return how many: 1 parameter, 3 parameters."""
    return say_n("%1 parameter", "%1 parameters", count)


def listed(names: Sequence[str], count: int | None = None) -> str:
    """Return some names in words: `a`, `b` and 5 more."""
    shown = [f"`{name}`" for name in names[:MAX_LISTED]]
    rest = (len(names) if count is None else count) - len(shown)
    if rest > 0:
        return say("%1 and %2 more", ", ".join(shown), rest)
    return say("%1 and %2", ", ".join(shown[:-1]), shown[-1]) if len(shown) > 1 else "".join(shown) or say("none")


def times(count: int) -> str:
    """Return how often: twice, 4 times."""
    return say("twice") if count == 2 else say("%1 times", count)


@dataclass(frozen=True)
class Proof(CellFinding):
    """What is wrong with the training of a cell."""

    kind: str
    ranks: RankSet
    message: str
    evidence: Sequence[str]
    advice: str
    step: int | None  # since when
    place: CodePlace | None

    def model(self, since: float, first_step: int | None) -> models.Check:
        """Return the Check of docs/api.md."""
        line = None if self.place is None else self.place.model()
        return {**self.told(since), "kind": self.kind, "line": line, "step": first_step}


def prove(
    name: str,
    ranks: Iterable[int],
    values: Iterable[Any] = (),
    rows: Iterable[Sequence[Any]] = (),
    where: tuple[int | None, CodePlace | None] = (None, None),
) -> Proof:
    """Return a proof in the words of a kind, with values for its message from `%3` on, and rows for its evidence.

    `where` are the step since which it is wrong, and the line.
    """
    message, evidence, advice = WORDS[name]
    who = name_ranks(ranks, begins=message.startswith("%1"))
    told = [say(evidence, *row) for row in list(rows)[:MAX_ROWS]]
    said = say(message, who, at_place(where[1]), *values)
    return Proof(name.partition("/")[0], RankSet(ranks), said, told, say(advice), *where)
