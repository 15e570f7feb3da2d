"""A namespace with undo, in this process: what a rank does around its cells, without a rank."""

from __future__ import annotations

import contextlib
import types
from typing import Any

from jupyter_dist.parts.undo.rank.keeper import UndoKeeper
from jupyter_dist.parts.undo.rank.reach import Bystanders

LIMITS = {"cells": 50, "bytes": 1 << 30}


class Undoable:
    """Runs cells that keep undo; `undo` undoes the last ones."""

    def __init__(self, limits: dict[str, int] = LIMITS, **names: Any) -> None:
        shell = types.SimpleNamespace(displayhook=types.SimpleNamespace(_=None, __=None, ___=None))
        shell.user_ns = self.names = {"__name__": "__main__", "_oh": {}, **names}
        self.keeper = UndoKeeper(shell, Bystanders())
        self.limits = limits
        self.count = 0
        self.last: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        return self.names[name]

    def run(self, code: str, *, keep: bool = True, silent: bool = False) -> str:
        """Run a cell; an exception ends it, as on a rank. Return its execution."""
        self.count += 1
        execution_id = f"e{self.count}"
        self.keeper.begin()
        self.keeper.before(execution_id, code, self.limits if keep else None, is_silent=silent)
        with contextlib.suppress(Exception):
            exec(compile(code, "<cell>", "exec"), self.names)
        found = self.keeper.after()
        self.last = {"cell": {**found["undo"], "bytes": found.get("undo_cost", [0])[0]}, "kept": found["undo"]["kept"]}
        return execution_id

    def undo(self, number: int = 1) -> list[str]:
        """Undo the last cells."""
        kept = self.keeper.after()["undo"]["kept"]
        return self.keeper.undo(kept[::-1][:number])

    def redo(self, *executions: str) -> None:
        """Do undone cells again: the last one by default, or these."""
        self.keeper.redo(executions or [f"e{self.count}"])
