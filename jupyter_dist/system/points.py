"""Entry points: what packages, this one among them, add to the server, to groups and to kernels. docs/extending.md.

A part is a feature that the core does not name. It has a module for each process that it works in. Own parts are the
folders of jupyter_dist/parts: they are listed, because a copy of the package has no metadata, nor has the Python of a
group in which this package is not installed. Parts of other packages are entry points.
"""

from __future__ import annotations

import functools
import importlib.util
import logging
import pkgutil
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any, NamedTuple

PACKAGE = "jupyter_dist"
PARTS = "jupyter_dist.parts"  # the entry point group, and the folder

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


# -- parts ------------------------------------------------------------------------------------------


class PartClasses(NamedTuple):
    """The classes of one process, by the name of their part, and a sentence about each part that is left out."""

    classes: dict[str, type[Any]]
    problems: list[str]


@functools.cache
def find_parts(process: str, base: type[Any]) -> PartClasses:
    """Return the subclass of `base` that each part has in its module for this process; many parts have none.

    Args:
        process: the name of the module: `agent`, `rank`, `server` or `client`.
        base: the base class of the core, such as AgentPart.
    """
    found = PartClasses({}, [])
    for name, package in {**_own(), **_of_others()}.items():
        try:
            if (module := _module(package, process)) is not None:
                found.classes[name] = _class_in(module, package, base)
        except Exception as err:  # a part may raise anything when it is imported
            found.problems.append(f"The part '{name}' is left out: {type(err).__name__}: {err}")
    return found


def _own() -> dict[str, str]:
    """Return the packages of own parts by name; none if the folder is gone."""
    try:
        folder = import_module(PARTS)
    except ModuleNotFoundError:
        return {}
    return {name: f"{PARTS}.{name}" for _, name, is_package in pkgutil.iter_modules(folder.__path__) if is_package}


def _of_others() -> dict[str, str]:
    return {point.name: point.value for point in entry_points(group=PARTS)}


def _module(package: str, process: str) -> ModuleType | None:
    """Return the module of a part for this process. A module that is there and does not import raises its error."""
    import_module(package)
    name = f"{package}.{process}"
    return None if importlib.util.find_spec(name) is None else import_module(name)


def _class_in(module: ModuleType, package: str, base: type[Any]) -> type[Any]:
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, base) and value.__module__.startswith(package)
    ]
    if len(found) != 1:
        raise TypeError(f"{module.__name__} has {len(found)} subclasses of {base.__name__}, not one")
    return found[0]
