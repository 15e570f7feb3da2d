"""The state that is in the user's own modules: variables, and attributes of their classes and functions.

What a module defines by itself (functions, classes and their methods) is not state: its file has it.
"""

from __future__ import annotations

import enum
import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any, TypedDict

from jupyter_dist.rank.guard.own import os

from .own import is_users_module, variables_of

PLAIN = (type(None), bool, int, float, complex, str, bytes)  # numbers and texts
_OF_CLASSES = (staticmethod, classmethod, property)

_before: set[str] = set()
_of_libraries: dict[str, Any] = {}  # modules that were looked at: there are thousands


class ModuleRecord(TypedDict):
    """A module as it was: its file with a hash of it, and all of its variables."""

    file: str
    hash: str
    names: list[str]


def remember() -> None:
    """Remember the modules that the process has before the first cell: they are not of cells."""
    _before.clear()
    _before.update(sys.modules)


def loaded() -> dict[str, ModuleType]:
    """Return the user's own modules that cells have imported, by name."""
    found: dict[str, ModuleType] = {}
    for name in sorted(sys.modules.keys() - _before):
        module = sys.modules.get(name)
        if module is None or name == "__main__" or _of_libraries.get(name) is module:
            continue
        if not is_users_module(module):
            _of_libraries[name] = module
        elif _file_of(module):
            found[name] = module
    return found


def records(names: Iterable[str]) -> dict[str, ModuleRecord]:
    """Return the note about each of these modules."""
    modules = {name: sys.modules.get(name) for name in names}
    return {
        name: {"file": _file_of(module), "hash": _hash_of(_file_of(module)), "names": sorted(variables_of(module))}
        for name, module in modules.items()
    }


def take(_shell: Any) -> dict[str, Any]:
    """Return the state of all modules: the plain values of each by their paths, and other values by themselves."""
    found: dict[str, Any] = {}
    for name, module in loaded().items():
        plain = found[name] = {}
        for path, value in _state_of(module):
            if type(value) in PLAIN:
                plain[path] = value
            else:
                found[f"{name}:{path}"] = value
    return found


def _state_of(module: ModuleType) -> Iterator[tuple[str, Any]]:
    variables = variables_of(module)
    for name, value in list(variables.items()):
        if name.startswith("__") or issubclass(type(value), ModuleType):
            continue
        if type(value) is FunctionType:
            if value.__globals__ is variables:
                yield from ((f"{name}.{key}", one) for key, one in value.__dict__.items() if key != "__wrapped__")
            elif not _is_of_module(value, name):
                yield name, value
        elif issubclass(type(value), type):
            if value.__module__ == module.__name__ and not issubclass(value, enum.Enum):
                yield from ((f"{name}.{key}", one) for key, one in _attributes(value, variables))
        elif getattr(value, "__wrapped__", None) is None or callable(value) is False:
            yield name, value


def _attributes(kind: type, variables: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of a class that are no part of its definition."""
    for name, value in list(vars(kind).items()):
        if name.startswith("__"):
            if type(value) is FunctionType and value.__globals__.get("__name__") == "__main__":  # a cell has set it
                yield name, value
            continue
        if name == "_abc_impl" or type(value) in _OF_CLASSES or issubclass(type(value), type):
            continue
        if type(value) is FunctionType:
            if value.__globals__ is not variables and not _is_of_module(value, name):
                yield name, value
        elif not hasattr(type(value), "__get__"):
            yield name, value


def _is_of_module(function: FunctionType, name: str) -> bool:
    """Whether a function is the one of this name in its module, which is imported again."""
    module = sys.modules.get(function.__module__ or "")
    return module is not None and variables_of(module).get(function.__name__, None) is function and name != ""


Puts = list[Callable[[], None]]


def prepare(saved: Mapping[str, ModuleRecord], state: Mapping[str, Any]) -> tuple[Puts, list[str]]:
    """Find the places of the state in the modules of now.

    Returns:
        Functions that put it there, and sentences on what has changed since the save.
    """
    puts: Puts = []
    notes: list[str] = []
    for name, record in saved.items():
        module = sys.modules.get(name)
        if name in state and module is None:
            notes.append(f"The module '{name}' cannot be imported here: its variables were not restored.")
        if name not in state or module is None:  # it was not read, which is named, or not asked for
            continue
        is_same = _hash_of(_file_of(module)) == record["hash"]
        if not is_same:
            notes.append(
                f"The file of the module '{name}' has changed since the save: its functions and classes may differ "
                "from then; its variables are as in the save."
            )
        values = {**state[name], **_of_module(state, name)}
        if is_same:
            added = [one for one in variables_of(module) if one not in record["names"] and not one.startswith("__")]
            puts += [_remove(variables_of(module), one) for one in added]
        for path, value in values.items():
            if (put := _put(module, path, value)) is None:
                notes.append(f"{name}.{path} was not restored: the module has no such class or function any more.")
            else:
                puts.append(put)
    return puts, notes


def _of_module(state: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key[len(name) + 1 :]: value for key, value in state.items() if key.startswith(f"{name}:")}


def _put(module: ModuleType, path: str, value: Any) -> Callable[[], None] | None:
    variables = variables_of(module)
    owner_name, dot, name = path.partition(".")
    if not dot:
        return lambda: variables.__setitem__(owner_name, value)
    owner = variables.get(owner_name)
    if type(owner) is FunctionType:
        attributes = owner.__dict__
        return lambda: attributes.__setitem__(name, value)
    if issubclass(type(owner), type):
        kind: Any = owner
        return lambda: type.__setattr__(kind, name, value)
    return None


def _remove(variables: dict[str, Any], name: str) -> Callable[[], None]:
    return lambda: variables.pop(name, None)


def _file_of(module: Any) -> str:
    file = variables_of(module).get("__file__")
    return file if type(file) is str else ""


def _hash_of(file: str) -> str:
    try:
        with open(os.fspath(file), "rb") as opened:
            return hashlib.blake2b(opened.read(), digest_size=16).hexdigest()
    except OSError:
        return ""
