"""How often the parameters of DistributedDataParallel models change: torch counts the changes of each tensor."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

from jupyter_dist.rank.cells.variables.opening import attributes_of
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

    def look(self, namespace: dict[str, Any]) -> list[list[Any]]:
        """Return a row for each model: its process group, the bytes of its gradients, its changes since the last look.

        An optimizer changes a parameter at least once a step, so there were at most as many steps as changes.
        """
        models = {id(model): model for model in _models(list(namespace.values())[:MAX_NAMES])}
        before, self._known = self._known, {}
        rows = []
        for identity, model in list(models.items())[:MAX_MODELS]:
            known = before.get(identity)
            with contextlib.suppress(RuntimeError, AttributeError):
                if known is None or known.model() is not model:
                    self._known[identity] = _KnownModel(model)
                else:
                    self._known[identity] = known
                    rows.append([known.group, known.num_bytes, known.num_changes()])
        return rows


class _KnownModel:
    def __init__(self, model: DistributedDataParallel) -> None:
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.model = weakref.ref(model)
        self.group = counters.name_of_group(model.process_group)
        self.num_bytes = sum(parameter.numel() * parameter.element_size() for parameter in parameters)
        # Some may be unused in a step, or frozen now.
        chosen = parameters[:: max(1, len(parameters) // MAX_READ)][:MAX_READ]
        self._parameters = [weakref.ref(parameter) for parameter in chosen]
        self._versions = self._read()

    def num_changes(self) -> int:
        """Return how often the parameters have changed since the last call."""
        before, self._versions = self._versions, self._read()
        return max((now - then for now, then in zip(self._versions, before, strict=True)), default=0)

    def _read(self) -> list[int]:
        alive = [parameter() for parameter in self._parameters]
        return [0 if parameter is None else torch_compat.version_of(parameter) or 0 for parameter in alive]


def _models(values: list[Any]) -> Iterator[DistributedDataParallel]:
    """Yield the models among these values and in their attributes, such as the model that a trainer holds."""
    seen: set[int] = set()
    for _ in range(MAX_DEPTH):
        held: list[Any] = []
        for value in values:
            with contextlib.suppress(RuntimeError, AttributeError):  # it is built at this moment
                if issubclass(type(value), torch.nn.Module):
                    yield from _distributed(value)
                elif id(value) not in seen and len(held) < MAX_OBJECTS:
                    seen.add(id(value))
                    held += _held_by(value)
        values = held[:MAX_OBJECTS]


def _held_by(value: Any) -> list[Any]:
    """Return the attributes of an object, or the elements of a list. No code of the user runs."""
    if type(value) in (list, tuple):
        return list(value[:MAX_ELEMENTS])
    if type(value) is dict:
        return list(value.values())[:MAX_ELEMENTS]
    if issubclass(type(value), (type, ModuleType, FunctionType, torch.Tensor)):
        return []
    return list((attributes_of(value) or {}).values())[:MAX_ATTRIBUTES]


def _distributed(module: torch.nn.Module) -> list[DistributedDataParallel]:
    """Return the DistributedDataParallel that a module is, or wraps, as torch.compile does."""
    found = (module, *torch.nn.Module.children(module))
    return [one for one in found if issubclass(type(one), DistributedDataParallel)]
