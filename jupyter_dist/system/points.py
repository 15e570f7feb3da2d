"""Entry points: what packages, this one among them, add to the server and to kernels. docs/extending.md."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

PACKAGE = "jupyter_dist"

log = logging.getLogger(__name__)


def load(points: str, base: type[Any], own: Mapping[str, str] | None = None) -> dict[str, type[Any]]:
    """Return the classes of an entry point group by name.

    A class that cannot be loaded is left out and named in the log: it must not keep the server from starting.

    Args:
        points: the entry point group, such as "jupyter_dist.spawners".
        base: what each class must be a subclass of.
        own: classes of the core as "module:class", which are there also where this package is not installed. An entry
            point of the same name replaces them.
    """
    found = {name: _import(place) for name, place in (own or {}).items()}
    for point in entry_points(group=points):
        try:
            found[point.name] = _checked(point.load(), base)
        except Exception as err:  # another package may raise anything when it is imported
            whose = point.dist.name if point.dist is not None else "?"
            log.warning("jupyter_dist: '%s' (%s, of %s) is left out: %s", point.name, points, whose, err)
    return found


def missing(points: str, extensions: str) -> str:
    """Return a sentence if this package's own entry points in a group are not installed, else an empty string.

    So it is where the package is only on PYTHONPATH, and in an editable install that is older than the entry points.

    Args:
        points: the entry point group.
        extensions: what this package registers there, in the sentence's words.
    """
    if any(point.value.startswith(f"{PACKAGE}.") for point in entry_points(group=points)):
        return ""
    return (
        f"{extensions} are missing, because the installed metadata of {PACKAGE} does not list them: "
        f"install {PACKAGE} again with pip (in a checkout: make setup)."
    )


def _checked(loaded: Any, base: type[Any]) -> type[Any]:
    if not (isinstance(loaded, type) and issubclass(loaded, base)):
        raise TypeError(f"{loaded!r} is not a subclass of {base.__module__}.{base.__qualname__}")
    return loaded


def _import(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
