"""Restores what a cell can remove from the process but later cells and our own code need."""

from __future__ import annotations

import builtins
import sys
from types import ModuleType

# If one of these is missing or replaced, a cell cleared sys.modules.
_SIGNS = ("sys", "builtins", "os", "torch", "IPython")
_LEAST_RECURSION = 500  # enough for IPython and a few libraries


class Surroundings:
    """Remembers modules and builtins, and restores those that are gone. Any thread may restore."""

    def __init__(self) -> None:
        self._table = sys.modules
        self._modules: dict[str, ModuleType] = dict(sys.modules)
        self._signs = {name: sys.modules[name] for name in _SIGNS if name in sys.modules}
        self._builtins = dict(vars(builtins))
        self._recursion_limit = sys.getrecursionlimit()

    def remember(self) -> None:
        """Remember the modules after a cell, including those that it imported."""
        if len(self._table) != len(self._modules):
            self._modules = dict(self._table)

    def restore(self) -> None:
        """Restore modules, builtins and the recursion limit if a cell cleared or deleted them."""
        if sys.modules is not self._table:
            sys.modules = self._table
        if any(self._table.get(name) is not module for name, module in self._signs.items()):
            self._table.update(self._modules)
        if not self._builtins.keys() <= vars(builtins).keys():
            vars(builtins).update({**self._builtins, **vars(builtins)})
        if sys.getrecursionlimit() < _LEAST_RECURSION:
            sys.setrecursionlimit(self._recursion_limit)
