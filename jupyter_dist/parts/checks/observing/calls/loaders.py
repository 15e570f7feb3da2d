"""The passes over DataLoaders: what their samplers were set to when a pass began. Once per pass, about 10 us."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.utils.data import DataLoader, DistributedSampler, Subset

from jupyter_dist.parts.checks.observing import sampling
from jupyter_dist.parts.checks.observing.facts import Facts, collectives_since
from jupyter_dist.rank.guard import usercode
from jupyter_dist.rank.guard.own import time

from .workers import Workers, can_watch

INTERRUPTIBLE = True  # the user's dataset may run below the wrapper

MAX_PASSES = 16  # that are kept until the next report
MAX_INDICES = 100_000
MAX_SUM = 64  # elements that an evaluation sums over ranks


class Loaders:
    """The passes of this rank's main thread."""

    def __init__(self, facts: Facts, num_steps: Callable[[], int]) -> None:
        """`num_steps` returns how many steps there were in this cell."""
        self._facts = facts
        self._num_steps = num_steps
        self._known: dict[int, tuple[weakref.ref[Any], int, int]] = {}  # by id of the loader: its number, its passes
        self._steps: dict[int, int] = {}  # when its last pass began, by number
        self._passes: list[dict[str, Any]] = []
        self._padded: tuple[int, int, Callable[[], None]] | None = None  # when, after how many steps, how to send it
        self._workers: dict[str, Workers] = {}  # by loader and pass

    def install(self) -> None:
        """Begin to note passes."""
        begin = DataLoader.__iter__

        @functools.wraps(begin)
        def __iter__(loader: Any) -> Any:  # noqa: N807
            if not self._facts.is_observed:
                return begin(loader)
            number = self._note(loader)
            if not can_watch(loader):
                return begin(loader)
            init = loader.worker_init_fn
            self._workers[f"loader {number + 1}"] = loader.worker_init_fn = Workers(loader)
            try:
                return begin(loader)
            finally:
                loader.worker_init_fn = init

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
        self._workers.clear()
        self._padded = None

    def datasets(self) -> list[Any]:
        """Return the datasets of the loaders in this cell."""
        alive = [one for reference, *_ in self._known.values() if (one := reference()) is not None]
        return [getattr(one.dataset, "dataset", one.dataset) for one in alive]

    def settle(self) -> None:
        """Send the facts of passes that are over: padding in sums, random numbers of workers."""
        padded, self._padded = self._padded, None
        if padded is not None and padded[1] == self._num_steps():
            names = [name for name, size, _ in collectives_since(padded[0]) if size <= MAX_SUM or "gather" in name]
            if names and all(name in ("all_reduce", "reduce") for name in names if "broadcast" not in name):
                padded[2]()
        for key, workers in list(self._workers.items()):
            for source, digests in workers.used():
                self._facts.add("workers", f"{source} {key}", texts=[source, key, *digests])
                self._workers.pop(key, None)

    def _note(self, loader: Any) -> int:
        self.settle()
        reference, number, passes = self._known.get(id(loader), (None, len(self._known), 0))
        if reference is None or reference() is not loader:
            number, passes = len(self._known), 0
        self._known[id(loader)] = weakref.ref(loader), number, passes + 1
        steps = self._num_steps()
        before, self._steps[number] = steps - self._steps.get(number, steps), steps
        if len(self._passes) < MAX_PASSES:
            line = self._facts.place(3)
            facts = _facts(loader)
            self._passes.append({**facts, "loader": number, "number": passes, "before": before, "place": line})
            self._note_padding({**facts, "place": line}, number)
        return number

    def _note_padding(self, facts: dict[str, Any], number: int) -> None:
        sampler, length = facts.get("distributed"), facts["length"]
        if not facts["trains"] and sampler and length and not sampler["drop_last"] and sampler["total_size"] > length:
            numbers = [length, sampler["total_size"], sampler["num_replicas"]]
            tell = partial(self._facts.add, "padding", number, numbers, place=facts["place"])
            self._padded = time.time_ns(), self._num_steps(), tell


def _facts(loader: Any) -> dict[str, Any]:
    sampler, dataset = getattr(loader, "sampler", None), getattr(loader, "dataset", None)
    inner = getattr(getattr(loader, "batch_sampler", None), "sampler", None)
    sampler = inner if isinstance(inner, DistributedSampler) else sampler
    facts: dict[str, Any] = {
        "sampler": type(sampler).__name__[:80],
        "trains": torch.is_grad_enabled(),
        "length": _length(dataset),
        "subset": _indices(dataset),
        "distributed": None,
    }
    if isinstance(sampler, DistributedSampler):
        names = ("num_replicas", "rank", "epoch", "seed", "total_size")
        facts["distributed"] = {
            **{name: int(getattr(sampler, name, 0)) for name in names},
            **{name: bool(getattr(sampler, name, False)) for name in ("shuffle", "drop_last")},
        }
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
