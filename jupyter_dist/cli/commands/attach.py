"""`attach`: a prompt whose cells run on ranks."""

from __future__ import annotations

import argparse
import sys

from jupyter_dist.cli.command import add_group_argument, shown
from jupyter_dist.cli.prompt import cells
from jupyter_dist.client import Group, JupyterDistError
from jupyter_dist.client.answers.cursor import at_cursor
from jupyter_dist.protocol.ranks import RankSet, ranks_in

from .cells import CellCommand, add_cell_arguments

# After these errors the next cell cannot run, either.
ENDS = ("unknown_group", "server_gone")


class AttachCommand(CellCommand):
    """A prompt that runs cells on a group's ranks. Ctrl-C interrupts the ranks, Ctrl-D detaches."""

    needs_groups = True

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the group and its ranks."""
        add_group_argument(parser)
        add_cell_arguments(parser)

    def act(self) -> int:
        """Run cells until Ctrl-D; errors of ranks are shown as output."""
        group = self.client.attach(self.options.group)
        ranks = str(ranks_in(group.model, self.options.ranks))
        if sys.stdin.isatty():
            print(f"{shown(group)}. Ctrl-C interrupts the ranks, Ctrl-D detaches.")
        first = RankSet.from_text(ranks)[0]
        prompt = f"{group.name} {ranks}> "
        for cell in cells(prompt, lambda code, at: completions(group, first, code, at), lambda: recalled(group)):
            if not self._run(group, cell):
                return 1
        if sys.stdin.isatty():
            print(f"Group '{group.name}' keeps running. To return: jupyter dist attach {group.name}")
        return 0

    def _run(self, group: Group, cell: str) -> bool:
        try:
            self.run_cell(group, cell)
        except KeyboardInterrupt:
            pass  # the ranks have stopped, and reported the interrupt
        except JupyterDistError as err:
            print(err, file=sys.stderr)
            return err.code not in ENDS
        return True


def completions(group: Group, rank: int, code: str, position: int) -> tuple[list[str], int]:
    """Return a rank's completions at the cursor, and where they start; none if the rank does not answer."""
    try:
        answer = at_cursor(group, "complete_request", rank, code, position)
    except JupyterDistError:
        answer = None
    return (answer["matches"], answer["cursor_start"]) if answer is not None else ([], position)


def recalled(group: Group) -> list[str]:
    """Return the code of the cells that ran on the group, oldest first; none if its server does not answer."""
    try:
        return [cell.code for cell in group.history()]
    except JupyterDistError:
        return []
