"""Finds parts: the features that the core does not name.

A part is a package with a module for each process in which it works: `agent`, `rank` and `server`, `api` with the
operations that it adds for clients, `client` with what more the Python client has, and `cli` with commands that are
more than one operation. Own parts are the folders of jupyter_dist/parts: they are listed, because a copy of the package
has no metadata, nor has the Python of a group in which this package is not installed. Parts of other packages are entry
points.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import pkgutil
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any, Generic, NamedTuple, TypeVar

PARTS = "jupyter_dist.parts"  # the entry point group, and the folder

P = TypeVar("P")
T = TypeVar("T")


class PartModules(NamedTuple):
    """The modules for one process, by the name of their part, and a sentence about each part that is left out."""

    modules: dict[str, ModuleType]
    problems: list[str]


class PartClasses(NamedTuple):
    """The classes of one process, by the name of their part, and a sentence about each part that is left out."""

    classes: dict[str, type[Any]]
    problems: list[str]


class RunningParts(Generic[P]):
    """The parts of one process or group, by name. A part that fails is left out from then on."""

    def __init__(
        self, failed: Callable[[str, P | None, BaseException], None], also: tuple[type[BaseException], ...] = ()
    ) -> None:
        """Have no parts yet.

        Args:
            failed: reports a part that has raised an exception; None: when it began.
            also: what ends a part besides Exception and SystemExit.
        """
        self._also: tuple[type[BaseException], ...] = (Exception, SystemExit, *also)
        self._parts: dict[str, P] = {}
        self._failed = failed

    def __contains__(self, name: str) -> bool:
        """Whether there is such a part, and it has not failed."""
        return name in self._parts

    def get(self, name: str) -> P | None:
        """Return a part, or None: there is no such part, or it has failed."""
        return self._parts.get(name)

    def begin(self, classes: dict[str, type[Any]], begin: Callable[[str, type[Any]], P]) -> None:
        """Begin a part of each class."""
        for name, cls in classes.items():
            self.safely(name, functools.partial(self._begin, name, cls, begin))

    def _begin(self, name: str, cls: type[Any], begin: Callable[[str, type[Any]], P]) -> None:
        self._parts[name] = begin(name, cls)

    def each(self, do: Callable[[P], T]) -> dict[str, T]:
        """Do something with each part, and return what came of it, without the parts that fail."""
        results: dict[str, T] = {}
        for name, part in list(self._parts.items()):
            self.safely(name, functools.partial(_keep, results, name, do, part))
        return results

    def safely(self, name: str, do: Callable[[], object]) -> None:
        """Call a function of a part. If it raises an exception, that part ends, and no other."""
        try:
            do()
        except self._also as err:
            self.fail(name, err)

    def fail(self, name: str, err: BaseException) -> None:
        """End a part that has failed."""
        self._failed(name, self._parts.pop(name, None), err)


def _keep(results: dict[str, T], name: str, do: Callable[[P], T], part: P) -> None:
    results[name] = do(part)


def failure_of(err: BaseException) -> str:
    """Return an exception in words. Its class may be of another package, and raise others."""
    try:
        return f"{err!r:.300}".encode("utf-8", "backslashreplace").decode()
    except Exception:
        return type(err).__name__


def in_json(value: T) -> T:
    """Return the value of a part, for a message. Raises TypeError or ValueError if JSON cannot have it."""
    json.dumps(value)
    return value


@functools.cache
def find_parts(process: str, base: type[Any]) -> PartClasses:
    """Return the subclass of `base` that each part has in its module for this process; many parts have none.

    Args:
        process: the name of the module: `agent`, `rank` or `server`.
        base: the base class of the core, such as AgentPart.
    """
    modules, problems = find_modules(process)
    found = PartClasses({}, list(problems))
    for name, module in modules.items():
        try:
            found.classes[name] = _class_in(module, module.__name__.removesuffix(f".{process}"), base)
        except TypeError as err:
            found.problems.append(_left_out(name, err))
    return found


@functools.cache
def find_modules(process: str) -> PartModules:
    """Return the modules of all parts for this process."""
    found = PartModules({}, [])
    for name, package in {**_own(), **_of_others()}.items():
        try:
            if (module := _module(package, process)) is not None:
                found.modules[name] = module
        except Exception as err:  # a part may raise anything when it is imported
            found.problems.append(_left_out(name, err))
    return found


def of_part(name: str, module: str = "") -> Any:
    """Return the package `client` of a part, or a module of it. It imports the client, so it is not imported before."""
    package = find_modules("client").modules[name]
    return import_module(f"{package.__name__}.{module}") if module else package


def declared(name: str) -> Mapping[str, str]:
    """Return a mapping of the packages of all parts, joined: `NEWER_REQUESTS`, `MAGICS`, ..."""
    found: dict[str, str] = {}
    for package in {**_own(), **_of_others()}.values():
        with contextlib.suppress(Exception):  # find_modules names it
            found.update(getattr(import_module(package), name, {}))
    return found


def declared_in_api(name: str) -> dict[str, Any]:
    """Return a mapping of the modules `api` of all parts, joined: `REPLACE_STATES`, `ERROR_CODES`, ..."""
    modules = find_modules("api").modules.values()
    return {key: value for module in modules for key, value in getattr(module, name, {}).items()}


@functools.cache
def body_magics() -> tuple[str, ...]:
    """Return the cell magics that run the cell below them as it is, of IPython and of parts."""
    return ("time", "timeit", "prun", "capture", *declared("CELL_MAGICS"))


def _left_out(name: str, err: Exception) -> str:
    return f"The part '{name}' is left out: {type(err).__name__}: {err}"


def _own() -> dict[str, str]:
    """Return the packages of own parts by name; none if the folder is gone."""
    try:
        folder = import_module(PARTS)
    except ModuleNotFoundError:
        return {}
    return {name: f"{PARTS}.{name}" for _, name, is_package in pkgutil.iter_modules(folder.__path__) if is_package}


@functools.cache
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
