"""Undo and redo of cells on all ranks that ran them: which cells, and the two executions that check and do it.

The first execution asks each rank whether it can; the second one, queued behind it, does it. It does not run if a rank
refuses, and no cell can run between the two, so that no group is undone by half.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from collections.abc import Callable, Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jupyter_dist.agent.group.cells.dispatch import Dispatcher
from jupyter_dist.agent.group.cells.execution import AgentExecution
from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import Sentence, say, say_n
from jupyter_dist.protocol.parts import failure_of
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.protocol.wire.specs import ExecutionSpec
from jupyter_dist.system.limits import within

from .kept import NOTHING, RankKept

if TYPE_CHECKING:
    from jupyter_dist.parts.undo import models

log = logging.getLogger(__name__)

NAME = "undo"  # of the part, and of its field of executions
_HINT = say("Run cells with `keep_undo` (%dist_keep_undo on) to undo them afterwards.")


def keeps_undo(execution: AgentExecution) -> bool:
    """Whether ranks keep the state before it."""
    return bool(execution.spec.options.get("keep_undo"))


class CellUndo:
    """Chooses the cells to undo or to do again, and notes which have been undone."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._queue = dispatcher.queue
        self._undoing: dict[str, list[AgentExecution]] = {}  # the cells of each undo and redo, by its execution
        self._waited: dict[str, Callable[[], Any]] = {}  # called at the end of an undo or redo, before other cells

    def undoable(self, ranks: Mapping[int, RankProcess]) -> list[AgentExecution]:
        """Return the cells that can be undone, newest first: all of their ranks keep the state before them."""
        found = [
            execution
            for execution in self._queue
            if keeps_undo(execution) and execution.is_final and execution.undone_at is None
            if execution.begin_seq is not None and _keep(ranks, execution)
        ]
        return sorted(found, key=_began, reverse=True)

    def redoable(self, ranks: Mapping[int, RankProcess]) -> list[AgentExecution]:
        """Return the undone cells that can be done again, the first one first."""
        found = [one for one in self._queue if one.undone_at is not None and _keep(ranks, one, is_undone=True)]
        return sorted(found, key=_began)

    def lost(self, ranks: Mapping[int, RankProcess]) -> list[AgentExecution]:
        """Return the cell in which ranks died and those after it, newest first, if the living ranks can undo them."""
        dead = {rank.rank for rank in ranks.values() if rank.state == "dead"}
        living = {number: rank for number, rank in ranks.items() if number not in dead}
        began = sorted(
            (one for one in self._queue if one.begin_seq is not None and one.undone_at is None and not one.spec.silent),
            key=_began,
            reverse=True,
        )
        last = next((place for place, one in enumerate(began) if dead & set(one.spec.ranks)), None)
        if last is None or all(began[last].statuses[n][0] != "lost" for n in dead & set(began[last].spec.ranks)):
            return []
        found = began[: last + 1]
        is_kept = all(_keep(living, one, among=living) for one in found)
        return [one for one in found if living.keys() & set(one.spec.ranks)] if is_kept else []

    def models(self, ranks: Mapping[int, RankProcess]) -> models.UndoableCells:
        """Return the models of `undoable`, `redoable` and `lost`."""
        return {
            "cells": list(map(_model, self.undoable(ranks))),
            "undone": list(map(_model, self.redoable(ranks))),
            "lost": list(map(_model, self.lost(ranks))),
        }

    async def undo_lost(
        self, ranks: Mapping[int, RankProcess], seconds: float, then: Callable[[AgentExecution], None]
    ) -> None:
        """Undo `lost` on the living ranks, and call `then` with the undo, before any other cell can begin.

        Raises:
            JupyterDistError: `cannot_undo`, if no rank died in a cell that kept undo, other cells ran since, or a rank
                could not undo it; `timed_out`; what `then` raises. What was undone is done again.
        """
        if not (cells := self.lost(ranks)):
            message = say(
                "No cell in which a rank died can be undone: it kept no undo, or the rank died between cells."
            )
            raise JupyterDistError("cannot_undo", message, say("Replace it with state='copy' or 'save', or empty."))
        living = RankSet(number for number, rank in ranks.items() if rank.state != "dead")
        undo = self._queue_both("undo", f"e-{uuid.uuid4().hex}", cells, living)
        why: JupyterDistError | None = JupyterDistError(
            "timed_out", say("The cell was not undone within %1 s.", f"{seconds:g}")
        )
        redo: AgentExecution | None = None

        def proceed() -> None:
            nonlocal why, redo
            why = None if undo.state == "ok" else undo.error or JupyterDistError("cannot_undo", undo.refusal)
            if undo.state == "ok":
                try:
                    then(undo)
                except JupyterDistError as err:
                    why = err
                except Exception as err:  # an internal error: the cell must not stay undone
                    log.exception("Cannot go on after an undo")
                    why = JupyterDistError("internal", say("The agent failed: %1", failure_of(err)))
            if why is not None and undo.started_at is not None:
                redo = self._begin_again(ranks, undo)

        if not await self._is_ended(undo, seconds, proceed):
            self._dispatcher.cancel(undo)
            self._waited[undo.id] = lambda: undo.state == "ok" and self._begin_again(ranks, undo)  # it was running
        if redo is not None:
            await self._is_ended(redo, seconds)
        if why is not None:
            raise why

    async def redo_lost(self, ranks: Mapping[int, RankProcess], undo: AgentExecution, seconds: float) -> bool:
        """Do again what `undo_lost` has undone, while no cell may begin; return whether all living ranks have."""
        redo = self._begin_again(ranks, undo)
        await self._is_ended(redo, seconds)
        return redo.state == "ok"

    def _begin_again(self, ranks: Mapping[int, RankProcess], undo: AgentExecution) -> AgentExecution:
        """Do the cells of an undo again on its ranks that live, before anything else; return the execution."""
        cells = [self._queue.get(execution_id) for execution_id in (undo.spec.call or {})["executions"]]
        living = RankSet(number for number in undo.spec.ranks if ranks[number].state != "dead")
        redo = ExecutionSpec(f"{undo.id}-back", living, silent=True, call=_call("redo", cells, only_check=False))
        self._undoing[redo.execution_id] = cells
        return self._dispatcher.run_first(AgentExecution(redo, f"# redo {_names(cells)}".encode()))

    async def _is_ended(self, execution: AgentExecution, seconds: float, on_end: Callable[[], Any] = bool) -> bool:
        """Wait until an execution has ended, and call a function then; return False if it has not within the time."""
        if execution.is_final:
            on_end()
            return True
        ended = asyncio.Event()

        def finish() -> None:
            try:
                on_end()
            finally:
                ended.set()

        self._waited[execution.id] = finish
        with contextlib.suppress(asyncio.TimeoutError):
            await within(seconds, ended.wait())
        self._waited.pop(execution.id, None)
        return execution.is_final

    def begin(
        self,
        ranks: Mapping[int, RankProcess],
        do: str,
        execution_id: str,
        count: int | None,
        executions: Sequence[str] | None,
    ) -> AgentExecution:
        """Queue the undo or the redo of the last cells, or of the named ones; return its execution.

        Raises:
            JupyterDistError: `cannot_undo`, `unknown_execution`, and as Dispatcher.submit.
        """
        if (known := self._queue.find(execution_id)) is not None:
            return known  # a retry: the first answer was lost
        choose = {"undo": (self._named, self._last), "redo": (self._named_undone, self._next)}[do]
        cells = choose[0](executions) if executions else choose[1](ranks, count or 1)
        return self._queue_both(do, execution_id, cells, RankSet(ranks))

    def _queue_both(self, do: str, execution_id: str, cells: list[AgentExecution], among: RankSet) -> AgentExecution:
        """Queue the check and, behind it, the undo or redo; return that."""
        chosen = RankSet(rank for cell in cells for rank in cell.spec.ranks if rank in among)
        note = f"# {do} {_names(cells)}".encode()
        check = ExecutionSpec(f"{execution_id}-check", chosen, silent=True, call=_call(do, cells, only_check=True))
        undo = ExecutionSpec(
            execution_id, chosen, silent=True, after=check.execution_id, call=_call(do, cells, only_check=False)
        )
        self._undoing[execution_id] = cells
        try:
            self._dispatcher.submit(AgentExecution(check, note))
            return self._dispatcher.submit(AgentExecution(undo, note))
        except BaseException:
            self._undoing.pop(execution_id, None)
            raise

    def _last(self, ranks: Mapping[int, RankProcess], count: int) -> list[AgentExecution]:
        found = self.undoable(ranks)
        if len(found) < count:
            running = [one for one in self._queue if keeps_undo(one) and not one.is_final]
            if not found and running:
                message = say("No cell can be undone yet: %1 is %2.", _name(running[0]), say(running[0].state))
                raise JupyterDistError("cannot_undo", message, say("Wait until it ends, or interrupt it."))
            message = say("No cell can be undone: others kept no state, or no longer.")
            if found:
                message = say_n(
                    "%1 cell can be undone, not %2: others kept no state, or no longer.",
                    "%1 cells can be undone, not %2: others kept no state, or no longer.",
                    len(found),
                    count,
                )
            raise JupyterDistError("cannot_undo", message, _HINT)
        return found[:count]

    def _named(self, executions: Sequence[str]) -> list[AgentExecution]:
        cells = [self._queue.get(execution_id) for execution_id in dict.fromkeys(executions)]
        for cell in cells:
            if cell.undone_at is not None:
                raise JupyterDistError("cannot_undo", say("%1 has been undone.", _name(cell, at_start=True)))
            if not cell.is_final:
                message = say("%1 is %2.", _name(cell, at_start=True), say(cell.state))
                raise JupyterDistError("cannot_undo", message, say("Wait until it ends, or interrupt it."))
            if not keeps_undo(cell) or cell.begin_seq is None:
                raise JupyterDistError("cannot_undo", say("%1 did not keep undo.", _name(cell, at_start=True)), _HINT)
        return sorted(cells, key=_began, reverse=True)

    def _next(self, ranks: Mapping[int, RankProcess], count: int) -> list[AgentExecution]:
        found = self.redoable(ranks)
        if len(found) < count:
            message = say("No undone cell can be done again.")
            if found:
                message = say_n(
                    "%1 undone cell can be done again, not %2.",
                    "%1 undone cells can be done again, not %2.",
                    len(found),
                    count,
                )
            raise JupyterDistError(
                "cannot_undo", message, say("It is possible until a cell runs that changes something.")
            )
        return found[:count]

    def _named_undone(self, executions: Sequence[str]) -> list[AgentExecution]:
        cells = [self._queue.get(execution_id) for execution_id in dict.fromkeys(executions)]
        for cell in cells:
            if cell.undone_at is None:
                raise JupyterDistError("cannot_undo", say("%1 is not undone.", _name(cell, at_start=True)))
        return sorted(cells, key=_began)

    def ended(self, execution: AgentExecution) -> None:
        """Handle the end of an execution, before another one begins: note which cells it has undone or done again."""
        cells = self._undoing.pop(execution.id, [])
        try:
            for cell in cells if execution.state == "ok" else ():
                is_undo = (execution.spec.call or {}).get("do") == "undo"
                self._dispatcher.count_no_more(cell, time.time() if is_undo else None)
        finally:
            if (waited := self._waited.pop(execution.id, None)) is not None:
                waited()


