"""Looks at a step of an optimizer when it has ended: its gradients are still there, its parameters are new."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch.optim.optimizer import Optimizer

from jupyter_dist.parts.checks.reports import NO_RATE, About, Left, ModelCalls, Settings, Stale, StepLook, Wrong
from jupyter_dist.rank.collectives import torch_compat
from jupyter_dist.rank.collectives.diagnosis.records import collectives_since
from jupyter_dist.rank.guard.own import time
from jupyter_dist.transport.rows import CodePlace

from . import sampling
from .forwards import Forwards, IdleLayers, active_layers
from .models import Named, Roots, TrainedModel, living, strangers
from .schedule import IDLE_STEP, MEASURED, UNSYNCED_STEP, Schedule

MAX_CHOSEN = 48  # parameters of which digests are sent
MAX_NAMES = 4
MAX_GROUPS = 8
PROBE_ELEMENTS = 4096
MAX_SUM = 4  # elements of a loss
SETTINGS = ("lr", "weight_decay", "momentum", "betas", "eps")


class SteppingOptimizer:
    """An optimizer that steps in this cell, with the models of its parameters."""

    def __init__(self, optimizer: Optimizer, number: int, models: list[TrainedModel], forwards: list[Forwards]) -> None:
        self.optimizer = weakref.ref(optimizer)
        self.number = number
        self.models = models
        self.forwards = forwards
        self.schedule = Schedule()
        held = held_by(optimizer)
        self.ids = frozenset(map(id, held))
        self.num_held = len(held)
        self._named = _name(held, models)
        inside = {id(tensor) for model in models for _, tensor in living(model.parameters)}
        # What a model has no more may differ between ranks.
        compared = [one for one, tensor in zip(self._named, held, strict=True) if not inside or id(tensor) in inside]
        self._chosen = compared[:: max(1, math.ceil(len(compared) / MAX_CHOSEN))]
        self.signature = sampling.digest_of(f"{name} {list(one.shape)}" for name, one in living(self._named))
        self._probe = next((one for _, one in reversed(self._named) if _can_probe(one())), None)
        self._zeroing: _Zeroing | None = None
        self._idle: IdleLayers | None = None
        self._empty: set[str] | None = None  # without a gradient when the step began
        self._stepped_ns = time.time_ns()
        self._mode: tuple[bool, ...] = ()  # at the last step
        self._was_finite = True
        self._has_forgotten = False  # parameters without an optimizer, in the last look
        self.may_be_local = False  # no pass has averaged gradients yet
        self.is_written = False  # by something else than the optimizer
        self._weight: float | None = None  # of the probe, after the last step

    def look(self, place: CodePlace | None, others: frozenset[int], roots: Roots) -> StepLook:
        """Return the report of the step. `others` are the ids of the parameters that any optimizer holds."""
        with torch.no_grad():
            named = living(self._chosen)
            gradients = [sampling.local(tensor.grad) for _, tensor in named]
            kept = [one for model in self.models for one in model.buffers()][:MAX_CHOSEN]
            found = sampling.sample([*gradients, *(sampling.local(tensor) for _, tensor in (*named, *kept))])
            gradient_wrong, weight_wrong = self._not_finite(is_gradient=True), self._not_finite(is_gradient=False)
        is_wrong = gradient_wrong is not None or weight_wrong is not None
        left = self._left_out(others)
        self._has_forgotten = left.forgotten > 0
        row = StepLook(
            optimizer=self.number,
            step=self.schedule.num_steps,
            signature=self.signature,
            place=place,
            gradients=tuple(found[: len(named)]),
            weights=tuple(found[len(named) :]),
            settings=self.settings(),
            is_written=self.is_written,
            calls=tuple(map(_calls, self.forwards)),
            stale=None if self._zeroing is None else self._zeroing.result(),
            left=left,
            strangers=strangers(others, roots.alive()) if left.idle == left.held > 0 else None,
            gradient_wrong=gradient_wrong,
            weight_wrong=weight_wrong,
            wrong_call=next(filter(None, (one.not_finite() for one in self.forwards)), None) if is_wrong else None,
            about=About(tuple(name[:120] for name, _ in (*named, *kept)), tuple(one.about for one in self.models)),
            idle_layers=tuple(self._idle.called() if self._idle is not None else ()),
            reduced=self._reduced(),
        )
        if self._idle is not None:
            return row._replace(about=None)
        self._idle = IdleLayers(self.models, self._named)
        return row

    def begin_next(self, may_probe: bool) -> None:
        """Prepare for the next step; if it may be looked at, watch whether its gradients begin at zero."""
        is_fsdp = [one.about.kind for one in self.models] == ["fsdp"]
        self._zeroing = _Zeroing(self._named, is_fsdp) if may_probe else None
        if self._idle is not None and may_probe:
            self._idle.watch()
        self._stepped_ns = time.time_ns()
        self.may_be_local = any(one.num_ever and not one.num_synced_ever for one in self.forwards)
        self._weight = self._probed_weight() if self.may_be_local else None

    def begin_step(self, others: Iterable[SteppingOptimizer]) -> None:
        """Note whether anything but the optimizer has changed the parameters: local SGD averages them now and then.

        `others` are optimizers that step in between.
        """
        if self._zeroing is not None:
            self._zeroing.begin_step([one._zeroing for one in others])
            self._empty = {name for name, tensor in living(self._named) if tensor.grad is None}
        if self.may_be_local:
            self.is_written = self.is_written or self._weight not in (None, self._probed_weight())
            self._weight = None

    def _probed_weight(self) -> float | None:
        tensor = None if self._probe is None else self._probe()
        return None if tensor is None else tensor.detach().sum().item()

    def end_probe(self) -> None:
        """Take the hook of the last step away."""
        for probe in (self._zeroing, self._idle):
            if probe is not None:
                probe.end()

    def is_quiet(self) -> bool:
        """Count a step; whether nothing is to be done about it. Called at each step: it takes some microseconds."""
        schedule = self.schedule
        step = schedule.num_steps = schedule.num_steps + 1
        began = None if step % MEASURED else time.thread_time()
        if self._idle is not None:
            self._idle.step()
        if step % schedule.mode_steps == 0:
            before, self._mode = self._mode, self._mode_now()
            if self._mode != before and step > 2:
                schedule.changed()
        if step >= schedule.next_event or not self._is_probe_finite():
            return False
        for one in self.forwards:
            one.num_outer = one.num_batches = one.num_synced = 0
        if self.may_be_local:
            self._weight = self._probed_weight()
        if began is not None:
            schedule.spent += MEASURED * (time.thread_time() - began)
        return True

    def _mode_now(self) -> tuple[bool, ...]:
        """Return whether the learning rate is zero, and whether each model is in training mode: both seldom change."""
        optimizer = self.optimizer()
        rate = optimizer.param_groups[0].get("lr") if optimizer is not None and optimizer.param_groups else None
        outers = [model.outer() for model in self.models]
        return _is_zero(rate), *(outer is not None and outer.training for outer in outers)

    def is_due(self) -> bool:
        """Whether to look at the step that was counted: by the schedule, or for what is rare and alike on all ranks."""
        if self.schedule.is_due or not self._was_finite:
            return True
        if self.schedule.num_steps == IDLE_STEP:
            if self._has_forgotten or (self._idle is not None and self._idle.called()):
                return True
            optimizer = self.optimizer()
            return optimizer is not None and all(_is_zero(group.get("lr")) for group in optimizer.param_groups)
        return self.schedule.num_steps == UNSYNCED_STEP and self.may_be_local

    def _is_probe_finite(self) -> bool:
        """Whether a small gradient on the CPU is finite; True again after the first time that it is not."""
        tensor = None if self._probe is None else self._probe()
        gradient = None if tensor is None else tensor.grad
        if gradient is None:
            return True
        is_finite = math.isfinite(gradient.sum().item())
        was, self._was_finite = self._was_finite, is_finite
        return is_finite or not was

    def _reduced(self) -> int:
        """Return how many small sums over ranks came before the backward pass, if nothing else was communicated.

        They are asked for where no wrapper averages gradients.
        """
        passed_ns = None if self._zeroing is None else self._zeroing.began_ns
        if passed_ns is None or not dist.is_initialized() or any(model.about.kind != "plain" for model in self.models):
            return 0
        begun = [one for one in collectives_since(self._stepped_ns) if not one.is_p2p]
        are_sums = all(one.operation == "all_reduce" and one.elements <= MAX_SUM for one in begun)
        return sum(one.began_ns < passed_ns for one in begun) if are_sums else 0

    def settings(self) -> Settings:
        """Return the settings of each group of parameters."""
        optimizer = self.optimizer()
        groups = [] if optimizer is None else optimizer.param_groups[:MAX_GROUPS]
        return tuple({name: _number(group[name]) for name in SETTINGS if name in group} for group in groups)

    def _left_out(self, others: frozenset[int]) -> Left:
        """Count the parameters without a gradient, and name parameters with a gradient that no optimizer holds."""
        alive = living(self._named)
        empty = {name for name, tensor in alive if tensor.grad is None} if self._empty is None else self._empty
        idle = [name for name, tensor in alive if name in empty and tensor.grad is None and tensor.requires_grad]
        # A model's own parameters may be used where its last layers are: they come last.
        by_model = (sorted(living(model.parameters), key=lambda one: "." not in one[0]) for model in self.models)
        of_models = [one for several in by_model for one in several]
        inside = {id(tensor) for _, tensor in of_models}
        places = [place for place, (_, one) in enumerate(of_models) if one.grad is not None and id(one) not in others]
        unheld = [of_models[place][0] for place in places]
        first_held = next((place for place, (_, one) in enumerate(of_models) if id(one) in others), len(of_models))
        # Who trains a part of a model alone holds its end, or little of it; or has frozen the others.
        has_chosen = any(not one.requires_grad for _, one in of_models) and len(places) < len(alive)
        is_part = 0 < len(places) < len(of_models) / 2
        is_forgotten = is_part and (has_chosen or first_held < places[0])
        return Left(
            held=len(alive),
            idle=len(idle),
            idle_names=tuple(idle[:MAX_NAMES]),
            gone=sum(id(tensor) not in inside and tensor.grad is None for _, tensor in alive),
            frozen=sum(not tensor.requires_grad for _, tensor in alive),
            unheld=tuple(unheld[:MAX_NAMES]),
            forgotten=len(places) if is_forgotten else 0,
        )

    def _not_finite(self, is_gradient: bool) -> Wrong | None:
        """Return the gradients or parameters that are not finite; None if all are."""
        parts = [(name, sampling.local(one.grad if is_gradient else one)) for name, one in living(self._named)]
        floats = [(name, part) for name, part in parts if part is not None and part.is_floating_point()]
        values = sampling.largest([part for _, part in floats])
        wrong = [(name, value) for (name, _), value in zip(floats, values, strict=True) if not math.isfinite(value)]
        names = tuple(name for name, _ in wrong[:MAX_NAMES])
        return Wrong(names, len(wrong), len(floats), str(wrong[0][1])) if wrong else None


def _calls(forward: Forwards) -> ModelCalls:
    module = forward.model.outer()
    batch, forward.batch = forward.batch, None
    layers = (0, 0) if module is None or forward.is_training is not False else active_layers(module)
    calls = forward.num_outer, forward.num_batches, forward.num_synced, forward.is_synced
    return ModelCalls(forward.is_watched, *calls, forward.is_training, *layers, forward.model.about.kind, batch)


class _Zeroing:
    """Whether a backward pass finds the gradient that the last step has used.

    A gradient that was set to None, or to zero, is another tensor, or has another version. Nor may a gradient be
    set to zero between two passes, or before the step. FSDP2 adds to gradients itself, and calls a hook afterwards.
    """

    def __init__(self, named: Named, is_fsdp: bool) -> None:
        self._handle: Any = None
        self._is_fsdp = is_fsdp
        self.num_passes = self.num_stale = self.num_lost = 0
        self._has_begun = False  # the step, whose closure may begin passes
        self._next_version: int | None = None  # if nothing but the pass changes it
        self.began_ns: int | None = None  # the first pass
        self.name, self.value = "", 0.0
        alive = [(name, tensor) for name, tensor in living(named) if tensor.requires_grad and tensor.is_leaf]
        for name, tensor in sorted(alive, key=lambda one: one[1].grad is None)[:1]:
            part = sampling.part_of(tensor.grad)
            self.name, self._tensor = name, weakref.ref(tensor)
            self._gradient: Callable[[], Any] = type(None) if tensor.grad is None else weakref.ref(tensor.grad)
            self._newest: Callable[[], Any] = self._gradient
            self._version = self._version_of(tensor.grad) or 0 if type(part) is torch.Tensor else -1
            if is_fsdp and self._version >= 0:
                self.value = float(part.detach().abs().max())
            add_hook = tensor.register_post_accumulate_grad_hook if is_fsdp else tensor.register_hook
            self._handle = add_hook(self._begins)

    def _version_of(self, gradient: Any) -> int | None:
        """Return how often a gradient was changed in place; a pass of FSDP2 changes its local tensor alone."""
        return torch_compat.version_of(gradient if self._is_fsdp else sampling.part_of(gradient))

    def _begins(self, _: torch.Tensor) -> None:
        tensor = self._tensor()
        gradient: Any = None if tensor is None else tensor.grad
        part = sampling.part_of(gradient)
        if self._is_fsdp and gradient is not None:
            before, self._newest = self._newest(), weakref.ref(gradient)
            gradient = gradient if gradient is before else None  # as the pass has found it
        version = None if gradient is None else self._version_of(gradient)
        is_changed = version is not None and self._next_version not in (None, version)
        is_lost = bool(self.num_passes) and (gradient is None or (is_changed and not part.any()))
        self.num_lost += is_lost and not self._has_begun
        is_stale = gradient is not None and gradient is self._gradient()
        if self.num_passes == 0:
            is_stale = is_stale and version == self._version
            if is_stale and not self._is_fsdp:
                self.value = float(part.detach().abs().max())
        else:  # DDP writes averages into gradients, which changes their versions
            is_stale = is_stale and self.num_stale > 0 and not is_lost and not (is_changed and self._is_fsdp)
        self._next_version = None if version is None else version + (not self._is_fsdp)
        self.num_passes += 1
        self.began_ns = self.began_ns or time.time_ns()
        self.num_stale += is_stale

    def end(self) -> None:
        """Take the hook away."""
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def begin_step(self, others: Iterable[_Zeroing | None]) -> None:
        """Count the passes until now. Those for another optimizer, as in a GAN, are to be lost: only one has them."""
        self._has_begun = True
        own = self.num_passes, self.num_lost
        self.num_lost *= all(one is not None and own == (one.num_passes, one.num_lost) for one in others)

    def result(self) -> Stale | None:
        """Return the counts of the passes; None if there were none."""
        if not self.num_passes:
            return None
        counts = self.num_passes, self.num_stale, self.num_lost
        return Stale(*counts, self.name, self.value)


def held_by(optimizer: Optimizer) -> list[torch.Tensor]:
    """Return the parameters of an optimizer."""
    return [tensor for group in optimizer.param_groups for tensor in group["params"]]


def _name(held: list[torch.Tensor], models: list[TrainedModel]) -> Named:
    """Return the parameters of an optimizer with their names in the models; others are called by their number."""
    names: dict[int, str] = {}
    for number, model in enumerate(models):
        for name, tensor in living(model.parameters):
            names.setdefault(id(tensor), f"{number}.{name}" if len(models) > 1 else name)
    return [(names.get(id(one), f"parameter {place} of it"), weakref.ref(one)) for place, one in enumerate(held)]


def _is_zero(rate: Any) -> bool:
    return type(rate) in (int, float) and abs(rate) < NO_RATE


def _can_probe(tensor: torch.Tensor | None) -> bool:
    if tensor is None or tensor.device.type != "cpu" or tensor.numel() > PROBE_ELEMENTS or not tensor.requires_grad:
        return False
    return type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.dtype in (torch.float32, torch.float64)


def _number(value: Any) -> Any:
    """Return a setting as JSON has it; a tensor on a device is not read, for that would wait."""
    if isinstance(value, torch.Tensor):
        return float(value) if value.device.type == "cpu" and value.numel() == 1 else None
    if isinstance(value, (tuple, list)):
        return [_number(one) for one in value[:4]]
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None
