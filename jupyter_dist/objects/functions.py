"""Sends functions from a client to ranks: by name, by source code, or by value."""

from __future__ import annotations

import importlib
import inspect
import linecache
import marshal
import sys
import textwrap
import types
from collections.abc import Callable
from typing import Any

from jupyter_dist.protocol.errors import JupyterDistError

from .pickling import PYTHON, is_of_notebook

_DEFINE = "Define it with def at the top level of a cell, or in a module that the ranks can import."


class Sent:
    """Pickles as a function: loading returns the function itself.

    A function of a module is imported there. A function that a cell defines with `def` goes as source code, which works
    between versions of Python and shows its lines in tracebacks. Others (lambdas, functions with variables of a
    function around them) go by value. The last two have the rank's variables as globals; the values of a closure go
    along.
    """

    def __init__(self, function: Callable[..., Any], known: dict[int, Sent] | None = None) -> None:
        self._function = function
        self._known = {} if known is None else known
        self._known[id(function)] = self

    def __reduce__(self) -> tuple[Any, ...]:
        function = self._function
        if not isinstance(function, types.FunctionType) or not is_of_notebook(function):
            return _same, (function,)
        if (source := source_of(function)) is not None:
            return _define, (function.__name__, source)
        code = function.__code__
        module = function.__globals__.get("__name__") or "__main__"
        names = (function.__name__, function.__qualname__, module)
        lines = "".join(linecache.getlines(code.co_filename))
        made = (PYTHON, marshal.dumps(code), names, len(code.co_freevars), lines)
        return _make, made, self._state(function), None, None, _fill

    def _state(self, function: types.FunctionType) -> dict[str, Any]:
        return {
            "defaults": self._sent(function.__defaults__),
            "kwdefaults": function.__kwdefaults__ and {k: self._one(v) for k, v in function.__kwdefaults__.items()},
            "closure": [self._sent(_content(cell)) for cell in function.__closure__ or ()],
            "dict": {name: self._one(value) for name, value in vars(function).items()},
        }

    def _sent(self, values: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        return values and tuple(map(self._one, values))

    def _one(self, value: Any) -> Any:
        """Return a value of a closure, where functions are wrapped, too; each once, because it may contain itself."""
        if not isinstance(value, types.FunctionType) or not is_of_notebook(value):
            return value
        return self._known.get(id(value)) or Sent(value, self._known)


def source_of(function: Callable[..., Any]) -> str | None:
    """Return the source code of a function, if the source alone defines it; None if the function must go by value."""
    if function.__closure__ or function.__name__ == "<lambda>" or hasattr(function, "__wrapped__"):
        return None
    try:
        return textwrap.dedent(inspect.getsource(function)).rstrip("\n") + "\n"
    except (OSError, TypeError):
        return None


def _content(cell: types.CellType) -> tuple[Any, ...]:
    """Return the value in a closure's cell as a tuple; an empty tuple if the cell is still empty."""
    try:
        return (cell.cell_contents,)
    except ValueError:
        return ()


# -- called by pickle, on the rank ----------------------------------------------------------------------


def _same(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def _define(name: str, source: str) -> Any:
    """Define the function in the rank's namespace, as its cell would."""
    place = f"<launched {name}>"
    _remember_lines(place, source)
    namespace = vars(sys.modules["__main__"])
    exec(compile(source, place, "exec"), namespace)  # noqa: S102  (the user's own)
    return namespace[name]


def _make(python: tuple[int, int], code: bytes, names: tuple[str, str, str], num_free: int, lines: str) -> Any:
    """Return the function, not filled yet; `lines` is the source of its cell, for tracebacks."""
    name, qualname, module = names
    if python != PYTHON:
        message = f"'{name}' comes from Python {python[0]}.{python[1]}, this rank runs {PYTHON[0]}.{PYTHON[1]}."
        raise JupyterDistError("cannot_receive", message, _DEFINE)
    place = _module(module)
    compiled: types.CodeType = marshal.loads(code)  # noqa: S302  (the user's own)
    _remember_lines(compiled.co_filename, lines)
    cells = tuple(types.CellType() for _ in range(num_free))
    function = types.FunctionType(compiled, vars(place), name, None, cells)
    function.__qualname__ = qualname
    return function


def _module(name: str) -> types.ModuleType:
    """Return the module whose globals a function has; the notebook's namespace where only the client has the module."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return sys.modules["__main__"]


def _fill(function: types.FunctionType, state: dict[str, Any]) -> None:
    function.__defaults__, function.__kwdefaults__ = state["defaults"], state["kwdefaults"]
    for cell, content in zip(function.__closure__ or (), state["closure"], strict=True):
        if content:
            cell.cell_contents = content[0]
    vars(function).update(state["dict"])


def _remember_lines(place: str, lines: str) -> None:
    linecache.cache[place] = (len(lines), None, lines.splitlines(keepends=True), place)
