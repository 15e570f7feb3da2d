"""What models are called with: hooks of the module that cells call, during a cell. About 5 us per call."""

from __future__ import annotations

import contextlib
import functools
import math
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch.nn import Module
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from jupyter_dist.parts.checks.reports import Batch
from jupyter_dist.rank.cells.values.opening import is_one_of
from jupyter_dist.rank.collectives import torch_compat
from jupyter_dist.rank.guard.own import time

from . import sampling
from .facts import Facts
from .models import Named, TrainedModel, living

MAX_EVALUATED = 3  # batches of an evaluation that are compared
MAX_IDLE = 4  # layers
LEAST_CALLED = 3  # steps


class _Hook:
    """A hook; a saved or copied model has a function in its place that takes anything and returns None."""

    def __init__(self, call: Callable[..., None]) -> None:
        self.call = call

    def __call__(self, *args: Any) -> None:
        if not torch.compiler.is_compiling():
            self.call(*args)

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (contextlib.nullcontext(), "__exit__")

    def __deepcopy__(self, memo: Any) -> Any:
        return contextlib.nullcontext().__exit__


class Forwards:
    """The calls of one model since the last step."""

    def __init__(self, model: TrainedModel, facts: Facts) -> None:
        self.model = model
        self._facts = facts
        self._handles: list[Any] = []
        self.wants_batch = True
        self._spent = 0.0
        self.begin_cell()

    def begin_cell(self) -> None:
        """Forget all calls."""
        self._evaluation: tuple[int, int, int] | None = None  # as sent last
        self.num_ever = self.num_synced_ever = 0  # calls for training in this cell
        self._evaluated: tuple[int, list[str]] = 0, []  # steps of any optimizer, digests of batches since the last one
        self.begin_step()

    def take_cost(self) -> float:
        """Return the seconds that calls were held up since the last call."""
        spent, self._spent = self._spent, 0.0
        return spent

    def begin_step(self) -> None:
        """Forget the calls before."""
        self.num_outer = self.num_batches = self.num_synced = 0
        self.is_synced = True
        self.is_watched = bool(self._handles)  # since the step before
        self.is_training: bool | None = None
        self.batch: Batch | None = None
        self._inputs: list[weakref.ref[torch.Tensor]] = []
        self._outputs: list[weakref.ref[torch.Tensor]] = []

    def hook(self, may_hook: bool) -> None:
        """Note calls, or no more. What torch has compiled, its own hooks aside, must not depend on ours."""
        outer, model = self.model.outer(), self.model
        if not may_hook:
            self.remove()
        elif self._handles or outer is None or torch_compat.is_compiled(outer):
            return
        elif model.is_compiled or model.about.kind == "ddp" or not torch_compat.has_compiled():
            self._handles.append(outer.register_forward_pre_hook(_Hook(self._outer_called), with_kwargs=True))

    def watch_outputs(self, are_wanted: bool) -> None:
        """Note the outputs of calls, or no more."""
        if not are_wanted:
            _end(self._handles[1:])
            del self._handles[1:]
        elif len(self._handles) == 1 and (outer := self.model.outer()) is not None:
            self._handles.append(outer.register_forward_hook(_Hook(self._outer_returned)))

    def remove(self) -> None:
        """Take the hooks away."""
        _end(self._handles)
        self._handles.clear()

    def _outer_called(self, module: Module, args: Any, kwargs: Any) -> None:
        began = time.perf_counter()
        self._called(module, args, kwargs)
        self._spent += time.perf_counter() - began

    def _called(self, module: Module, args: Any, kwargs: Any) -> None:
        if not torch.is_grad_enabled():
            self._evaluates(module, args, kwargs)
            return
        self.num_outer += not self.model.is_unwrapped
        self.num_ever += 1
        self.is_training = module.training
        self.is_synced = bool(getattr(module, "require_backward_grad_sync", True))
        self.num_synced += self.is_synced
        self.num_synced_ever += self.is_synced
        before, self._inputs = self._inputs[:1], _references((*args, *kwargs.values()))
        # Passes over one batch, or over what an attack changes, are no accumulation.
        is_same = any(one is other for one, other in zip(before, self._inputs, strict=False))
        self.num_batches += not is_same and not any(getattr(one, "requires_grad", False) for one in args)
        if self.num_outer == 1 and self.wants_batch:
            self.batch = self._batch(sampling.tensors_in((*args, *kwargs.values())))

    def _outer_returned(self, module: Module, args: Any, output: Any) -> None:
        self._outputs = _references(output if is_one_of(output, (tuple, list)) else (output,))

    def _batch(self, tensors: list[torch.Tensor]) -> Batch | None:
        with torch.no_grad():
            found = sampling.sample([sampling.local(tensor) for tensor in tensors], sampling.MAX_BATCH)
        samples = [one for one in found if one is not None]
        if not samples:
            return None
        shapes = [tuple(tensor.shape)[:8] for tensor in tensors]
        parts = [one._replace(shape=shape) for one, shape in zip(found, shapes, strict=True) if one is not None]
        digest, varies = sampling.digest_of(one.digest for one in samples), any(one.varies for one in samples)
        shape = max(shapes, key=math.prod)
        return Batch(digest, samples[0].first, varies, shape, self._facts.place(), tuple(parts))

    def _evaluates(self, module: Module, args: Any, kwargs: Any) -> None:
        """Note a batch of an evaluation: a few in a row, without a step between."""
        if self._evaluated[0] != self._facts.num_steps:
            self._evaluated = self._facts.num_steps, []
        digests = self._evaluated[1]
        if len(digests) >= MAX_EVALUATED:
            return
        batch = self._batch(sampling.tensors_in((*args, *kwargs.values())))
        digests.append("" if batch is None else batch.digest)
        if len(digests) == MAX_EVALUATED and batch is not None:
            is_different = len(set(digests)) == MAX_EVALUATED
            evaluation = int(module.training), int(is_different), _num_active_norms(module)
            if evaluation != self._evaluation:
                self._evaluation = evaluation
                self._facts.add("evaluation", id(self), evaluation, place=batch.place)

    def not_finite(self) -> str | None:
        """Return `input` or `output`, where the last call had numbers that are not finite; None if it had none."""
        for name, references in (("input", self._inputs), ("output", self._outputs)):
            alive = [tensor for one in references if (tensor := one()) is not None]
            if any(not value < float("inf") for value in sampling.largest(_floats(alive))):
                return name
        return None


