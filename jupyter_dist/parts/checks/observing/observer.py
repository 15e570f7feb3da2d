"""Observes the steps of all optimizers of a rank: torch calls the hooks in the thread that steps."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch
from torch.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from jupyter_dist.parts.checks.reports import EndedSteps
from jupyter_dist.rank.collectives import captures, torch_compat
from jupyter_dist.rank.collectives.diagnosis.records import collectives_since
from jupyter_dist.rank.guard.own import os, threading, time
from jupyter_dist.rank.part import RankCore

from .calls.libraries import Scalers, note_files, note_labels
from .calls.loaders import Loaders
from .facts import Facts
from .forwards import Forwards
from .models import Roots, TrainedModel, models_of
from .steps import SteppingOptimizer, held_by

MAX_OPTIMIZERS = 8
MAX_FAILURES = 3
# Alike on ranks, whatever they have run.
_CODE = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type)


class Observer:
    """The hooks of this rank. It keeps no model, optimizer or tensor alive."""

    def __init__(self, core: RankCore) -> None:
        self._core = core
        self._roots = Roots()
        self.facts = Facts(core.namespace, core.send)
        self._loaders = Loaders(self.facts)
        self._scalers = Scalers(self.facts)
        self._optimizers: dict[int, SteppingOptimizer] = {}  # of this cell, by id
        self._forwards: dict[int, Forwards] = {}  # by id of what cells call
        self._within: int | None = None  # the optimizer that steps: it may call another one
        self._last: int | None = None  # the optimizer that has stepped last
        self._num_failures = 0
        self._trained: dict[int, Forwards] = {}  # of earlier cells
        self._thread = threading.get_ident()
        self.names: set[str] = set()  # of variables, in the code of the cell
        self.earlier: dict[str, set[str]] = {}  # the same of earlier cells, by execution
        self._is_first, self._began_ns = True, 0  # no step was looked at in this cell; when it began
        self.is_on = False

    def install(self) -> None:
        """Add the hooks, which do nothing until a cell begins."""
        self._roots.install()
        self._loaders.install()
        self._scalers.install()
        note_files(self.facts)
        register_optimizer_step_pre_hook(self._before_step)
        register_optimizer_step_post_hook(self._after_step)
        os.register_at_fork(after_in_child=self.leave)

    def switch_off(self) -> None:
        """Observe nothing more in this cell."""
        self.is_on = self.facts.is_on = False

    def leave(self) -> None:
        """Observe nothing more in this cell: this is a child process, which may train another model."""
        self.switch_off()
        self._within = -1  # no optimizer's id
        for forwards in self._forwards.values():
            forwards.remove()

    def begin_cell(self, is_on: bool, execution_id: str) -> None:
        """Begin to count steps."""
        self.is_on = is_on and self._num_failures < MAX_FAILURES
        self.facts.begin_cell(self.is_on, execution_id)
        self._is_first, self._began_ns = True, time.time_ns()
        self._optimizers.clear()
        self._roots.wrapped.clear()
        self._within = None
        self._loaders.begin_cell()
        self._scalers.skipped.clear()
        if self.is_on and not torch_compat.has_compiled():
            for forwards in self._trained.values():
                forwards.begin_cell()
                forwards.hook(may_hook=True)
                forwards.watch_outputs(are_wanted=True)

    def end_cell(self) -> dict[str, Any] | None:
        """Take the hooks of models away; return what was not sent yet."""
        if self.is_on:
            self._loaders.settle()
        self.switch_off()
        for one in self._optimizers.values():
            one.end_probe()
        self._trained.update(self._forwards)
        self._forwards.clear()
        models = [model for one in self._optimizers.values() for model in one.models]
        is_alone = any(one.about.kind == "plain" for one in models) and not collectives_since(self._began_ns)
        ended = [self._ended(one)._replace(is_alone=is_alone) for one in self._optimizers.values()]
        for key, forwards in list(self._trained.items()):
            forwards.remove()
            if forwards.model.outer() is None:
                del self._trained[key]
        passes = self._loaders.take()
        return {"ended": ended, "passes": passes} if ended or passes else None

    @staticmethod
    def _ended(one: SteppingOptimizer) -> EndedSteps:
        num_synced = sum(forwards.num_synced_ever for forwards in one.forwards)
        return EndedSteps(one.number, one.schedule.num_steps, num_synced, one.is_written, one.settings())

    def _before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if self._within is None and self.is_on and threading.get_ident() == self._thread:
            self._within = id(optimizer)
            self.facts.num_steps += 1
            if (one := self._optimizers.get(id(optimizer))) is not None:
                is_again = self._last == id(optimizer)
                one.begin_step(() if is_again else self._optimizers.values())
            self._last = id(optimizer)

    def _after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if torch.compiler.is_compiling() or self._within != id(optimizer) or threading.get_ident() != self._thread:
            return
        self._within = None
        one = self._optimizers.get(id(optimizer))
        if one is not None and one.is_quiet() and one.optimizer() is optimizer:
            return
        try:
            self._stepped(optimizer)
        except Exception as err:  # whatever a model is: it is trained on, and observed no more in this cell
            self._num_failures += 1
            self._core.log(f"jupyter_dist: checks ended in this cell, because they failed: {err!r:.300}\n")
            self.switch_off()

    def _stepped(self, optimizer: Optimizer) -> None:
        clock = _clock_of(optimizer)
        began = clock()
        one = self._optimizers.get(id(optimizer))
        if one is None or one.optimizer() is not optimizer:
            if len(self._optimizers) >= MAX_OPTIMIZERS:
                return
            one = self._optimizers[id(optimizer)] = self._begin(optimizer, len(self._optimizers))
            one.schedule.num_steps = 1
        one.end_probe()
        if one.num_held != len(held_by(optimizer)):  # add_param_group()
            after = self._begin(optimizer, one.number)
            after.schedule = one.schedule
            one = self._optimizers[id(optimizer)] = after
        if one.is_due() and not _is_captured():
            row = one.look(self.facts.place(), self._held(), self._roots)._replace(passes=tuple(self._loaders.take()))
            self._core.send({"execution_id": self.facts.execution_id, "look": row})
            if self._is_first:
                self._is_first = False
                note_labels(self.facts, self.names, self._loaders.datasets())
                self._note_earlier()
            seconds = sum(forwards.take_cost() for forwards in one.forwards)
            now = clock()
            one.schedule.looked(now - began + seconds)
            began = now
        one.schedule.plan()
        comes_next = one.schedule.comes_next
        one.begin_next(may_probe=comes_next and not torch_compat.has_compiled())
        for forwards in one.forwards:
            forwards.hook(comes_next or not one.schedule.is_fast)
            forwards.watch_outputs(comes_next or not one.schedule.is_short)
            forwards.begin_step()
            forwards.wants_batch = comes_next
        one.schedule.spent += clock() - began

    def _held(self) -> frozenset[int]:
        """Return the ids of the parameters that optimizers hold: in this cell, or of variables."""
        known = list(self._core.namespace.values())
        named = (id(one) for value in known if issubclass(type(value), Optimizer) for one in held_by(value))
        return frozenset(named).union(*(one.ids for one in self._optimizers.values()))

    def _note_earlier(self) -> None:
        """Send which earlier cells have named variables of this one: other ranks may have missed them."""
        here = self._core.namespace
        names = {name for name in self.names if name in here and not isinstance(here[name], _CODE)}
        for execution, earlier in self.earlier.items():
            if shared := sorted(names & earlier):
                self.facts.add("ran", execution, texts=shared[:4])

    def _begin(self, optimizer: Optimizer, number: int) -> SteppingOptimizer:
        models = models_of({id(tensor) for tensor in held_by(optimizer)}, self._roots)
        forwards = [self._forwards_of(model) for model in models]
        return SteppingOptimizer(optimizer, number, models, forwards)

    def _forwards_of(self, model: TrainedModel) -> Forwards:
        key = id(model.outer())
        known = self._forwards.get(key) or self._trained.get(key)
        if known is None or known.model.outer() is not model.outer():
            known = Forwards(model, self.facts)
        self._forwards[key] = known
        known.hook(may_hook=True)
        return known


def _clock_of(optimizer: Optimizer) -> Callable[[], float]:
    """Return the clock by which looks are measured: those at a device's tensors wait for it."""
    is_on_host = all(tensor.device.type == "cpu" for tensor in held_by(optimizer)[:1])
    return time.thread_time if is_on_host else time.perf_counter


def _is_captured() -> bool:
    """Whether a graph of a device is being captured, during which nothing can be read."""
    with captures.none_meanwhile(captures.has_captured()) as is_free:
        return not is_free
