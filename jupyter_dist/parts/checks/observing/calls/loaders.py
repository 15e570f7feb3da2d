"""The passes over DataLoaders, about 10 us each: what their samplers were set to, and the random numbers of workers.

A worker notes with which states it begins, and whether it draws from them, in memory that it shares with its rank:
before its first sample and when it ends.
"""

from __future__ import annotations

import contextlib
import functools
import mmap
import multiprocessing
import multiprocessing.util
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, get_type_hints

import torch
from torch.utils.data import DataLoader, DistributedSampler, Subset

from jupyter_dist.parts.checks.observing import sampling
from jupyter_dist.parts.checks.observing.facts import Facts
from jupyter_dist.parts.checks.reports import Distributed, Pass
from jupyter_dist.rank.cells.looks.generators import generator_of
from jupyter_dist.rank.cells.values.opening import attributes_of, is_one_of
from jupyter_dist.rank.collectives.diagnosis.records import collectives_since
from jupyter_dist.rank.guard import usercode
from jupyter_dist.rank.guard.own import time

INTERRUPTIBLE = True  # the user's dataset may run below the wrapper

MAX_PASSES = 16  # that are kept until the next report
MAX_INDICES = 100_000
MAX_SUM = 64  # elements that an evaluation sums over ranks
SOURCES = ("torch", "random", "numpy", "dataset")
SIZE = sampling.MAX_DIGEST + 1  # of a source: the digest, and whether it was used
MAX_WORKERS = 64
MAX_DEPTH, MAX_HELD = 3, 32  # of the objects in a dataset
NUM_NAMED = 64  # items of its list


class Loaders:
    """The passes of this rank's main thread."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._known: dict[int, tuple[weakref.ref[Any], int, int]] = {}  # by id of the loader: its number, its passes
        self._steps: dict[int, int] = {}  # when its last pass began, by number
        self._passes: list[Pass] = []
        self._padded: tuple[int, int, Callable[[], None]] | None = None  # when, after how many steps, how to send it
        self._workers: dict[str, Workers] = {}  # by loader
        self._begun: dict[str, tuple[int, list[str]]] = {}  # by source and loader: a pass, how its workers began

    def install(self) -> None:
        """Begin to note passes."""
        begin = DataLoader.__iter__

        @functools.wraps(begin)
        def __iter__(loader: Any) -> Any:  # noqa: N807
            if not self._facts.is_observed:
                return begin(loader)
            one = self._note(loader)
            if not _can_watch(loader):
                return begin(loader)
            init = loader.worker_init_fn
            self._workers[f"loader {one.loader + 1}"] = loader.worker_init_fn = Workers(loader, one)
            try:
                return begin(loader)
            finally:
                loader.worker_init_fn = init

        DataLoader.__iter__ = __iter__

    def take(self) -> list[Pass]:
        """Return the passes that have begun since the last call."""
        passes, self._passes = self._passes, []
        return passes

    def begin_cell(self) -> None:
        """Count loaders and passes from here on."""
        self._passes, self._padded = [], None
        for counted in (self._known, self._steps, self._workers, self._begun):
            counted.clear()

    def datasets(self) -> list[Any]:
        """Return the datasets of the loaders in this cell."""
        alive = [one for reference, *_ in self._known.values() if (one := reference()) is not None]
        return [getattr(one.dataset, "dataset", one.dataset) for one in alive]

    def settle(self) -> None:
        """Send the facts of passes that are over: padding in sums, random numbers of workers."""
        padded, self._padded = self._padded, None
        if padded is not None and padded[1] == self._facts.num_steps:
            begun = [one for one in collectives_since(padded[0]) if not one.is_p2p]
            gathered = {one.operation for one in begun if one.elements <= MAX_SUM or "gather" in one.operation}
            names = gathered - {"broadcast", "barrier"}
            if names and names <= {"all_reduce", "reduce"}:
                padded[2]()
        for key, workers in list(self._workers.items()):
            for source, digests in workers.used():
                name, one = f"{source} {key}", workers.of
                self._facts.add("workers", name, texts=[source, key, *digests])
                before, self._begun[name] = self._begun.get(name), (one.number, digests)
                if one.trains and before == (one.number - 1, digests):
                    self._facts.add("repeats", name, [one.number], [source, digests[0]], one.place)
                self._workers.pop(key, None)

    def _note(self, loader: Any) -> Pass:
        self.settle()
        reference, number, passes = self._known.get(id(loader), (None, len(self._known), 0))
        if reference is None or reference() is not loader:
            number, passes = len(self._known), 0
        self._known[id(loader)] = weakref.ref(loader), number, passes + 1
        steps = self._facts.num_steps
        before, self._steps[number] = steps - self._steps.get(number, steps), steps
        one = Pass(number, passes, before, torch.is_grad_enabled(), *_data_of(loader), self._facts.place())
        if len(self._passes) < MAX_PASSES:
            self._passes.append(one)
            self._note_padding(one)
        return one

    def _note_padding(self, one: Pass) -> None:
        sampler, length = one.distributed, one.length
        if not one.trains and sampler and length and not sampler.drop_last and sampler.total_size > length:
            numbers = [length, sampler.total_size, sampler.num_replicas]
            tell = partial(self._facts.add, "padding", one.loader, numbers, place=one.place)
            self._padded = time.time_ns(), self._facts.num_steps, tell


def _data_of(loader: Any) -> tuple[str, int | None, str | None, Distributed | None]:
    """Return the sampler, the length, the indices and the settings of a loader's data, as a Pass has them."""
    sampler, dataset = getattr(loader, "sampler", None), getattr(loader, "dataset", None)
    batches = getattr(loader, "batch_sampler", None)
    inner = getattr(batches, "sampler", None)
    sampler = inner if isinstance(inner, DistributedSampler) else sampler
    settings = None
    if all(type(getattr(sampler, name, None)) is int for name in ("num_replicas", "rank", "total_size")):
        kinds = get_type_hints(Distributed)
        settings = Distributed(**{name: kind(getattr(sampler, name, 0)) for name, kind in kinds.items()})
    elif (number := getattr(batches, "num_processes", None)) is not None:  # Accelerate divides the batches
        divided = getattr(getattr(getattr(batches, "batch_sampler", None), "sampler", None), "num_replicas", 1)
        settings = Distributed(int(number * divided), int(getattr(batches, "process_index", 0)), 0, 0, False, True, 0)
    length = None
    with contextlib.suppress(Exception):  # of the user's class
        length = usercode.call(len, dataset)
    return type(sampler).__name__[:80], length, _order_of(dataset, length) if settings else None, settings


