"""Random numbers of a loader's workers: with which states they begin, and whether they draw from them.

A worker notes both in memory that it shares with its rank, before its first sample and when it ends.
"""

from __future__ import annotations

import mmap
import multiprocessing
import multiprocessing.util
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

from jupyter_dist.parts.checks.observing import sampling

SOURCES = ("torch", "random", "numpy")
SIZE = sampling.MAX_DIGEST + 1  # of a source: the digest, and whether it was used
MAX_WORKERS = 64


class Workers:
    """The workers of one pass over a loader; in a worker it is called in place of the loader's `worker_init_fn`."""

    def __init__(self, loader: Any) -> None:
        self._init: Callable[[int], Any] | None = loader.worker_init_fn
        self._number = min(loader.num_workers, MAX_WORKERS)
        self._shared = mmap.mmap(-1, self._number * len(SOURCES) * SIZE)

    def __call__(self, worker: int) -> None:
        """Begin a worker, in its process."""
        if self._init is not None:
            self._init(worker)
        if worker >= self._number:
            return
        begin = _states()
        for source, digest in enumerate(begin):
            self._shared.seek((worker * len(SOURCES) + source) * SIZE)
            self._shared.write(digest.encode())

        def ends() -> None:
            for source, (before, after) in enumerate(zip(begin, _states(), strict=True)):
                self._shared[(worker * len(SOURCES) + source + 1) * SIZE - 1] = int(before != after)

        multiprocessing.util.Finalize(None, ends, exitpriority=1)

    def used(self) -> Iterator[tuple[str, list[str]]]:
        """Yield, of each source of random numbers that workers have used, the digest with which each of them began."""
        for source, name in enumerate(SOURCES):
            rows = [
                self._shared[place * SIZE : (place + 1) * SIZE]
                for place in range(source, self._number * len(SOURCES), len(SOURCES))
            ]
            if rows and all(row[-1] for row in rows):
                yield name, [row[:-1].decode() for row in rows]


def can_watch(loader: Any) -> bool:
    """Whether the workers of a loader will be forked, so that they share memory with their rank."""
    if not getattr(loader, "num_workers", 0):
        return False
    context = getattr(loader, "multiprocessing_context", None) or multiprocessing
    return bool(context.get_start_method() == "fork")


def _states() -> list[str]:
    numpy = sys.modules.get("numpy")
    _, words, place, *_ = numpy.random.get_state() if numpy is not None else ("", torch.empty(0), 0)
    states = torch.get_rng_state().tolist(), random.getstate(), (words.tolist(), place)
    return [sampling.digest_of([str(state)]) for state in states]
