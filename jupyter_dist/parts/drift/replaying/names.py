"""Which names a cell reads, sets and may change, to find the cells that it depends on. Pure."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from jupyter_dist.protocol.accelerators import DEVICE_TYPES
from jupyter_dist.server.cells.names import RANK_NAMES, stored
from jupyter_dist.server.cells.python import to_python

_GIVEN = frozenset((*RANK_NAMES, *dir(builtins), "display", "get_ipython"))
# Methods that only read, judged by their names.
_READING = frozenset(
    (
        *DEVICE_TYPES,
        "cpu",
        *("clone", "copy", "detach", "double", "float", "get", "half", "int", "item", "long", "to"),
        *("describe", "head", "info", "items", "join", "keys", "mean", "numel", "numpy", "shape", "size", "split"),
        *(
            "get_state",
            "named_parameters",
            "parameters",
            "state_dict",
            "std",
            "sum",
            "tail",
            "tolist",
            "values",
            "view",
        ),
    )
)
_BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.Match, ast.IfExp, ast.BoolOp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True)
class Names:
    """The names that a cell uses, by use.

    Attributes:
        reads: names that the cell reads, also in functions that it defines.
        sets: names that the cell sets in any case.
        writes: names that the cell may set or change: `model.train()`, `seen[0] = 1`, `fit(model)`.
        bodies: names that are read by the functions and classes that the cell defines.
        imports: names that the cell imports.
    """

    reads: frozenset[str] = frozenset()
    sets: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    bodies: Mapping[str, frozenset[str]] = field(default_factory=dict)
    imports: frozenset[str] = frozenset()


def names_of(code: str) -> Names:
    """Return the names of a cell; no names if this Python cannot parse its code."""
    try:
        tree = ast.parse(to_python(code).text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Names()
    reads = frozenset(_reads(tree)) - _GIVEN
    imported = frozenset(name for node in ast.walk(tree) if isinstance(node, ast.alias) for name in stored(node))
    changed = frozenset(_changed(tree)) - _GIVEN - imported
    bodies = {
        node.name: frozenset(_reads(node)) - _GIVEN
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    return Names(reads | changed, frozenset(_set(tree.body)), frozenset(stored(tree)) | changed, bodies, imported)


def with_bodies(cells: Iterable[Names]) -> list[Names]:
    """Return the same names, so that a caller of a function also reads the names that the function reads."""
    known = list(cells)
    bodies: dict[str, frozenset[str]] = {}
    for one in known:
        for name, reads in one.bodies.items():
            bodies[name] = bodies.get(name, frozenset()) | reads
    return [replace(one, reads=_through(one.reads, bodies)) for one in known]


def _through(reads: frozenset[str], bodies: Mapping[str, frozenset[str]]) -> frozenset[str]:
    found, todo = set(reads), list(reads)
    while todo:
        for name in bodies.get(todo.pop(), frozenset()) - found:
            found.add(name)
            todo.append(name)
    return frozenset(found)


def _reads(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load | ast.Del):
            yield node.id
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def _set(body: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names that are set at the top level, in no branch."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.With | ast.AsyncWith):
            yield from _set(node.body)
        elif not isinstance(node, _BRANCHES):
            yield from stored(node)


def _changed(tree: ast.AST) -> Iterator[str]:
    """Yield the names whose values a cell may change without setting them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            yield from _base(node)
        elif isinstance(node, ast.Call):
            yield from _changed_by(node)


def _changed_by(call: ast.Call) -> Iterator[str]:
    function = call.func
    if isinstance(function, ast.Attribute):
        if function.attr not in _READING:
            yield from _base(function)
    elif isinstance(function, ast.Name):
        yield function.id  # a model that is called may count its batches
    name = (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )
    if name not in _GIVEN:
        for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
            yield from _base(argument)


def _base(node: ast.AST) -> Iterator[str]:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id
