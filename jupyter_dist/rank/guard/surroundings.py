"""What a cell can take away from the whole process, and every later cell and our own code need."""

from __future__ import annotations

import builtins
import sys
from types import ModuleType

# Where one of these is gone or another one, the table of modules was cleared.
_SIGNS = ("sys", "builtins", "os", "torch", "IPython")
_LEAST_RECURSION = 500  # IPython and a library or two


class Surroundings:
    """Keeps what there was, and puts back what is gone. Any thread may restore."""

    def __init__(self) -> None:
        self._table = sys.modules
        self._modules: dict[str, ModuleType] = dict(sys.modules)
        self._signs = {name: sys.modules[name] for name in _SIGNS if name in sys.modules}
        self._builtins = dict(vars(builtins))
        self._recursion_limit = sys.getrecursionlimit()

    def remember(self) -> None:
        """A cell has ended: what it imported is there for the next."""
        if len(self._table) != len(self._modules):
            self._modules = dict(self._table)

    def restore(self) -> None:
        """Put back modules, builtins and the recursion limit, where a cell cleared or deleted them."""
        if sys.modules is not self._table:
            sys.modules = self._table
        if any(self._table.get(name) is not module for name, module in self._signs.items()):
            self._table.update(self._modules)
        if not self._builtins.keys() <= vars(builtins).keys():
            vars(builtins).update({**self._builtins, **vars(builtins)})
        if sys.getrecursionlimit() < _LEAST_RECURSION:
            sys.setrecursionlimit(self._recursion_limit)