def _order_of(dataset: Any, length: int | None) -> str | None:
    """Return the digest of the order of a dataset: of its indices, or of the names in a list; None: unknown."""
    if isinstance(dataset, Subset):  # as random_split makes them
        return "+" + sampling.digest_of(map(str, dataset.indices)) if len(dataset.indices) <= MAX_INDICES else None
    for name, value in (attributes_of(dataset) or {}).items():
        is_of_files = "file" in name or "path" in name  # each may have several samples
        if type(value) is list and (len(value) == length or is_of_files):
            some = value[:: max(1, len(value) // NUM_NAMED)]
            kinds = (str, int) if "ind" in name or "idx" in name else (str,)  # other numbers may be data
            texts = [" ".join(_texts_in(one, kinds)) for one in some]
            if len(set(texts)) == len(some) > 1:
                return sampling.digest_of(texts)
    return None


def _texts_in(value: Any, kinds: tuple[type, ...], depth: int = MAX_DEPTH) -> list[str]:
    """Return the values of these types in an item of a list, as texts. No code of the user runs."""
    if is_one_of(value, kinds):
        return [str(value)]
    held = value.values() if type(value) is dict else value if is_one_of(value, (list, tuple)) else ()
    return [text for one in list(held)[:MAX_HELD] for text in _texts_in(one, kinds, depth - 1)] if depth else []


class Workers:
    """The workers of one pass over a loader; in a worker it is called in place of the loader's `worker_init_fn`."""

    def __init__(self, loader: Any, of: Pass) -> None:
        self.of = of
        self._init: Callable[[int], Any] | None = loader.worker_init_fn
        self._number = min(loader.num_workers, MAX_WORKERS)
        self._shared = mmap.mmap(-1, self._number * len(SOURCES) * SIZE)

    def __call__(self, worker: int) -> None:
        """Begin a worker, in its process."""
        if self._init is not None:
            self._init(worker)
        if worker >= self._number:
            return
        begin = self._states()
        for source, digest in enumerate(begin):
            self._shared.seek((worker * len(SOURCES) + source) * SIZE)
            self._shared.write(digest.encode())

        def ends() -> None:
            for source, (before, after) in enumerate(zip(begin, self._states(), strict=True)):
                end = (worker * len(SOURCES) + source + 1) * SIZE
                self._shared[end - 1] = int(before != after)
                if SOURCES[source] == "dataset":  # it may have been seeded for each sample: the end is alike, too
                    self._shared[end - SIZE : end - 1] = sampling.digest_of([before, after]).encode()

        multiprocessing.util.Finalize(None, ends, exitpriority=1)

    def _states(self) -> list[str]:
        info = torch.utils.data.get_worker_info()
        own = _generators(info.dataset) if info is not None and self.of.trains else []
        return [*sampling.random_states().values(), sampling.digest_of([str(own)])]

    def used(self) -> Iterator[tuple[str, list[str]]]:
        """Yield, of each source of random numbers that workers have used, the digest with which each of them began."""
        for source, name in enumerate(SOURCES):
            rows = [
                self._shared[place * SIZE : (place + 1) * SIZE]
                for place in range(source, self._number * len(SOURCES), len(SOURCES))
            ]
            if rows and all(row[-1] for row in rows):
                yield name, [row[:-1].decode() for row in rows]


def _can_watch(loader: Any) -> bool:
    """Whether the workers of a loader will be forked, so that they share memory with their rank."""
    if not getattr(loader, "num_workers", 0):
        return False
    context = getattr(loader, "multiprocessing_context", None) or multiprocessing
    return bool(context.get_start_method() == "fork")


def _generators(value: Any, depth: int = MAX_DEPTH) -> list[str]:
    """Return the states of the random generators that an object holds. No code of the user runs."""
    if (generator := generator_of(value)) is not None:
        state = generator.read()
        return [str(state.tolist() if isinstance(state, torch.Tensor) else state)]
    held = value if is_one_of(value, (list, tuple)) else (attributes_of(value) or {}).values()
    return [state for one in list(held)[:MAX_HELD] for state in _generators(one, depth - 1)] if depth else []
