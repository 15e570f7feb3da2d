"""Entry points: what other packages add to the server, beside what this one has itself. docs/extending.md."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

log = logging.getLogger(__name__)


def load(points: str, base: type[Any], own: Mapping[str, str]) -> dict[str, type[Any]]:
    """The classes by name: ours, and those that other packages add or put in the place of ours.

    What cannot be loaded is left out and named in the server's log: it must not keep the server from starting.

    Args:
        points: the entry points, such as "jupyter_dist.spawners".
        base: what each must be a subclass of.
        own: ours, as "module:class"; found also where this package is not installed.
    """
    found = {name: _import(place) for name, place in own.items()}
    for point in entry_points(group=points):
        try:
            found[point.name] = _checked(point.load(), base)
        except Exception as err:  # another package may raise anything when it is imported
            whose = point.dist.name if point.dist is not None else "?"
            log.warning("jupyter_dist: '%s' (%s, of %s) is left out: %s", point.name, points, whose, err)
    return found


def _checked(loaded: Any, base: type[Any]) -> type[Any]:
    if not (isinstance(loaded, type) and issubclass(loaded, base)):
        raise TypeError(f"{loaded!r} is not a subclass of {base.__module__}.{base.__qualname__}")
    return loaded


def _import(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
