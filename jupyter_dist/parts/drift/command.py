"""`drift` and `catch-up`: which cells ranks have missed."""

from __future__ import annotations

import argparse
import sys
import textwrap

from jupyter_dist.cli.command import Command, add_group_argument
from jupyter_dist.client import Group, JupyterDistError
from jupyter_dist.client.displays.live import TextDisplay
from jupyter_dist.parts.drift.client.results import CaughtUp, Step
from jupyter_dist.protocol.errors import bad_request
from jupyter_dist.protocol.ranks import EXAMPLES, RankSet, ranks_in


class DriftCommand(Command):
    """Show which version of which cell ran on which ranks since the last restart; * marks what is offered."""

    needs_groups = True

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """The group."""
        add_group_argument(parser)

    def act(self) -> int:
        """Print the cells once."""
        found = self.client.attach(self.options.group).drift()
        self.tell(found.model, repr(found))
        return 0


class CatchUpCommand(Command):
    """Run on replaced ranks the cells that they have missed, after asking; stops at the first that fails.

    A cell that needs all ranks is not run, nor are cells that use its names: they are listed, and the status is 1.
    """

    needs_groups = True

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """The group, and what to send to which ranks."""
        add_group_argument(parser)
        parser.add_argument("-r", "--ranks", default="all", help=f"only these: {EXAMPLES} (all)")
        cell_help = "only the cell with this number, also on ranks that it was not sent to"
        parser.add_argument("-c", "--cell", type=int, action="append", help=cell_help)
        parser.add_argument("-y", "--yes", action="store_true", help="do not ask")

    def act(self) -> int:
        """List the cells, ask, and run them."""
        group = self.client.attach(self.options.group)
        steps = self._chosen(group)
        if not steps:
            self.tell({"executions": []}, f"No rank of '{group.name}' has missed a cell.")
            return 0
        if not self.options.yes:
            self._ask(steps)
        return self._run(group, steps)

    def _chosen(self, group: Group) -> list[Step]:
        found, numbers = group.drift(), self.options.cell
        steps = found.offered
        if numbers is not None:
            steps = [step for step in found.missed if step.cell.execution_count in numbers]
            unknown = set(numbers) - {step.cell.execution_count for step in steps}
            if unknown:
                message = f"No rank has missed a cell [{min(unknown)}]."
                raise bad_request(message, f"See jupyter dist drift {group.name}.")
        wanted = ranks_in(group.model, self.options.ranks)
        parts = [(step, str(wanted & RankSet.from_text(step.ranks))) for step in steps]
        return [Step(step.cell, ranks, step.reason, step.code) for step, ranks in parts if ranks]

    def _ask(self, steps: list[Step]) -> None:
        if self.options.json or not sys.stdin.isatty():
            raise bad_request("There is no terminal to ask at.", "Look with jupyter dist drift, then add --yes.")
        for step in steps:
            print(f"{step}\n{textwrap.indent(step.code.strip(), '    ')}")
        if input(f"Run {_cells(len(steps))}? [y/N] ").strip().lower() not in ("y", "yes"):
            raise JupyterDistError("cancelled", "Nothing was sent.")

    def _run(self, group: Group, steps: list[Step]) -> int:
        found = CaughtUp()
        for step in found.runnable(steps):
            show = False if self.options.json else TextDisplay(sys.stdout)
            try:
                result = group.run(step.code, step.ranks, stream=show, ask=False, ask_first=True)
            except JupyterDistError as err:
                if err.code != "needs_all_ranks":
                    raise JupyterDistError(err.code, f"Stopped at {step}: {err.message}", err.hint) from err
                found.refused(step, err)
                continue
            found.append(result)
            if not result.ok:
                said = f"Stopped at {step}: {result.state}. Not run: {_cells(len(steps) - len(found))}."
                return self._tell(found, "\n".join([said, *map(str, found.not_run)]), stopped=said)
        return self._tell(found, repr(found))

    def _tell(self, found: CaughtUp, text: str, **more: str) -> int:
        not_run = [{"execution_id": one.step.cell.execution_id, "why": one.why} for one in found.not_run]
        self.tell({"executions": [one.id for one in found], "not_run": not_run, **more}, text)
        return 1 if more or not_run else 0


def _cells(number: int) -> str:
    return f"{number} cell{'' if number == 1 else 's'}"
