"""Functions and classes of cells, and meshes of devices: written once, and named by all streams that use them."""

from __future__ import annotations

import contextlib
import io
import sys
import types
import typing
from collections.abc import Iterator
from typing import Any

import cloudpickle

from jupyter_dist.objects.pickling import with_slots

from . import marks

# The functions of cloudpickle that make a class, and the places in their arguments of the number by which it finds
# a living class of this process again.
_NEWER_FIELDS = ("__type_params__",)  # since Python 3.12
_SKELETON = "_make_skeleton_class"
_TRACKERS = {_SKELETON: 4, "_make_skeleton_enum": 5}


class SharedDefinitions:
    """The functions and classes that are written by value, and its meshes, numbered as they are found.

    Attributes:
        objects: each definition, by its number.
        parents: the class of each method that was found with its class; else itself.
    """

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.objects: list[Any] = []
        self.parents: list[int] = []
        self._namespace = namespace
        self._numbers: dict[int, int | None] = {}
        self._kept: list[Any] = []  # so that no id is used again
        self._cloud = cloudpickle.Pickler(io.BytesIO(), 5)
        self._cells: dict[int, CellOfFunction] = {}

    def number_of(self, value: Any) -> int | None:
        """Return the number of a function or class; None if a module has it, where it will be imported."""
        if id(value) not in self._numbers:
            self._kept.append(value)
            reduced = self._reduce_by_cloudpickle(value)
            is_by_value = _maker_of(reduced) in _TRACKERS if isinstance(value, type) else isinstance(reduced, tuple)
            self._numbers[id(value)] = self._add(value, None) if is_by_value else None
        return self._numbers[id(value)]

    def number_of_mesh(self, mesh: Any) -> int:
        """Return the number of a DeviceMesh: models and tensors on one mesh have nothing else in common."""
        known = self._numbers.get(id(mesh))
        return self._add(mesh, None) if known is None else known

    def name_of(self, number: int) -> str:
        """Return the name of a definition, for users."""
        return str(getattr(self.objects[number], "__qualname__", ""))

    def by_name(self, value: Any) -> Any:
        """Reduce a function or class that a module has to its module and its name there."""
        return self._reduce_by_cloudpickle(value)

    def _add(self, value: Any, parent: int | None) -> int:
        number = len(self.objects)
        self.objects.append(value)
        self.parents.append(number if parent is None else parent)
        self._numbers[id(value)] = number
        self._kept.append(value)
        if isinstance(value, type):
            for method in _methods(value):
                if id(method) not in self._numbers:
                    self._add(method, self.parents[number])
        return number

    def reduce(self, value: Any) -> Any:
        """Reduce a definition to its parts."""
        if typing.is_typeddict(value):
            return _reduce_typed_dict(value)
        if isinstance(value, type):
            return _without_tracker(with_slots(value, self._reduce_by_cloudpickle(value)))
        name = self._module_of(value)
        if name is None:  # its variables are in no module: the variables that it uses go along
            return self._reduce_by_cloudpickle(value)
        return self._reduce_function(value, name)

    def reduce_cell(self, cell: types.CellType) -> Any:
        """Reduce a variable of closures that is reached by other ways than through a function."""
        return _itself, (self._cell(cell),), _contents(cell), None, None, marks.set_cell

    def _cell(self, cell: types.CellType) -> CellOfFunction:
        return self._cells.setdefault(id(cell), CellOfFunction(cell))

    def _reduce_function(self, function: types.FunctionType, module: str) -> Any:
        cells = tuple(map(self._cell, function.__closure__ or ()))
        state = {
            "attributes": dict(function.__dict__),
            "cells": [(one, _contents(one.cell)) for one in cells],
            "fields": {
                "__defaults__": function.__defaults__,
                "__kwdefaults__": function.__kwdefaults__,
                "__annotations__": _annotations(function),
                "__qualname__": function.__qualname__,
                "__module__": function.__module__,
                "__doc__": function.__doc__,
                **{name: getattr(function, name) for name in _NEWER_FIELDS if hasattr(function, name)},
            },
        }
        arguments = (module, function.__code__, function.__name__, cells)
        return marks.function, arguments, state, None, None, marks.set_function

    def _reduce_by_cloudpickle(self, value: Any) -> Any:
        return self._cloud.reducer_override(value)

    def _module_of(self, function: Any) -> str | None:
        variables = function.__globals__
        if variables is self._namespace:
            return marks.CELLS
        name = variables.get("__name__")
        module = sys.modules.get(name) if type(name) is str else None
        return name if module is not None and vars(module) is variables else None


