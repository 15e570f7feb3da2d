"""Numbers of labels: dictionaries from names to 0, 1, 2..., which ranks must have alike."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from jupyter_dist.parts.checks.observing import sampling
from jupyter_dist.parts.checks.observing.facts import Facts

LEAST, MOST = 3, 2000  # names
MAX_FOUND = 16


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
        if type(value) is dict and LEAST <= len(value) <= MOST and {*map(type, value)} == {str}:
            numbers = list(value.values())
            if {*map(type, numbers)} == {int} and sorted(numbers) == [*range(len(numbers))]:
                yield name, value
