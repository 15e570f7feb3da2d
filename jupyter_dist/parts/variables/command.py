"""`memory` and `compare`: what holds the memory of ranks, and in what a variable differs."""

from __future__ import annotations

import argparse

from jupyter_dist.cli.command import Command, add_group_argument, add_ranks_argument

_STATUSES = {"equal": 0, "differs": 1, "not_compared": 3}


class MemoryCommand(Command):
    """Show the holders of the memory of ranks: variables, results and the last traceback, the largest first."""

    needs_groups = True

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """The group and the ranks."""
        add_group_argument(parser)
        add_ranks_argument(parser)

    def act(self) -> int:
        """Print the list once."""
        found = self.client.attach(self.options.group).variables(self.options.ranks).holders
        self.tell(found.models, repr(found))
        return 0


class CompareCommand(Command):
    """Show how a variable differs between ranks, and by how much.

    The exit status is 0 if everything is equal, 1 if something differs, and 3 if nothing that was compared differs,
    but some was not compared.
    """

    needs_groups = True

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """The variable, the group and the ranks."""
        add_group_argument(parser, positional=False)
        add_ranks_argument(parser)
        parser.add_argument("name", help="a variable or a part of it: model, model.weight, states[0]")

    def act(self) -> int:
        """Print the comparison once."""
        found = self.client.attach(self.options.group).compare(self.options.name, self.options.ranks)
        self.tell(found.model, repr(found))
        return _STATUSES[found.outcome]
