"""`exec` and `run`: code on ranks."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jupyter_dist.cli import torchrun
from jupyter_dist.cli.command import (
    Command,
    add_group_argument,
    add_ranks_argument,
)
from jupyter_dist.cli.signals import ending_on_signals
from jupyter_dist.client import Group, JupyterDistError, Result
from jupyter_dist.client.answers.infos import InputPromptInfo
from jupyter_dist.client.blocking.asking import ask_user
from jupyter_dist.client.displays.growing import nothing
from jupyter_dist.client.displays.live import RankDisplay, TextDisplay
from jupyter_dist.client.startoptions import add_start_options
from jupyter_dist.protocol.wire import requests
from jupyter_dist.system.terminal import for_terminal

from .groups import HERE, start_fields

# How long the other ranks may run after the script has failed on one: they often fail as well, and print why.
OTHERS_SECONDS = 3.0


def add_cell_arguments(parser: argparse.ArgumentParser) -> None:
    """Add arguments for the ranks of a cell and the form of its output."""
    add_ranks_argument(parser)
    parser.add_argument("--per-rank", action="store_true", help="label each rank's lines, do not fold output")


class CellCommand(Command):
    """Runs a cell, and exits with its outcome."""

    def run_cell(self, group: Group, code: str, **fields: Any) -> int:
        """Stream the output of the ranks; return 0 if all succeeded."""
        show: Callable[[Result], None] = self.display(group)
        is_attended = not self.options.json and sys.stdin.isatty() and sys.stdout.isatty()
        result = group.run(code, self.options.ranks, stream=show, ask=ask_terminal if is_attended else False, **fields)
        if self.options.json:
            self.tell(_content(result), "")
        return 0 if result.ok else 1

    def display(self, group: Group) -> Callable[[Result], None]:
        """Return the display that shows the output while it grows."""
        if self.options.json:
            return lambda _: None
        return (RankDisplay if self.options.per_rank else TextDisplay)(sys.stdout, self.hidden)

    def hidden(self, rank: int) -> frozenset[str]:
        """Return the streams of a rank that are not shown."""
        return nothing(rank)


def ask_terminal(question: InputPromptInfo) -> str | None:
    """Ask at the terminal; a prompt of a rank may only have text and colors."""
    return ask_user(InputPromptInfo({**question.model, "prompt": for_terminal(question.prompt)}))


class ExecCommand(CellCommand):
    """Run code on a group's ranks and print its output."""

    needs_groups = True

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the group, the ranks and the code."""
        add_group_argument(parser, positional=False)
        add_cell_arguments(parser)
        parser.add_argument("code", help="Python code, or any other cell content; - reads it from stdin")

    def act(self) -> int:
        """Run the code until it ends."""
        code = sys.stdin.read() if self.options.code == "-" else self.options.code
        return self.run_cell(self.client.attach(self.options.group), code)


class RunCommand(CellCommand):
    """Run a script on a new group, like torchrun, or on a running one."""

    starts_group = True

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the script with its arguments, and the group."""
        add_group_argument(parser, positional=False, text="run on this group instead, and keep it")
        add_cell_arguments(parser)
        add_start_options(parser, texts=HERE)
        torchrun.add_torchrun_arguments(parser)
        parser.add_argument("script")
        parser.add_argument("args", nargs=argparse.REMAINDER, help="the script's own arguments; after -- all of them")

    def parse_command_line(self, argv: Any = None) -> None:
        """Parse like torchrun: arguments after the script belong to it, except the options that select ranks."""
        words = list(sys.argv[1:] if argv is None else argv)
        end = words.index("--") if "--" in words else len(words)
        super().parse_command_line(words[:end])
        options = self.options
        if all(getattr(options, name) is None for name in ("group", "devices", "num_ranks", "nproc_per_node")):
            shape, options.args = _shape(options.args)
            vars(options).update(shape)
        options.args += words[end + 1 :]

    def act(self) -> int:
        """Run the script until it ends; a new group ends with it."""
        options = self.options
        torchrun.check(options)
        self._logs = torchrun.RankLogs(options)
        self._call = script_call(options.script, options.args, is_module=options.module)
        if options.group is not None:
            return self._run(self.client.attach(options.group))
        fields = start_fields(options) | torchrun.start_fields(options, self.client)
        with ending_on_signals():
            # If this process is killed, or ends before the start has been answered, the group ends by itself.
            group = self.client.start(f"run-{os.getpid()}", grace_seconds=0, **fields)
            try:
                return self._run(group)
            finally:
                group.shutdown()

    def display(self, group: Group) -> Callable[[Result], None]:
        """Return the display of all cells, which also stops a script on the other ranks when it has failed on one."""
        return StopOthers(group, super().display(group))

    def hidden(self, rank: int) -> frozenset[str]:
        """Return the streams of a rank that go to files only, or are filtered."""
        return self._logs.hidden(rank)

    def _run(self, group: Group) -> int:
        """Run the script, again as often as --max-restarts allows; write the logs."""
        note = " ".join(f"# script {shlex.join(self._call['argv'])}".splitlines())
        attempts = 0
        try:
            while True:
                attempts += 1
                status = self.run_cell(group, note, call=self._call)
                left = self.options.max_restarts + 1 - attempts
                if status == 0 or left <= 0:
                    return status
                print(f"The script failed: restarting all ranks ({left} restarts left).", file=sys.stderr)
                group.restart()
        finally:
            self._logs.write(group, note, attempts)


def _shape(arguments: list[str]) -> tuple[dict[str, Any], list[str]]:
    """Split `--devices 0,1` and `--num-ranks 2` from a script's other arguments."""
    parser = argparse.ArgumentParser("jupyter dist run", add_help=False, allow_abbrev=False)
    add_start_options(parser, ("num_ranks", "devices"), short=False)
    found, rest = parser.parse_known_args(arguments)
    shape = {name: value for name, value in vars(found).items() if value is not None}
    for name in shape:
        option = f"--{name.replace('_', '-')}"
        print(f"{option} selects the ranks; to pass it to the script, write -- before it.", file=sys.stderr)
    return shape, rest


def script_call(script: str, arguments: list[str], *, is_module: bool) -> requests.RankCall:
    """Return the call that runs a script or a module."""
    if is_module:
        return {"do": "script", "argv": [script, *arguments], "module": script}
    path = Path(script).resolve()
    if not path.is_file():
        raise JupyterDistError("bad_request", f"There is no script '{script}'.")
    return {"do": "script", "argv": [script, *arguments], "path": str(path)}


class StopOthers:
    """A display that interrupts the other ranks when the script has failed on one, as torchrun ends them."""

    def __init__(self, group: Group, display: Callable[[Result], None]) -> None:
        self._group, self._display = group, display
        self._timer: threading.Timer | None = None

    def __call__(self, result: Result) -> None:
        """Show the result, and watch for a failure."""
        self._display(result)
        states = {status["status"] for status in result.execution["statuses"]}
        if self._timer is None and not result.done and states & {"error", "lost"}:
            self._timer = threading.Timer(OTHERS_SECONDS, self._stop)
            self._timer.daemon = True
            self._timer.start()
        if self._timer is not None and result.done:
            self._timer.cancel()

    def _stop(self) -> None:
        with contextlib.suppress(JupyterDistError):  # the execution has ended
            self._group.interrupt()


def _content(result: Result) -> dict[str, object]:
    return {"execution": result.execution, "items": result.folded}
