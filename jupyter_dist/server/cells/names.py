"""The names that the code of cells reads and sets (pure)."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator

from .python import Plain

# Names that ranks have besides the names of IPython.
RANK_NAMES = (
    "rank",
    "local_rank",
    "world_size",
    "device",
    "gpu_id",
    "__rank__",
    "__world_size__",
    "dist",
    "torch",
    "track",
)
_GIVEN = frozenset((*RANK_NAMES, *dir(builtins), "display", "__name__", "__file__"))


def missing_names(cells: Iterable[Plain]) -> list[str]:
    """Return the names that these cells, run in this order, use at their top level before they are defined."""
    known = {"os", "sys", *_GIVEN}
    missing: dict[str, None] = {}
    for cell in cells:
        try:
            tree = ast.parse(cell.text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):  # a newer Python's syntax
            return []
        if any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in ast.walk(tree)):
            return []
        known |= {*cell.modules, *stored(tree)}
        missing |= dict.fromkeys(name for name in _loaded(tree) if name not in known)
    return list(missing)


def stored(tree: ast.AST) -> Iterator[str]:
    """Yield the names that code sets."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name
        elif isinstance(node, ast.MatchMapping) and node.rest:
            yield node.rest


def _loaded(node: ast.AST) -> Iterator[str]:
    """Yield the names that are read at once; the bodies of functions are run later."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield node.id
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            for part in (*child.decorator_list, *child.args.defaults):
                yield from _loaded(part)
        elif not isinstance(child, ast.Lambda):
            yield from _loaded(child)
