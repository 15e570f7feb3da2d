"""Digests of all that a model trains with on this rank, on demand: whole tensors, settings, samplers, random states."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.nn import Module
from torch.optim.optimizer import Optimizer
from torch.utils.data import DataLoader, DistributedSampler

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.rank.collectives import torch_compat

from .observing import sampling
from .observing.steps import SETTINGS, held_by

MAX_ROWS = 20_000
MAX_STATES = 8  # of a parameter, in an optimizer

Row = list[Any]  # its kind, its name, its digest (None: a shard, which is not compared), and its first value


def digests_of(name: str, namespace: dict[str, Any]) -> list[Row]:
    """Return a row for each part of a model and of what trains it.

    Raises:
        JupyterDistError: `not_found`, if no module has this name.
    """
    model = namespace.get(name)
    if not isinstance(model, Module):
        message = say("`%1` is no torch.nn.Module on this rank.", name)
        raise JupyterDistError("not_found", message, say("Name a variable that is a model."))
    rows: list[Row] = []
    with torch.no_grad():
        random = (["random", library, digest, None] for library, digest in sampling.random_states().items())
        for found in (_of_model(model), _of_optimizers(model, namespace), _of_samplers(namespace), random):
            for row in found:
                if len(rows) < MAX_ROWS:
                    rows.append(row)
    return rows


def _of_model(model: Module) -> Iterator[Row]:
    for name, parameter in Module.named_parameters(model):
        yield _row("parameter", name, parameter)
    for name, buffer in Module.named_buffers(model):
        yield _row("buffer", name, buffer)


def _of_optimizers(model: Module, namespace: dict[str, Any]) -> Iterator[Row]:
    names = {id(parameter): name for name, parameter in Module.named_parameters(model)}
    for variable, optimizer in list(namespace.items()):
        if variable.startswith("_") or not isinstance(optimizer, Optimizer):
            continue
        held = [parameter for parameter in held_by(optimizer) if id(parameter) in names]
        for number, group in enumerate(optimizer.param_groups if held else ()):
            for setting in SETTINGS:
                if setting in group and not isinstance(group[setting], torch.Tensor):
                    yield ["setting", f"{variable}, group {number}, {setting}", str(group[setting]), None]
        for parameter in held:
            for key, value in list(optimizer.state.get(parameter, {}).items())[:MAX_STATES]:
                if isinstance(value, torch.Tensor):
                    yield _row("state", f"{variable}, {names[id(parameter)]}, {key}", value)


def _of_samplers(namespace: dict[str, Any]) -> Iterator[Row]:
    for variable, value in list(namespace.items()):
        sampler = value.sampler if isinstance(value, DataLoader) else value
        if not variable.startswith("_") and isinstance(sampler, DistributedSampler):
            settings = [sampler.num_replicas, sampler.epoch, sampler.seed, sampler.shuffle, sampler.total_size]
            yield ["sampler", f"{variable} (replicas, epoch, seed, shuffle, size)", str(settings), None]


def _row(what: str, name: str, tensor: torch.Tensor) -> Row:
    if torch_compat.local_tensor(tensor) is not None:
        placements = getattr(tensor, "placements", ())
        if not all(placement.is_replicate() for placement in placements):
            return [what, name, None, None]
    part = sampling.local(tensor)
    found = sampling.sample([part], part.numel())[0] if part is not None else None
    return [what, name, "" if found is None else found.digest, None if found is None else found.first]
