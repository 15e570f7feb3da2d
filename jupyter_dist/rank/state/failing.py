"""Finds the part of a value that cannot be written, so that users know what to close or leave out."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterator
from itertools import islice
from typing import Any

from .graph.pickling import StreamSpace, write

MAX_DEPTH = 8
MAX_PARTS = 200  # of one object that are tried

_MAPPINGS, _SEQUENCES = (dict, OrderedDict, defaultdict), (list, tuple)


def path_of(name: str, value: Any, space: StreamSpace) -> str:
    """Return the path of the innermost part that cannot be written, as code would name it (`trainer.logger.file`).

    Args:
        name: of the variable.
        value: of the variable, which cannot be written.
        space: a space without streams.
    """
    path, seen = name, {id(value)}
    for _ in range(MAX_DEPTH):
        failing = next((one for one in islice(parts(value), MAX_PARTS) if _fails(one[1], seen, space)), None)
        if failing is None:
            return path
        step, value = failing
        seen.add(id(value))
        path += step
    return path


def _fails(value: Any, seen: set[int], space: StreamSpace) -> bool:
    return id(value) not in seen and write(value, space).error is not None


def parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a value, with the code that leads to each; no code of the user runs."""
    kind = type(value)
    if kind in _MAPPINGS:
        yield from ((f"[{key!r}]", one) for key, one in list(value.items()) if type(key) in (str, int))
    elif kind in _SEQUENCES:
        yield from ((f"[{place}]", one) for place, one in enumerate(value))
    else:
        try:
            fields = object.__getattribute__(value, "__dict__")
        except AttributeError:
            return
        if type(fields) is dict:
            yield from ((f".{key}", one) for key, one in list(fields.items()) if type(key) is str)
