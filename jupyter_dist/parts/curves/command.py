"""`curves`: numbers with a name that recur in what ranks printed."""

from __future__ import annotations

import argparse
import sys

from jupyter_dist.cli.command import Command, add_group_argument


class CurvesCommand(Command):
    """Show the curves of a cell, such as the loss of a training loop: one line each, or every number as CSV."""

    needs_groups = True

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """The group, the cell and the form."""
        add_group_argument(parser)
        parser.add_argument("-e", "--execution", help="id of an execution (default: the last one that began)")
        parser.add_argument("--csv", action="store_true", help="print every number as comma-separated values")

    def act(self) -> int:
        """Print the curves once, also while the cell runs."""
        group = self.client.attach(self.options.group)
        if self.options.csv and not self.options.json:
            sys.stdout.write(group.curves_csv(self.options.execution))
            return 0
        found = group.curves(self.options.execution)
        self.tell(found.model, repr(found))
        return 0
