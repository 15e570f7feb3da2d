"""`jupyter dist`: runs a command, or lists the commands."""

from __future__ import annotations

from jupyter_core.application import JupyterApp

from jupyter_dist.cli.listing import COMMANDS
from jupyter_dist.version import __version__


class DistCommands(JupyterApp):
    """Groups of torch.distributed ranks from a shell; see `jupyter dist COMMAND --help`."""

    name = "jupyter-dist"
    version = __version__
    description = __doc__
    subcommands = {  # noqa: RUF012  (a trait's default)
        name: (command.path, command.text) for name, command in COMMANDS.items()
    }

    def start(self) -> None:
        """Run the command, or list the commands."""
        super().start()
        print(f"usage: jupyter dist COMMAND\n\n{self.description}\n")
        print("\n".join(f"  {name:10} {command.text}" for name, command in COMMANDS.items()))
        self.exit(2)


main = DistCommands.launch_instance
