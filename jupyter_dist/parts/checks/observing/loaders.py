"""The passes over DataLoaders: what their samplers were set to when a pass began. Once per pass, about 10 us."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import DataLoader, DistributedSampler, Subset

from jupyter_dist.rank.guard import usercode
from jupyter_dist.rank.guard.own import threading

from . import sampling
from .places import place_of

INTERRUPTIBLE = True  # the user's dataset may run below the wrapper

MAX_PASSES = 16  # that are kept until the next report
MAX_INDICES = 100_000


class Loaders:
    """The passes of this rank's main thread."""

    def __init__(self, namespace: dict[str, Any], num_steps: Callable[[], int]) -> None:
        """`num_steps` returns how many steps there were in this cell."""
        self._namespace = namespace
        self._num_steps = num_steps
        self._known: dict[int, tuple[weakref.ref[Any], int, int]] = {}  # by id of the loader: its number, its passes
        self._steps: dict[int, int] = {}  # when its last pass began, by number
        self._passes: list[dict[str, Any]] = []
        self.is_on = True

    def install(self) -> None:
        """Begin to note passes."""
        begin = DataLoader.__iter__

        @functools.wraps(begin)
        def __iter__(loader: Any) -> Any:  # noqa: N807
            if self.is_on and threading.current_thread() is threading.main_thread():
                self._note(loader)
            return begin(loader)

        DataLoader.__iter__ = __iter__

    def take(self) -> list[dict[str, Any]]:
        """Return the passes that have begun since the last call."""
        passes, self._passes = self._passes, []
        return passes

    def begin_cell(self) -> None:
        """Count loaders and passes from here on."""
        self._known.clear()
        self._steps.clear()
        self._passes.clear()

    def _note(self, loader: Any) -> None:
        reference, number, passes = self._known.get(id(loader), (None, len(self._known), 0))
        if reference is None or reference() is not loader:
            number, passes = len(self._known), 0
        self._known[id(loader)] = weakref.ref(loader), number, passes + 1
        steps = self._num_steps()
        before, self._steps[number] = steps - self._steps.get(number, steps), steps
        if len(self._passes) < MAX_PASSES:
            line = place_of(sys._getframe(2), self._namespace)
            self._passes.append({**_facts(loader), "loader": number, "pass": passes, "before": before, "line": line})


def _facts(loader: Any) -> dict[str, Any]:
    sampler, dataset = getattr(loader, "sampler", None), getattr(loader, "dataset", None)
    inner = getattr(getattr(loader, "batch_sampler", None), "sampler", None)
    sampler = inner if isinstance(inner, DistributedSampler) else sampler
    facts: dict[str, Any] = {
        "sampler": type(sampler).__name__[:80],
        "trains": torch.is_grad_enabled(),
        "length": _length(dataset),
        "subset": _indices(dataset),
    }
    if isinstance(sampler, DistributedSampler):
        names = ("num_replicas", "rank", "epoch", "seed", "shuffle", "drop_last", "total_size")
        facts["distributed"] = {name: int(getattr(sampler, name, 0)) for name in names}
    return facts


def _length(dataset: Any) -> int | None:
    """Return the length of a dataset; None if it has none."""
    try:
        found: int = usercode.call(len, dataset)
    except Exception:  # of the user's class
        return None
    return found


def _indices(dataset: Any) -> str | None:
    """Return a digest of the indices of a subset, such as random_split makes."""
    if not isinstance(dataset, Subset) or len(dataset.indices) > MAX_INDICES:
        return None
    return sampling.digest_of(map(str, dataset.indices))
