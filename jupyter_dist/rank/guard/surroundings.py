"""Restores modules, builtins and limits that a cell removed from the process, but later cells need."""

from __future__ import annotations

import builtins
import sys
from itertools import islice
from types import ModuleType

# If one of these is missing or replaced, a cell cleared sys.modules.
_SIGNS = ("sys", "builtins", "os", "torch", "IPython")
_LEAST_RECURSION = 500  # enough for IPython and a few libraries

# The modules of the zygote. A rank that copies them all, or looks at each name, writes to each (its count of
# references), and so copies nearly 2000 pages: a quarter of its start and 7 MB of memory.
_inherited: dict[str, ModuleType] = {}


def inherit() -> None:
    """Remember the modules of the zygote, which all ranks inherit."""
    _inherited.clear()
    _inherited.update(sys.modules)


def _modules() -> list[dict[str, ModuleType]]:
    """Return the inherited modules, and the modules imported since."""
    since = len(sys.modules) - len(_inherited)
    newest = dict(islice(reversed(sys.modules.items()), max(since, 0)))
    if since < 0 or any(name in _inherited for name in newest):  # some were removed
        return [dict(sys.modules)]
    return [_inherited, newest]


class Surroundings:
    """Remembers modules and builtins, and restores missing ones. Any thread may restore."""

    def __init__(self) -> None:
        self.take()

    def take(self) -> None:
        """Store modules, builtins and the recursion limit: at the start, and when the rank has its shell."""
        self._table = sys.modules
        self._modules = _modules()
        self._signs = {name: sys.modules[name] for name in _SIGNS if name in sys.modules}
        self._builtins = dict(vars(builtins))
        self._recursion_limit = sys.getrecursionlimit()

    def remember(self) -> None:
        """Remember the modules after a cell, including its imports."""
        if len(self._table) != sum(map(len, self._modules)):
            self._modules = [dict(self._table)]

    def restore(self) -> None:
        """Restore modules, builtins and the recursion limit if a cell cleared or deleted them."""
        if sys.modules is not self._table:
            sys.modules = self._table
        if any(self._table.get(name) is not module for name, module in self._signs.items()):
            for modules in self._modules:
                self._table.update(modules)
        if not self._builtins.keys() <= vars(builtins).keys():
            vars(builtins).update({**self._builtins, **vars(builtins)})
        if sys.getrecursionlimit() < _LEAST_RECURSION:
            sys.setrecursionlimit(self._recursion_limit)
