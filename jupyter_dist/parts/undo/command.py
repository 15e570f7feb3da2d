"""`undo` and `redo`."""

from __future__ import annotations

import argparse

from jupyter_dist.cli.command import Command, add_group_argument
from jupyter_dist.client import Result


class UndoCommand(Command):
    """Undo the last cells that kept undo, on all ranks that ran them. Files, prints and the network are not undone."""

    needs_groups = True

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the group, and which cells."""
        add_group_argument(parser, positional=False)
        parser.add_argument("count", nargs="?", type=int, default=1, help="how many cells (1)")
        parser.add_argument("--execution", action="append", help="this execution instead; may be repeated")

    def act(self) -> int:
        """Undo the cells."""
        return self._tell(self.client.attach(self.options.group).undo(self.options.count, self.options.execution))

    def _tell(self, result: Result) -> int:
        self.tell({"execution": result.execution}, result.text)
        return 0


class RedoCommand(UndoCommand):
    """Give variables what undone cells had left in them, until a cell has changed something. No code runs."""

    def act(self) -> int:
        """Do the cells again."""
        return self._tell(self.client.attach(self.options.group).redo(self.options.count, self.options.execution))
