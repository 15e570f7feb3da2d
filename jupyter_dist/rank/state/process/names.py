"""The names that are written from the namespace of cells, and the results and inputs of cells."""

from __future__ import annotations

import ast
import re
import sys
from typing import Any

_OF_MODULE = frozenset(
    ("__name__", "__builtin__", "__builtins__", "__doc__", "__loader__", "__package__", "__spec__", "__file__")
)
_OF_IPYTHON = frozenset(("In", "Out", "_ih", "_oh", "_dh", "_", "__", "___", "_i", "_ii", "_iii", "_exit_code"))
_NUMBERED = re.compile(r"_i?\d+")

# After `import`, by itself or in a list: a name with dots.
_SUBMODULE = re.compile(r"(?:\bimport|,)\s+(\w+(?:\.\w+)+)")
_ASSIGNED = re.compile(r"^\s*(\w+)\s*=(?!=)", re.MULTILINE)


def variables(namespace: dict[Any, Any], hidden: dict[str, Any]) -> dict[str, Any]:
    """Return the values that cells have set, by name.

    Args:
        namespace: of the cells.
        hidden: the values of names before the first cell; such a name counts if a cell has set it to another value.
    """
    found = {}
    for name, value in list(namespace.items()):
        if type(name) is not str or name in _OF_MODULE or name in _OF_IPYTHON or _NUMBERED.fullmatch(name):
            continue
        if name in hidden and hidden[name] is value:
            continue
        found[name] = value
    return found


def device_of(shell: Any) -> str:
    """Return the device of this rank."""
    return str(shell.user_ns_hidden.get("device", "cpu"))


def results(namespace: dict[Any, Any]) -> dict[int, Any]:
    """Return the results of cells (`Out`), by the number of the cell."""
    kept = namespace.get("_oh")
    if type(kept) is not dict:
        return {}
    return {number: value for number, value in list(kept.items()) if type(number) is int and value is not kept}


def inputs(namespace: dict[Any, Any]) -> list[str]:
    """Return the code of the cells (`In`)."""
    kept = namespace.get("_ih")
    return [str(code) for code in list(kept)] if isinstance(kept, list) else []


def submodules(inputs_of_cells: list[str]) -> list[str]:
    """Return the modules inside of packages that cells have imported (`import a.b`), as far as they are loaded."""
    found = {name for code in inputs_of_cells if "import" in code for name in _SUBMODULE.findall(code)}
    return sorted(name for name in found if name in sys.modules)


def cell_of(name: str, inputs_of_cells: list[str]) -> int | None:
    """Return the number of the last cell whose code gives a name its value; None if no such cell is known."""
    for number in range(len(inputs_of_cells) - 1, 0, -1):
        code = inputs_of_cells[number]
        if name in code and name in _names_set_by(code):
            return number
    return None


def _names_set_by(code: str) -> set[str]:
    """Return the names that a cell gives values to, at its top level or in a function with `global`."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # it has magics
        return set(_ASSIGNED.findall(code))
    found: set[str] = set()
    todo: list[ast.AST] = [tree]
    while todo:
        for node in ast.iter_child_nodes(todo.pop()):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif isinstance(node, ast.alias):
                found.add((node.asname or node.name).split(".")[0])
            elif isinstance(node, ast.Global):
                found.update(node.names)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                found.add(node.name)
                found.update(name for one in ast.walk(node) if isinstance(one, ast.Global) for name in one.names)
                continue
            todo.append(node)
    return found