def _maker_of(reduced: Any) -> str:
    """Return the name of the function that makes a reduced value again."""
    return str(getattr(reduced[0], "__name__", "")) if isinstance(reduced, tuple) else ""


def _reduce_typed_dict(kind: Any) -> Any:
    """Reduce a TypedDict, whose metaclass makes no class from the parts of a class."""
    fields = dict(kind.__annotations__)
    if hasattr(typing, "NotRequired"):  # Python 3.11
        for key in kind.__optional_keys__:
            origin: Any = typing.get_origin(fields[key])
            if origin is not typing.NotRequired:
                fields[key] = typing.NotRequired[fields[key]]
    return _make_typed_dict, (kind.__name__, fields, kind.__total__, kind.__module__)


def _make_typed_dict(name: str, fields: dict[str, Any], total: bool, module: str) -> Any:
    make: Any = typing.TypedDict
    kind = make(name, fields, total=total if not hasattr(typing, "NotRequired") else True)
    kind.__module__ = module
    return kind


def _without_tracker(reduced: Any) -> Any:
    """Let a class that is read be a new class, also where the class of before still lives."""
    place = _TRACKERS[_maker_of(reduced)]
    if _maker_of(reduced) == _SKELETON:
        return (_make_class, reduced[1][:place], *reduced[2:])
    arguments = (*reduced[1][:place], None, *reduced[1][place + 1 :])
    return (reduced[0], arguments, *reduced[2:])


def _make_class(kind: type, name: str, bases: tuple[type, ...], fields: dict[str, Any]) -> type:
    """Make a class that gets the rest of its contents later."""

    def fill(body: dict[str, Any]) -> None:
        body.update({sys.intern(name): value for name, value in fields.items()})

    with _not_learning(bases):
        return types.new_class(name, bases, {"metaclass": kind}, fill)


@contextlib.contextmanager
def _not_learning(bases: tuple[type, ...]) -> Iterator[None]:
    """Do not call `__init_subclass__` of classes of cells: it was called before the class was written."""
    above = {one for base in bases for one in getattr(base, "__mro__", ()) if one.__module__ == "__main__"}
    methods = {one: vars(one)["__init_subclass__"] for one in above if "__init_subclass__" in vars(one)}
    for one in methods:
        type.__delattr__(one, "__init_subclass__")
    try:
        yield
    finally:
        for one, method in methods.items():
            type.__setattr__(one, "__init_subclass__", method)


def _methods(kind: type) -> Iterator[types.FunctionType]:
    for value in list(vars(kind).values()):
        for part in _functions_of(value):
            if type(part) is types.FunctionType and part.__qualname__.startswith(f"{kind.__qualname__}."):
                yield part


def _functions_of(value: Any) -> tuple[Any, ...]:
    if type(value) in (staticmethod, classmethod):
        return (value.__func__,)
    if type(value) is property:
        return (value.fget, value.fset, value.fdel)
    return (value,)


class CellOfFunction:
    """Stands for a variable of a closure, before it has its value: the value may be the function itself."""

    def __init__(self, cell: types.CellType) -> None:
        self.cell = cell

    def __reduce__(self) -> Any:
        """Become an empty variable."""
        return types.CellType, ()


def _itself(value: Any) -> Any:
    return value


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return marks.EMPTY


def _annotations(function: types.FunctionType) -> dict[str, Any]:
    try:
        return function.__annotations__
    except Exception:  # from Python 3.14 they are computed when they are read, by the user's code
        return {}