class IdleLayers:
    """The layers that have had no gradient in this cell: in how many steps they were called so that one could begin."""

    def __init__(self, models: Sequence[TrainedModel], held: Named) -> None:
        trained = [(name, tensor) for name, tensor in living(held) if tensor.requires_grad]
        idle = {id(tensor): name for name, tensor in trained if tensor.grad is None}
        outers = [model.outer() for model in models] if 0 < len(idle) < len(trained) else []
        self._layers: dict[str, tuple[weakref.ref[Module], weakref.ref[torch.Tensor]]] = {}
        for module in (one for outer in outers if outer is not None for one in Module.modules(outer)):
            own = [one for one in Module.parameters(module, recurse=False) if one.requires_grad]
            if own and all(id(one) in idle for one in own) and len(self._layers) < MAX_IDLE:
                name = idle[id(own[0])].rpartition(".")[0]
                self._layers[name] = weakref.ref(module), weakref.ref(own[0])
        self._handles: list[Any] = []
        self._called: set[str] = set()
        self._num_called: Counter[str] = Counter()

    def watch(self) -> None:
        """Note calls until `end`."""
        for name, (reference, _) in self._layers.items():
            if (module := reference()) is not None:
                self._handles.append(module.register_forward_hook(_Hook(functools.partial(self._call, name))))

    def _call(self, name: str, module: Module, args: Any, output: Any) -> None:
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in sampling.tensors_in(output)):
            self._called.add(name)

    def step(self) -> None:
        """Forget the layers that have a gradient. Called at each step."""
        for name, (_, reference) in list(self._layers.items()):
            if (tensor := reference()) is None or tensor.grad is not None:
                del self._layers[name]

    def called(self) -> list[str]:
        """Return the names of the layers that were called in several steps, and have had no gradient in any."""
        return [name for name in self._layers if self._num_called[name] >= LEAST_CALLED]

    def end(self) -> None:
        """Take the hooks away."""
        self._num_called.update(self._called)
        self._called.clear()
        _end(self._handles)
        self._handles.clear()


def _end(handles: Iterable[Any]) -> None:
    for handle in handles:
        with contextlib.suppress(KeyError):
            handle.remove()


def _references(values: Iterable[Any]) -> list[weakref.ref[torch.Tensor]]:
    return [weakref.ref(value) for value in values if type(value) is torch.Tensor]


def _floats(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    found = [sampling.local(tensor) for tensor in tensors]
    return [tensor for tensor in found if tensor is not None and tensor.is_floating_point()]


def active_layers(module: Module) -> tuple[int, int]:
    """Return how many layers of a model act differently in training and in evaluation, and how many of them train."""
    layers = [one for one in Module.modules(module) if isinstance(one, (_BatchNorm, _DropoutNd))]
    layers = [one for one in layers if not isinstance(one, _DropoutNd) or one.p > 0]
    return len(layers), sum(one.training for one in layers)


def _num_active_norms(module: Module) -> int:
    """Return how many layers keep statistics of batches, and change those now."""
    norms = [one for one in Module.modules(module) if isinstance(one, _BatchNorm)]
    return sum(one.training and one.track_running_stats for one in norms)
