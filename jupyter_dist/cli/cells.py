"""`exec` and `run`: code on ranks."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from jupyter_dist.client import Group, JupyterDistError, Result
from jupyter_dist.client.display import TextDisplay

from .command import Command, add_start_arguments
from .groups import start_fields

# What torchrun does: the script is __main__, its folder comes first on the path, sys.exit(0) is a success.
SCRIPT = """
import runpy, sys
sys.argv[:] = {argv!r}
sys.path.insert(0, {folder!r})
try:
    runpy.run_path({path!r}, run_name="__main__")
except SystemExit as stop:
    if stop.code not in (None, 0):
        raise
"""


class CellCommand(Command):
    """Runs one cell and ends with its outcome."""

    def run_cell(self, group: Group, code: str) -> int:
        """Show what the ranks say as they say it; 0 if all succeeded."""
        result = group.run(code, self.options.ranks, stream=False if self.options.json else TextDisplay(sys.stdout))
        if self.options.json:
            self.tell(_content(result), "")
        return 0 if result.ok else 1


class Exec(CellCommand):
    """Run code on a group's ranks, and print what they say."""

    word = "exec"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """The group, the ranks, the code."""
        parser.add_argument("-g", "--group", help="name or id (the only one that lives)")
        parser.add_argument("-r", "--ranks", default="all", help="all, 0, 0-3,7, ::2, !0 (all)")
        parser.add_argument("code", help="Python, or anything that a cell can be; - reads it from the input")

    def act(self) -> int:
        """Run it to its end."""
        code = sys.stdin.read() if self.options.code == "-" else self.options.code
        return self.run_cell(self.client.attach(self.options.group), code)


class Run(CellCommand):
    """Run a script on a group of its own, as torchrun would, or on one that lives."""

    word = "run"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """The script with its arguments, and the group."""
        parser.add_argument("-g", "--group", help="run on this group instead, and leave it")
        parser.add_argument("-r", "--ranks", default="all")
        add_start_arguments(parser)
        parser.add_argument("script")
        parser.add_argument("args", nargs=argparse.REMAINDER, help="the script's own arguments")

    def act(self) -> int:
        """Run it to its end; a group of its own ends with it."""
        self._note_misplaced()
        code = script_code(self.options.script, self.options.args)
        if self.options.group is not None:
            return self.run_cell(self.client.attach(self.options.group), code)
        group = self.client.start(f"run-{os.getpid()}", **start_fields(self.options))
        try:
            return self.run_cell(group, code)
        finally:
            group.shutdown()

    def _note_misplaced(self) -> None:
        """As with torchrun, what stands behind the script is the script's: it may have --devices of its own."""
        named = {argument.partition("=")[0] for argument in self.options.args} & {"--devices", "--num-ranks"}
        if named and self.options.devices is None and self.options.num_ranks is None:
            print(f"{min(named)} goes to the script; for the ranks, write it before the script.", file=sys.stderr)


def script_code(script: str, arguments: list[str]) -> str:
    """The cell that runs a script."""
    path = Path(script).resolve()
    if not path.is_file():
        raise JupyterDistError("bad_request", f"There is no script '{script}'.")
    return SCRIPT.format(argv=[script, *arguments], folder=str(path.parent), path=str(path))


def _content(result: Result) -> dict[str, object]:
    return {"execution": result.execution, "items": result.folded}
