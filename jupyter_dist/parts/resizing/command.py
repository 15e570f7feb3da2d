"""The command that resizes a group."""

from __future__ import annotations

import argparse

from jupyter_dist.cli.command import Command, add_group_argument

from .text import resized_text

OTHERS = "names that ranks do not have alike: refuse to resize, let new ranks lack them, or copy the ones of rank 0"


class ResizeCommand(Command):
    """Change the number of a group's ranks; ranks that stay keep their processes and variables."""

    needs_groups = True

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the number of ranks, and the group."""
        parser.add_argument("num_ranks", type=int, help="how many ranks there are to be")
        parser.add_argument("--others", choices=("refuse", "keep", "copy"), default="refuse", help=OTHERS)
        add_group_argument(parser, positional=False)

    def act(self) -> int:
        """Resize the group, and print what cells must make again."""
        group = self.client.attach(self.options.group).resize(self.options.num_ranks, others=self.options.others)
        self.tell(group.model, resized_text(group.model))
        return 0
