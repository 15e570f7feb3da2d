"""Libraries' own objects: single ones of a process, and attributes that cells have given to libraries."""

from __future__ import annotations

import ast
import contextlib
import decimal
import importlib
import sys
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from types import ModuleType
from typing import Any

from jupyter_dist.rank.state import reasons

from .own import is_users_module, variables_of

Reduced = Any

# Settings bring back what these hold, or the environment of then does.
_KEPT = {("os", "environ"), ("random", "_inst"), ("numpy.random.mtrand", "_rand"), ("matplotlib", "rcParams")}
_ELSEWHERE: dict[type, str] = {OrderedDict: "torch.nn.modules.module"}  # hooks
_NOT_OF_CELLS = frozenset(("sys", "os"))


def reduce(value: Any, place: tuple[str, str] | None) -> Reduced | None:
    """Reduce an object to its place in a library; None if it has none."""
    if place is not None:
        return getattr, (sys.modules[place[0]], place[1])
    is_context = type(value) is decimal.Context and value is decimal.getcontext()
    return (decimal.getcontext, ()) if is_context else None


class ProcessObjects:
    """Finds the module and the name under which a library has an object: each process has its own."""

    def __init__(self) -> None:
        self._kinds_in: dict[str, frozenset[type]] = {}
        self._of_kinds: dict[type, list[tuple[str, dict[int, str]]]] = {}

    def place_of(self, value: Any) -> tuple[str, str] | None:
        """Return the module and the name of an object of a library; None if no library has it."""
        for name, names in self._known(type(value)):
            if id(value) in names:
                return name, names[id(value)]
        return None

    def may_have(self, kind: type) -> bool:
        """Whether an object of this class may be one of a library."""
        return kind is decimal.Context or bool(self._known(kind))

    def _known(self, kind: type) -> list[tuple[str, dict[int, str]]]:
        if kind not in self._of_kinds:
            self._of_kinds[kind] = self._places_of(kind)
        return self._of_kinds[kind]

    def _places_of(self, kind: type) -> list[tuple[str, dict[int, str]]]:
        module = _ELSEWHERE.get(kind) or kind.__module__
        if type(module) is not str or module == "builtins":
            return []
        modules = dict.fromkeys((module, module.partition(".")[0]))
        return [(name, names) for name in modules if (names := self._names_in(name, kind))]

    def _names_in(self, name: str, kind: type) -> dict[int, str]:
        """Return the names of a library's objects of a class by their ids; the classes of all of them are seen once."""
        module = sys.modules.get(name)
        variables = variables_of(module)
        if name not in self._kinds_in:
            is_library = module is not None and name != "__main__" and not is_users_module(module)
            self._kinds_in[name] = frozenset(map(type, list(variables.values()))) if is_library else frozenset()
        if kind not in self._kinds_in[name]:
            return {}
        return {id(one): key for key, one in list(variables.items()) if type(one) is kind}


def note_on(value: Any, place: tuple[str, str]) -> str | None:
    """Return the part of a library's object that is not saved; None if all is."""
    is_kept = place in _KEPT or place[0] in _ELSEWHERE.values()
    if is_kept or place[1].startswith("_") or not (getattr(value, "__dict__", None) or isinstance(value, Mapping)):
        return None
    return f"is {'.'.join(place)}, which each process has: what it holds is not saved"


class NamedContainer:
    """Stands for a plain list or dictionary of a module where a variable is that (`path = sys.path`)."""

    def __init__(self, module: str, name: str) -> None:
        self._place = (sys.modules[module], name)

    def __reduce__(self) -> Any:
        """Become the one of the module."""
        return getattr, self._place


def named_containers(namespace: Mapping[str, Any]) -> dict[int, tuple[str, str]]:
    """Return the places of names' plain lists and dictionaries in `sys`, and in modules with names, by their ids."""
    wanted = {id(one) for one in namespace.values() if type(one) in (list, dict, set)}
    modules = {id(one): one for one in namespace.values() if issubclass(type(one), ModuleType)}
    modules[id(sys)] = sys
    return {
        id(value): (module.__name__, name)
        for module in modules.values()
        if not wanted.isdisjoint(map(id, list(variables_of(module).values())))
        and variables_of(module).get("__name__") != "__main__"
        and not is_users_module(module)
        for name, value in list(variables_of(module).items())
        if id(value) in wanted and not name.startswith("__")
    }


def take_attributes(shell: Any) -> dict[str, Any]:
    """Return the attributes of libraries that cells have set, by the module and the names from it."""
    found: dict[str, Any] = {}
    paths = {path for code in shell.user_ns.get("_ih") or () if type(code) is str for path in _set_by(code)}
    for first, *steps in sorted(paths):
        if (place := _place_of(shell.user_ns.get(first))) is not None:
            module, names = place[0], [*place[1], *steps]
            with contextlib.suppress(Exception):  # it is gone, or the library does not know
                owner = _owner(module, names)
                found[f"{module}:{'.'.join(names)}"] = getattr(owner, names[-1])
    return found


def put_back_attributes(_shell: Any, saved: Mapping[str, Any]) -> list[str]:
    """Set the attributes of libraries that cells had set."""
    notes = []
    for path, value in saved.items():
        module, _, names = path.partition(":")
        try:
            importlib.import_module(module)
            owner, name = _owner(module, names.split(".")), names.rpartition(".")[2]
            if getattr(owner, name, _MISSING) is not value:
                setattr(owner, name, value)
        except Exception as err:  # of a library of another version
            notes.append(f"{module}.{names} was not restored: {reasons.of(err)}.")
    return notes


_MISSING = object()


def _place_of(value: Any) -> tuple[str, list[str]] | None:
    """Return the name of the module, and the names in it, of a module or class of a library; None for other values."""
    names: list[str] = []
    module = value
    if issubclass(type(value), type):
        module, names = sys.modules.get(value.__module__), value.__qualname__.split(".")
    if not issubclass(type(module), ModuleType) or is_users_module(module) or "<locals>" in names:
        return None
    name = variables_of(module).get("__name__")
    return None if type(name) is not str or name in _NOT_OF_CELLS or sys.modules.get(name) is None else (name, names)


def _owner(module: str, names: Sequence[str]) -> Any:
    owner: Any = sys.modules[module]
    for name in names[:-1]:
        owner = getattr(owner, name)
    return owner


@lru_cache(maxsize=4096)
def _set_by(code: str) -> frozenset[tuple[str, ...]]:
    """Return the attributes that a cell sets, as the names on the way to them."""
    if "." not in code and "setattr" not in code:
        return frozenset()
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # it has magics
        return frozenset()
    return frozenset(path for node in ast.walk(tree) for path in _paths(node))


def _paths(node: ast.AST) -> Iterator[tuple[str, ...]]:
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and (owner := _path(node.value)):
        yield (*owner, node.attr)
    elif isinstance(node, ast.Call) and _path(node.func) == ("setattr",) and len(node.args) > 1:
        name = node.args[1]
        if isinstance(name, ast.Constant) and (owner := _path(node.args[0])):
            yield (*owner, str(name.value))


def _path(node: ast.AST) -> tuple[str, ...]:
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute) and (owner := _path(node.value)):
        return (*owner, node.attr)
    return ()
