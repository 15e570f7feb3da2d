"""Undone cells, which can be done again until a cell changes something: the state after them is written back."""

from __future__ import annotations

from collections.abc import Sequence

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.wire.places import cut
from jupyter_dist.rank.collectives import torch_compat

from .kept import NO_ROOM, Held, KeptCell, check_known, no_collections, obstacle_of
from .states.memory import MemoryState


class UndoneCells:
    """The cells that were undone, the last one of which is the first to be done again."""

    def __init__(self, held: Held) -> None:
        self.cells: list[KeptCell] = []
        self._held = held
        self._reasons: dict[str, str] = {}  # why cells cannot be done again, by execution

    def drop(self, reason: str) -> None:
        """Forget the undone cells, with the reason."""
        while self.cells:
            cell = self.cells.pop()
            self._held.release(cell.mementos + cell.after)
            self._reasons[cell.execution_id] = reason

    def take(self, cell: KeptCell, max_bytes: int) -> str | None:
        """Keep the state after a cell, before it is undone; return the reason if that is not possible."""
        if torch_compat.dispatch_modes() != cell.modes:
            return "It has left a mode of torch on, or ended one."
        with no_collections(), torch_compat.without_dispatch_modes():
            changed = [(key, one) for key, one in cell.mementos if one.differs()]
            needed = sum(one.size_now() for _, one in changed if isinstance(one, MemoryState))
            if self._held.num_bytes + needed > max_bytes:
                return NO_ROOM
            try:
                cell.after = [(key, one.now()) for key, one in changed]
            except MemoryError:
                return "There was not enough memory to keep what it had left."
            except Exception as err:  # of an object that no rule foresees: the cell is undone all the same
                return cut(f"What it had left could not be kept: {type(err).__name__}: {err}", 300)
        for _, one in cell.after:
            self._held.hold(one)
        return None

    def chosen(self, executions: Sequence[str]) -> list[KeptCell]:
        """Return the undone cells to do again, in their order, with requests after them.

        Raises:
            JupyterDistError: `cannot_undo`, if something has changed since. Nothing has been changed.
        """
        wanted = set(executions)
        check_known(wanted, self.cells, self._reasons, ("done again", "undo"), "Run the cell again.")
        first = min(n for n, cell in enumerate(self.cells) if cell.execution_id in wanted)
        while first and self.cells[first - 1].is_silent:
            first -= 1
        chosen = self.cells[first:][::-1]
        if any(not cell.is_silent and cell.execution_id not in wanted for cell in chosen):
            raise JupyterDistError(
                "cannot_undo", say("Cells before it are undone."), say("Do these again first, or with it.")
            )
        for cell in chosen:
            if (obstacle := obstacle_of(cell.after)) is not None:
                message = say("The cell cannot be done again: %1.", obstacle)
                raise JupyterDistError("cannot_undo", message, say("Run the cell again."))
        return chosen
