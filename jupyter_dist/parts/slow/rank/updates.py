"""How often the parameters of DDP and FSDP2 models change: torch counts the changes of each tensor."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch.nn import Module
from torch.nn.parallel import DistributedDataParallel

from jupyter_dist.rank.cells.values.opening import attributes_of, is_one_of
from jupyter_dist.rank.collectives import torch_compat
from jupyter_dist.rank.collectives.diagnosis import counters

MAX_NAMES = 2000
MAX_MODELS = 8
MAX_READ = 3  # parameters of a model
MAX_DEPTH = 4  # trainer, connector, strategy, model
MAX_OBJECTS, MAX_ATTRIBUTES, MAX_ELEMENTS = 500, 100, 8


class ModelUpdates:
    """Compares the parameters of the user's models from look to look. It keeps no model and no tensor alive."""

    def __init__(self) -> None:
        self._known: dict[int, _KnownModel] = {}  # by id

    def look(self, namespace: dict[str, Any]) -> dict[str, list[list[Any]]]:
        """Return the rows `updates` and `sharded_updates` of docs/messaging.md, with the changes since the last look.

        An optimizer changes a parameter at least once a step, so there were at most as many steps as changes.
        """
        models = {id(model): model for model in _models(list(namespace.values())[:MAX_NAMES])}
        before, self._known = self._known, {}
        rows: dict[str, list[list[Any]]] = {"updates": [], "sharded_updates": []}
        for identity, model in list(models.items())[:MAX_MODELS]:
            known = before.get(identity)
            with contextlib.suppress(RuntimeError, AttributeError, ValueError):
                if known is None or known.model() is not model:
                    self._known[identity] = _known_model(model)
                else:
                    self._known[identity] = known
        inner = {module for known in self._known.values() for module in known.inner}
        for identity, known in self._known.items():
            if known is before.get(identity) and identity not in inner:
                known.add_row(rows)
        return rows


class _KnownModel:
    inner: frozenset[int] = frozenset()  # of its modules, by id: they are models, too

    def __init__(self, model: Module, group: str) -> None:
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.model = weakref.ref(model)
        self.group = group
        self.num_bytes = _num_bytes(parameters)
        # Some may be unused in a step, or frozen now.
        chosen = parameters[:: max(1, len(parameters) // MAX_READ)][:MAX_READ]
        self._parameters = [weakref.ref(parameter) for parameter in chosen]
        self._first, self._counted = self._read(), 0

    def add_row(self, rows: dict[str, list[list[Any]]]) -> None:
        """Add the changes since the last call."""
        rows["updates"].append([self.group, self.num_bytes, self._num_changes()])

    def _num_changes(self) -> int:
        # Of all looks together: one in the middle of a step finds some parameters changed, and the next one the others.
        total = max((now - first for now, first in zip(self._read(), self._first, strict=True)), default=0)
        changes, self._counted = max(0, total - self._counted), max(total, self._counted)
        return changes

    def _read(self) -> list[int]:
        alive = [parameter() for parameter in self._parameters]
        return [0 if parameter is None else torch_compat.version_of(parameter) or 0 for parameter in alive]


class _KnownSharded(_KnownModel):
    """A model of FSDP2: each of its sharded modules has a collective for its gradients."""

    def __init__(self, model: Module) -> None:
        parameters = {id(parameter): parameter for parameter in model.parameters() if parameter.requires_grad}
        (mesh,) = {parameter.device_mesh for parameter in parameters.values()}
        # The gradients of a mesh of several dimensions need several collectives: they are not compared.
        super().__init__(model, counters.name_of_group(mesh.get_group()) if mesh.ndim == 1 else "")
        sharded = [module for module in model.modules() if torch_compat.is_sharded(type(module))]
        self.inner = frozenset(map(id, sharded)) - {id(model)}
        sizes = []
        for module in reversed(sharded):  # inner modules come after the outer ones
            own = [parameters.pop(id(one)) for one in module.parameters() if id(one) in parameters]
            sizes += [_num_bytes(own)] if own else []
        self._num_gradients, self._least_bytes = len(sizes), min(sizes)

    def add_row(self, rows: dict[str, list[list[Any]]]) -> None:
        """Add the changes since the last call."""
        if self.group:
            row = [self.group, self._least_bytes, self._num_gradients, self._num_changes()]
            rows["sharded_updates"].append(row)


def _known_model(model: Module) -> _KnownModel:
    if isinstance(model, DistributedDataParallel):
        return _KnownModel(model, counters.name_of_group(model.process_group))
    return _KnownSharded(model)


def _num_bytes(parameters: list[torch.nn.Parameter]) -> int:
    return sum(parameter.numel() * parameter.element_size() for parameter in parameters)


def _models(values: list[Any]) -> Iterator[Module]:
    """Yield the models among these values and in their attributes, such as the model that a trainer holds."""
    seen: set[int] = set()
    for _ in range(MAX_DEPTH):
        held: list[Any] = []
        for value in values:
            with contextlib.suppress(RuntimeError, AttributeError):  # it is built at this moment
                if issubclass(type(value), Module):
                    yield from _distributed(value)
                elif id(value) not in seen and len(held) < MAX_OBJECTS:
                    seen.add(id(value))
                    held += _held_by(value)
        values = held[:MAX_OBJECTS]


def _held_by(value: Any) -> list[Any]:
    """Return the attributes of an object, or the elements of a list. No code of the user runs."""
    if is_one_of(value, (list, tuple)):
        return list(value[:MAX_ELEMENTS])
    if type(value) is dict:
        return list(value.values())[:MAX_ELEMENTS]
    if issubclass(type(value), (type, ModuleType, FunctionType, torch.Tensor)):
        return []
    return list((attributes_of(value) or {}).values())[:MAX_ATTRIBUTES]


def _distributed(module: Module) -> list[Module]:
    """Return the DDP or FSDP2 model that a module is, or wraps, as torch.compile does."""
    found = (module, *Module.children(module))
    return [
        one for one in found if issubclass(type(one), DistributedDataParallel) or torch_compat.is_sharded(type(one))
    ]