def _call(do: str, cells: Sequence[AgentExecution], *, only_check: bool) -> dict[str, Any]:
    return {
        "do": do,
        "executions": {cell.id: str(cell.spec.ranks) for cell in cells},
        "sentence": f"{'Undone' if do == 'undo' else 'Done again'}: {_names(cells)}.",
        "only_check": only_check,
        "refused": "cannot_undo",  # the code of the error of what waits for it
    }


def _began(execution: AgentExecution) -> int:
    return execution.begin_seq or 0


def _keep(
    ranks: Mapping[int, RankProcess],
    execution: AgentExecution,
    *,
    is_undone: bool = False,
    among: Container[int] | None = None,
) -> bool:
    known = (_kept(ranks.get(rank)) for rank in execution.spec.ranks if among is None or rank in among)
    return all(execution.id in (one.undone if is_undone else one.executions) for one in known)


def _kept(rank: RankProcess | None) -> RankKept:
    return NOTHING if rank is None else rank.known.get(NAME, NOTHING)


def _name(cell: AgentExecution, *, at_start: bool = False) -> Sentence:
    if not cell.execution_count:
        return say("Cell without a number") if at_start else say("cell without a number")
    return say("Cell [%1]", cell.execution_count) if at_start else say("cell [%1]", cell.execution_count)


def _names(cells: Sequence[AgentExecution]) -> str:
    """Return how users call these cells."""
    numbers = [f"[{cell.execution_count}]" if cell.execution_count else "without a number" for cell in cells]
    return f"cell{'s' if len(cells) > 1 else ''} {', '.join(numbers)}"


def _model(execution: AgentExecution) -> models.UndoableCell:
    cost: models.UndoCost | None = execution.added(NAME)
    return {
        "execution_id": execution.id,
        "execution_count": execution.execution_count,
        "ranks": str(execution.spec.ranks),
        "cell_id": execution.spec.cell_id,
        "notebook": execution.spec.notebook,
        "line": execution.line,
        "cost": cost or {"bytes": 0, "milliseconds": 0.0, "not_kept": []},
    }
