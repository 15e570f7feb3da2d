"""Calls of torch.save() and of GradScaler.step(), and dictionaries that number labels."""

from __future__ import annotations

import contextlib
import functools
import stat
from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch

from jupyter_dist.parts.checks.observing import sampling
from jupyter_dist.parts.checks.observing.facts import Facts
from jupyter_dist.rank.guard.own import os, time

INTERRUPTIBLE = True  # what is saved has code of the user, and the optimizer steps below the wrapper

# Calls in a row, with a scale below 1: a scale that begins too high is halved some times, then it fits.
LEAST_SKIPPED = 4
LEAST_NAMES, MOST_NAMES = 3, 2000
MAX_FOUND = 16


def note_files(facts: Facts) -> None:
    """Begin to note the files that torch.save() writes."""
    call = torch.save

    @functools.wraps(call)
    def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
        began = time.time()
        result = call(obj, f, *args, **kwargs)
        if facts.is_observed and isinstance(f, (str, os.PathLike)):
            with contextlib.suppress(OSError):  # it was moved already
                path, about = os.path.realpath(f), os.stat(f)
                if stat.S_ISREG(about.st_mode):
                    where = f"{os.uname().nodename} {about.st_dev} {about.st_ino}"
                    facts.add("file", path[-200:], [began, time.time()], [where], facts.place())
        return result

    torch.save = save


class Scalers:
    """Counts the calls in a row in which no optimizer stepped."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self.skipped: dict[int, tuple[int, float]] = {}  # by id of the optimizer: how often, and the first scale

    def install(self) -> None:
        """Begin to note calls."""
        call = torch.amp.GradScaler.step

        @functools.wraps(call)
        def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            before = self._facts.num_steps
            result = call(scaler, optimizer, *args, **kwargs)
            if self._facts.is_observed:
                self._stepped(scaler, optimizer, has_stepped=self._facts.num_steps > before)
            return result

        torch.amp.GradScaler.step = step

    def _stepped(self, scaler: Any, optimizer: Any, has_stepped: bool) -> None:
        key = id(optimizer)
        if has_stepped or not scaler.is_enabled():
            if self.skipped.pop(key, (0, 0.0))[0] >= LEAST_SKIPPED:
                self._facts.add("skipped", key, [0])
            return
        scale = float(scaler.get_scale())  # the call has waited for the device already
        count, first = self.skipped.get(key, (0, scale))
        self.skipped[key] = count + 1, first
        if count + 1 >= LEAST_SKIPPED and scale < 1 and (count + 1) & count == 0:
            self._facts.add("skipped", key, [count + 1, first, scale], place=self._facts.place())


def note_labels(facts: Facts, names: set[str], datasets: list[Any]) -> None:
    """Send the dictionaries that number names, of the variables in the code of a cell and of its datasets."""
    used = {name: facts.namespace.get(name) for name in sorted(names)}
    for name, value in islice(_numbered(used, datasets), MAX_FOUND):
        ordered = sorted(value)
        digests = [sampling.digest_of(ordered), sampling.digest_of(f"{one} {value[one]}" for one in ordered)]
        shown = ", ".join(f"{one[:20]!r}: {value[one]}" for one in ordered[:4])
        facts.add("labels", name[:80], [len(value)], [*digests, shown])


def _numbered(used: dict[str, Any], datasets: list[Any]) -> Iterator[tuple[str, dict[str, int]]]:
    found = list(used.items())
    for dataset in datasets:
        kind = type(dataset).__name__
        found += [(f"{kind}.{name}", value) for name, value in list(getattr(dataset, "__dict__", {}).items())]
    for name, value in found:
        if type(value) is dict and LEAST_NAMES <= len(value) <= MOST_NAMES and {*map(type, value)} == {str}:
            numbers = list(value.values())
            if {*map(type, numbers)} == {int} and sorted(numbers) == [*range(len(numbers))]:
                yield name, value
