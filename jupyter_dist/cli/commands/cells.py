"""`exec` and `run`: code on ranks."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from jupyter_dist.cli.command import Command, add_shape_arguments, add_start_arguments
from jupyter_dist.client import Group, JupyterDistError, Result
from jupyter_dist.client.results.display import RankDisplay, TextDisplay

from .groups import start_fields

# As in torchrun: the script is __main__, its folder comes first on sys.path, and sys.exit(0) is a success.
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


def add_cell_arguments(parser: argparse.ArgumentParser) -> None:
    """Add arguments for the ranks of a cell and the form of its output."""
    parser.add_argument("-r", "--ranks", default="all", help="all, 0, 0-3,7, ::2, !0 (all)")
    parser.add_argument("--per-rank", action="store_true", help="label each rank's lines, do not fold output")


class CellCommand(Command):
    """Runs one cell and exits with its outcome."""

    def run_cell(self, group: Group, code: str) -> int:
        """Stream the output of the ranks; return 0 if all succeeded."""
        display = RankDisplay if self.options.per_rank else TextDisplay
        result = group.run(code, self.options.ranks, stream=False if self.options.json else display(sys.stdout))
        if self.options.json:
            self.tell(_content(result), "")
        return 0 if result.ok else 1


class Exec(CellCommand):
    """Run code on a group's ranks and print its output."""

    word = "exec"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """The group, the ranks, the code."""
        parser.add_argument("-g", "--group", help="name or id (default: the only running one)")
        add_cell_arguments(parser)
        parser.add_argument("code", help="Python code, or any other cell content; - reads it from stdin")

    def act(self) -> int:
        """Run the code until it ends."""
        code = sys.stdin.read() if self.options.code == "-" else self.options.code
        return self.run_cell(self.client.attach(self.options.group), code)


class Run(CellCommand):
    """Run a script on a new group, like torchrun, or on a running one."""

    word = "run"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """The script with its arguments, and the group."""
        parser.add_argument("-g", "--group", help="run on this group instead, and keep it")
        add_cell_arguments(parser)
        add_start_arguments(parser)
        parser.add_argument("script")
        parser.add_argument("args", nargs=argparse.REMAINDER, help="the script's own arguments; after -- all of them")

    def parse_command_line(self, argv: Any = None) -> None:
        """Like in torchrun, arguments after the script belong to the script, except for those that select the ranks."""
        words = list(sys.argv[1:] if argv is None else argv)
        end = words.index("--") if "--" in words else len(words)
        super().parse_command_line(words[:end])
        options = self.options
        if options.group is None and options.devices is None and options.num_ranks is None:
            shape, options.args = _shape(options.args)
            vars(options).update(shape)
        options.args += words[end + 1 :]

    def act(self) -> int:
        """Run the script until it ends; a new group ends with it."""
        code = script_code(self.options.script, self.options.args)
        if self.options.group is not None:
            return self.run_cell(self.client.attach(self.options.group), code)
        group = self.client.start(f"run-{os.getpid()}", **start_fields(self.options))
        try:
            return self.run_cell(group, code)
        finally:
            group.shutdown()


def _shape(arguments: list[str]) -> tuple[dict[str, Any], list[str]]:
    """Split `--devices 0,1` and `--num-ranks 2` from a script's other arguments."""
    parser = argparse.ArgumentParser("jupyter dist run", add_help=False, allow_abbrev=False)
    add_shape_arguments(parser, short=False)
    found, rest = parser.parse_known_args(arguments)
    shape = {name: value for name, value in vars(found).items() if value is not None}
    for name in shape:
        option = f"--{name.replace('_', '-')}"
        print(f"{option} selects the ranks; to pass it to the script, write -- before it.", file=sys.stderr)
    return shape, rest


def script_code(script: str, arguments: list[str]) -> str:
    """Return the cell that runs a script."""
    path = Path(script).resolve()
    if not path.is_file():
        raise JupyterDistError("bad_request", f"There is no script '{script}'.")
    return SCRIPT.format(argv=[script, *arguments], folder=str(path.parent), path=str(path))


def _content(result: Result) -> dict[str, object]:
    return {"execution": result.execution, "items": result.folded}
