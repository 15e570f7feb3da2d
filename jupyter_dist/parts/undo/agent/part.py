"""The undo of a group: what its ranks keep, the requests of its server, and replacements that begin with an undo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jupyter_dist.agent.contact.server_link import Answer, RequestHandler, answer
from jupyter_dist.agent.group.cells.execution import AgentExecution
from jupyter_dist.agent.group.replacing.replacement import BeginReplacing, WayToReplace
from jupyter_dist.agent.group.replacing.variables import Copies
from jupyter_dist.agent.part import AgentCore, AgentPart
from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.agent.processes.starting.leftparts import left_by
from jupyter_dist.parts.undo.options import UndoOptions
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.wire.specs import ReplaceSpec
from jupyter_dist.transport.frames import Header

from .kept import combined, cost_of, kept_of
from .undoing import NAME, CellUndo, keeps_undo

UNDO_SECONDS = 120.0  # which the living ranks have to undo the cell in which others died, or to do it again


class UndoOfGroup(AgentPart):
    """Knows the cells that ranks can undo, and has them undone."""

    def __init__(self, core: AgentCore) -> None:
        super().__init__(core)
        self._undo = CellUndo(core.group.dispatcher)
        options = self.options(UndoOptions)
        self._limits = {"cells": options.undo_cells, "bytes": options.undo_bytes}

    def asked(self, execution: AgentExecution) -> Mapping[str, Any] | None:
        """Return the limits of what ranks keep for a cell; None: they keep nothing."""
        return self._limits if keeps_undo(execution) else None

    def received(self, rank: RankProcess, content: dict[str, Any]) -> None:
        """Take the kept cells of a rank after a cell, and the cost."""
        sent = content.get("undo")
        if not isinstance(sent, dict):
            return
        rank.known[NAME] = kept_of(sent)
        if sent.get("files") and rank.left is None:
            rank.left = left_by(rank.local_pid, sent["files"])
        cost = cost_of(sent, content.get("undo_cost"))
        execution = self.core.group.dispatcher.queue.find(str(rank.last_execution_id))
        if cost is not None and execution is not None and keeps_undo(execution) and not execution.is_final:
            execution.add(NAME, combined(execution.added(NAME), cost))

    def changed(self, execution: AgentExecution) -> None:
        """Note the cells that an undo or a redo has undone or done again."""
        if execution.is_final:
            self._undo.ended(execution)

    def requests(self) -> Mapping[str, RequestHandler]:
        """Return the handlers of `undo`, `redo` and `undoable`."""
        return {"undo": self._begin, "redo": self._begin, "undoable": self._undoable}

    def ways_to_replace(self) -> Mapping[str, WayToReplace]:
        """Return the way that takes back the cell in which ranks died."""
        return {"undo": self._replace}

    @property
    def _ranks(self) -> dict[int, RankProcess]:
        return {rank.rank: rank for rank in self.core.group.ranks}

    async def _begin(self, header: Header, _: bytes) -> Answer:
        self.core.group.check_takes_cells()
        count, executions = header.get("count"), header.get("executions")
        undo = self._undo.begin(self._ranks, header["t"], header["execution_id"], count, executions)
        return answer(execution=undo.model())

    async def _undoable(self, _header: Header, _: bytes) -> Answer:
        """Return the cells that can be undone, done again or taken back."""
        return answer(**self._undo.models(self._ranks))

    async def _replace(self, wanted: ReplaceSpec, begin: BeginReplacing) -> None:
        """Undo the cell in which ranks died on the others, and give the new ones copies."""
        lost = self._undo.lost(self._ranks)
        source = Copies(self.core.group, takes_all=wanted.others == "copy", undone=lost[-1].id if lost else None)

        def then(undo: AgentExecution) -> None:
            begin(source, lambda: self._do_again(undo))

        await self._undo.undo_lost(self._ranks, UNDO_SECONDS, then)

    async def _do_again(self, undo: AgentExecution) -> str:
        if await self._undo.redo_lost(self._ranks, undo, UNDO_SECONDS):
            return say("The other ranks are as they were.")
        return say("The cell stays undone on the other ranks.")
