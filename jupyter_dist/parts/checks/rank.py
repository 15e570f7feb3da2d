"""Checks on a rank: observes the steps of cells, sends reports, and reads what `group.check()` compares."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from torch.nn import Module
from torch.optim.optimizer import Optimizer
from torch.utils.data import DataLoader, DistributedSampler

from jupyter_dist.protocol.errors import JupyterDistError, bad_request
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.rank.cells.interrupt import CurrentExecution
from jupyter_dist.rank.cells.values import answers
from jupyter_dist.rank.guard.own import json
from jupyter_dist.rank.part import RankCore, RankPart, RankRequest
from jupyter_dist.transport.frames import Header

from .observing import sampling
from .observing.observer import Observer
from .observing.steps import held_by

MAX_CELLS = 32
_WORD = re.compile(r"[^\W\d]\w*")


class ChecksOnRank(RankPart):
    """Observes the steps of the cells of this rank."""

    def __init__(self, core: RankCore) -> None:
        super().__init__(core)
        self._is_on = True  # the agent switches it off
        self._observer = Observer(core)
        self._observer.install()
        self._own = frozenset(core.namespace)  # what cells have not made
        self._cells: dict[str, set[str]] = {}  # by execution: the variables that it names, the newest last

    def before(self, execution: CurrentExecution, code: str | None) -> None:
        """Begin to count steps."""
        if code is not None and not execution.silent:
            self._observer.earlier = dict(self._cells)
            self._observer.names = self._cells[execution.execution_id] = set(_WORD.findall(code)) - self._own
            if len(self._cells) > MAX_CELLS:
                del self._cells[next(iter(self._cells))]
        self._observer.begin_cell(self._is_on and not execution.silent, execution.execution_id)

    def after(self) -> Mapping[str, Any] | None:
        """Return the rest of the reports."""
        ended = self._observer.end_cell()
        return None if ended is None else {"execution_id": self._observer.facts.execution_id, **ended}

    def requests(self) -> Mapping[str, RankRequest]:
        """Return the requests that a rank answers at once."""
        return {"set_checks": self._set}

    def idle_requests(self) -> Mapping[str, RankRequest]:
        """Return the requests that a rank answers while no cell runs."""
        return {"check_model": self._check_model}

    def _check_model(self, _: Header, payload: bytes) -> Mapping[str, Any]:
        asked = json.loads(payload)
        return answers.about({asked["name"]: training_of(asked["name"], self.core.namespace)}, asked)

    def _set(self, header: Header, _: bytes) -> Mapping[str, Any]:
        self._is_on = bool(header["on"])
        if not self._is_on:
            self._observer.switch_off()
        return {}


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
