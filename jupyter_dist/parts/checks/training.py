"""The value that `group.check()` compares between ranks: a model, its optimizers, samplers and random states."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.nn import Module
from torch.optim.optimizer import Optimizer
from torch.utils.data import DataLoader, DistributedSampler

from jupyter_dist.protocol.errors import JupyterDistError, bad_request
from jupyter_dist.protocol.models.sentences import say

from .observing import sampling
from .observing.steps import held_by


def training_of(name: str, namespace: dict[str, Any]) -> dict[str, Any]:
    """Return a model, its optimizers, the samplers, and digests of the random states, by name.

    Raises:
        JupyterDistError: `not_found`, if there is no such variable; `bad_request`, if it is no module.
    """
    model = namespace.get(name)
    if model is None:
        raise JupyterDistError("not_found", say("There is no variable '%1'.", f"{name:.60}"))
    if not isinstance(model, Module):
        message = say("`%1` is no torch.nn.Module on this rank.", name)
        raise bad_request(message, say("Name a variable that is a model."))
    held = set(map(id, Module.parameters(model)))
    found = dict(_trains(held, namespace))
    return {name: model, **found, "random": sampling.random_states()}


def _trains(parameters: set[int], namespace: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the optimizers of these parameters, and the settings of samplers: their data may be large."""
    for variable, value in list(namespace.items()):
        sampler = value.sampler if isinstance(value, DataLoader) else value
        if variable.startswith("_"):
            continue
        if isinstance(value, Optimizer) and any(id(one) in parameters for one in held_by(value)):
            yield variable, value
        elif isinstance(sampler, DistributedSampler):
            names = ("num_replicas", "epoch", "seed", "shuffle", "total_size")
            yield variable, {one: getattr(sampler, one) for one in names}
