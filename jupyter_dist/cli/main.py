"""`jupyter dist`: runs a command, or lists the commands."""

from __future__ import annotations

import argparse
import difflib
import sys
from typing import Any

from jupyter_core.application import JupyterApp

from jupyter_dist.cli.listing import COMMANDS
from jupyter_dist.cli.words import complete, typed_words
from jupyter_dist.version import __version__


class DistCommands(JupyterApp):
    """Groups of torch.distributed ranks from a shell; see `jupyter dist COMMAND --help`."""

    name = "jupyter-dist"
    version = __version__
    description = __doc__
    subcommands = {  # noqa: RUF012  (a trait's default)
        name: (command.path, command.text) for name, command in COMMANDS.items()
    }

    def parse_command_line(self, argv: Any = None) -> None:
        """Called by JupyterApp: leave the command line to the command that it names."""
        words = typed_words()
        if words is not None and (not words or words[0] not in COMMANDS):
            parser = argparse.ArgumentParser(self.name)
            parser.add_argument("command", choices=COMMANDS)
            complete(parser)
        super().parse_command_line(argv if words is None else words)

    def start(self) -> None:
        """Run the command, or list the commands."""
        super().start()
        if word := next((word for word in self.extra_args if not word.startswith("-")), None):
            near = difflib.get_close_matches(word, COMMANDS, n=1)
            meant = f" Did you mean '{near[0]}'?" if near else ""
            print(f"jupyter dist: There is no command '{word}'.{meant}\n", file=sys.stderr)
        print(f"usage: jupyter dist COMMAND\n\n{self.description}\n")
        print("\n".join(f"  {name:10} {command.text}" for name, command in COMMANDS.items()))
        self.exit(2)


main = DistCommands.launch_instance
