"""`pace`: why a cell is slow, and where its time goes."""

from __future__ import annotations

import argparse

from jupyter_dist.cli.command import Command, add_group_argument
from jupyter_dist.client.results.pacetext import pace_text


class PaceCommand(Command):
    """Show why a cell is slow, and where its time goes by rank, by line and by step, also while it runs."""

    needs_groups = True

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """The group and the cell."""
        add_group_argument(parser)
        parser.add_argument("-e", "--execution", help="id of an execution (default: the last one that began)")

    def act(self) -> int:
        """Print the pace once."""
        found = self.client.attach(self.options.group).pace(self.options.execution)
        self.tell(found.model, pace_text(found.model))
        return 0
