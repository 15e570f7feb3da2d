"""The undo of a rank, for its runner and its agent. What keeps states is imported when a cell first asks for it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.protocol.wire.specs import RankSpec
from jupyter_dist.rank.cells.interrupt import CurrentExecution
from jupyter_dist.rank.part import RankCall, RankCore, RankPart

from .reach import Bystanders

if TYPE_CHECKING:
    from .keeper import UndoKeeper


class UndoOfRank(RankPart):
    """Keeps the state before cells that ask for it, and undoes them."""

    comes_first = True  # hooks of other parts are not the state before the cell

    def __init__(self, core: RankCore) -> None:
        super().__init__(core)
        self._spec = core.spec
        self._bystanders = Bystanders()
        self._keeper: UndoKeeper | None = None

    def before(self, execution: CurrentExecution, code: str | None) -> None:
        """Keep the state before a cell. Reading a variable for a client, and undo itself, change nothing."""
        limits = execution.asked.get("undo")
        if self._keeper is not None:
            self._keeper.begin()
        elif limits is None:
            return
        call = execution.call or {}
        do, changes = call.get("do"), call.get("changes")
        if do in ("undo", "redo", "get") or changes == "nothing" or (not execution.code.strip() and not call):
            return
        # What exchanges all objects: what is kept of before it is of no use.
        is_between = changes != "all" and (execution.silent or (do is not None and limits is None))
        self._need().before(execution.execution_id, code, limits, is_silent=is_between)

    def take_place(self, spec: RankSpec) -> None:
        """Take another place after a resize: what is kept names process groups and ranks of before."""
        before, self._spec = self._spec, spec
        if self._keeper is not None and spec.shape != before.shape:
            self._keeper.forget("The group was resized after it.")

    def after(self) -> dict[str, Any] | None:
        """Return the kept cells, and the cost for the last one."""
        return None if self._keeper is None else self._keeper.after()

    def calls(self) -> Mapping[str, RankCall]:
        """Return how executions are undone and done again."""
        return {"undo": self._carry_out, "redo": self._carry_out}

    def _carry_out(self, call: dict[str, Any]) -> None:
        """Undo executions or do them again, or check that it can be done; print what is left as it is.

        Raises:
            JupyterDistError: `cannot_undo`.
        """
        executions = [
            execution_id
            for execution_id, ranks in call["executions"].items()
            if self._spec.rank in RankSet.from_text(ranks)
        ]
        keeper = self._need()
        is_undo = call["do"] == "undo"
        if call["only_check"]:
            keeper.check(executions) if is_undo else keeper.check_redo(executions)
            return
        left = keeper.undo(executions) if is_undo else keeper.redo(executions)
        sys.stdout.write(f"{call['sentence']}\n")
        sys.stderr.writelines(f"Not undone: {sentence}.\n" for sentence in left)

    def _need(self) -> UndoKeeper:
        if self._keeper is None:
            from .keeper import UndoKeeper

            self._keeper = UndoKeeper(self.core.shell, self._bystanders)
        return self._keeper
