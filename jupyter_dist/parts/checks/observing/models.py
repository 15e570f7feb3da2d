"""The models of a rank, as optimizers hold their parameters: which ranks average gradients, and which are replicas."""

from __future__ import annotations

import contextlib
import sys
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.distributed as dist
from torch.nn import Module
from torch.nn.modules.module import (
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from torch.nn.parallel import DistributedDataParallel

from jupyter_dist.parts.checks.reports import Model, Strangers
from jupyter_dist.rank.collectives import torch_compat

MAX_ROOTS = 2000
STATISTICS = ("running_mean", "running_var", "num_batches_tracked")
Ranks = tuple[int, ...]
Named = list[tuple[str, weakref.ref[torch.Tensor]]]


class Roots:
    """The modules that were made on this rank and are in no other one, as far as torch's registration hooks show."""

    def __init__(self) -> None:
        self._known: dict[int, weakref.ref[Module]] = {}
        # Of modules that DDP has wrapped in this cell, and no optimizer has trained yet.
        self.wrapped: dict[int, Ranks] = {}

    def install(self) -> None:
        """Begin to note modules."""
        register_module_module_registration_hook(self._module_added)
        register_module_parameter_registration_hook(self._parameter_added)

    def _module_added(self, parent: Module, name: str, child: Module | None) -> None:
        if torch.compiler.is_compiling():
            return
        self._note(parent)
        if not isinstance(parent, DistributedDataParallel):
            self._known.pop(id(child), None)
        elif child is not None:
            self._note(child)
            with contextlib.suppress(AttributeError, RuntimeError, ValueError, KeyError):
                self.wrapped[id(child)] = tuple(dist.get_process_group_ranks(parent.process_group))

    def _parameter_added(self, parent: Module, name: str, parameter: Any) -> None:
        if not torch.compiler.is_compiling():
            self._note(parent)

    def _note(self, module: Module) -> None:
        key = id(module)
        if key not in self._known and len(self._known) < MAX_ROOTS:
            known = self._known
            self._known[key] = weakref.ref(module, lambda _: known.pop(key, None))

    def alive(self) -> list[Module]:
        """Return the modules that are in no other one."""
        found = [module for one in list(self._known.values()) if (module := one()) is not None]
        inner = {id(one) for module in found for one in Module.modules(module) if one is not module}
        for key in inner - {id(one.module) for one in found if isinstance(one, DistributedDataParallel)}:
            self._known.pop(key, None)
        return [module for module in found if id(module) not in inner]


@dataclass(frozen=True)
class TrainedModel:
    """A model whose parameters an optimizer holds. It keeps nothing alive."""

    about: Model
    outer: weakref.ref[Module]  # what cells call
    parameters: Named
    is_compiled: bool
    is_unwrapped: bool = False  # its DDP model is gone, and has never been trained

    def buffers(self) -> list[tuple[str, torch.Tensor]]:
        """Return the buffers that DDP has made alike, without statistics of batches: ranks may have their own."""
        outer = self.outer() if self.about.kind == "ddp" else None
        found = [] if outer is None else list(Module.named_buffers(outer))
        return [(name, one) for name, one in found if name.rpartition(".")[2] not in STATISTICS]


def living(named: Named) -> list[tuple[str, torch.Tensor]]:
    """Return the tensors that still exist, with their names."""
    return [(name, tensor) for name, one in named if (tensor := one()) is not None]


def models_of(held: set[int], roots: Roots) -> list[TrainedModel]:
    """Return the models among these modules that have parameters with one of these ids."""
    found = []
    for root in roots.alive():
        if any(id(parameter) in held for parameter in Module.parameters(root)):
            with contextlib.suppress(RuntimeError, AttributeError, ValueError, TypeError):
                ranks = roots.wrapped.pop(id(getattr(root, "module", root)), ())
                one = describe(root)
                is_unwrapped = one.about.kind == "plain" and len(ranks) > 1
                about = one.about._replace(kind="ddp", averaging=ranks, replicas=ranks) if is_unwrapped else one.about
                found.append(replace(one, about=about, is_unwrapped=is_unwrapped))
    return found


def strangers(held: frozenset[int], roots: Sequence[Module]) -> Strangers | None:
    """Return the first module with gradients that no optimizer holds; None if there is none."""
    for root in roots:
        parameters = Module.named_parameters(root)
        names = [name for name, one in parameters if one.grad is not None and id(one) not in held]
        if names:
            wrapped = root.module if isinstance(root, DistributedDataParallel) else root
            return Strangers(type(wrapped).__name__[:80], len(names), tuple(names[:4]))
    return None


def describe(root: Module) -> TrainedModel:
    """Return the model that a module is, or wraps."""
    dynamo = sys.modules.get("torch._dynamo.eval_frame")
    is_compiled = isinstance(root, getattr(dynamo, "OptimizedModule", ())) or torch_compat.is_compiled(root)
    wrapped = [module for module in Module.modules(root) if isinstance(module, DistributedDataParallel)]
    outer, names, has_hook = root, _names(root), False
    averaging: Ranks = ()
    replicas: Ranks = ()
    kind = "plain"  # also with several wrappers: each has its own gradients
    if len(wrapped) == 1:
        kind, (ddp,) = "ddp", wrapped
        outer, has_hook = root if is_compiled else ddp, torch_compat.has_comm_hook(ddp)
        averaging = replicas = tuple(dist.get_process_group_ranks(ddp.process_group))
        ignored: set[str] = set(getattr(ddp, "parameters_to_ignore", ()))
        names = [(name, one) for name, one in _names(ddp.module) if name not in ignored]
    elif not wrapped and any(torch_compat.is_sharded(type(module)) for module in Module.modules(root)):
        kind, (averaging, replicas) = "fsdp", _ranks_of_mesh(next(Module.parameters(root)))
    elif not wrapped and any(torch_compat.local_tensor(one) is not None for one in Module.parameters(root)):
        kind = "tensor"
    return TrainedModel(Model(kind, averaging, replicas, has_hook), weakref.ref(outer), names, is_compiled)


def _names(module: Module) -> Named:
    return [(name, weakref.ref(parameter)) for name, parameter in Module.named_parameters(module)]


def _ranks_of_mesh(parameter: Any) -> tuple[Ranks, Ranks]:
    """Return the ranks of FSDP2 that average gradients, and the replicas among them, for this rank.

    FSDP2 takes the first dimensions of a mesh: of replicas, if there is one, and of shards. The others are for tensor
    parallelism.
    """
    mesh, placements = parameter.device_mesh, list(parameter.placements)
    dims = [0] if placements[0].is_replicate() else []
    replicas = _along(mesh, dims) if dims else ()
    if len(dims) < len(placements) and not placements[len(dims)].is_replicate():
        dims.append(len(dims))
    return _along(mesh, dims) if dims else (), replicas


def _along(mesh: Any, dims: Sequence[int]) -> Ranks:
    place = mesh.get_coordinate()
    index = tuple(slice(None) if dim in dims else place[dim] for dim in range(mesh.ndim))
    return tuple(sorted(mesh.mesh[index].flatten().tolist()))
