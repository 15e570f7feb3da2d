"""`jupyter dist`: runs a command, or lists the commands."""

from __future__ import annotations

from jupyter_core.application import JupyterApp

from jupyter_dist.version import __version__

PACKAGE = "jupyter_dist.cli.commands"
COMMANDS = {
    "start": "Start a group.",
    "list": "List all groups.",
    "status": "Show a group's ranks.",
    "samples": "Show what each rank used in the last hour.",
    "stacks": "Show the line that each rank is at.",
    "variables": "List the variables of ranks, with what differs between them.",
    "memory": "Show what holds the memory of ranks.",
    "compare": "Show which tensors of a variable differ between ranks.",
    "curves": "Show curves such as the loss of a cell, or write them as CSV.",
    "drift": "Show which version of which cell ran on which ranks.",
    "catch-up": "Run on replaced ranks the cells that they have missed.",
    "attach": "Open a prompt whose cells run on a group's ranks.",
    "exec": "Run code on a group's ranks.",
    "run": "Run a script on a new group, like torchrun.",
    "logs": "Show the output of a rank.",
    "export": "Write the cells that ran on ranks as a script for torchrun.",
    "mcp": "Serve groups to language-model agents.",
    "join": "Be a node of a group over several machines.",
    "launchers": "List what can start the nodes of a group, with what is free.",
    "stop": "End a group.",
    "doctor": "Check this machine, and say how to fix problems.",
    "completion": "Print a script for shell completion.",
}
MODULES = {
    "start": "groups.Start",
    "list": "groups.List",
    "status": "groups.Status",
    "samples": "groups.SamplesOf",
    "stacks": "groups.Stacks",
    "variables": "differences.Variables",
    "memory": "differences.Memory",
    "compare": "differences.Compare",
    "curves": "curves.Curves",
    "drift": "drift.Drift",
    "catch-up": "drift.CatchUp",
    "join": "join.Join",
    "launchers": "launchers.Launchers",
    "stop": "groups.Stop",
    "attach": "attach.Attach",
    "exec": "cells.Exec",
    "run": "cells.Run",
    "logs": "logs.Logs",
    "mcp": "mcp.Mcp",
    "export": "export.Export",
    "doctor": "doctor.Doctor",
    "completion": "completion.Completion",
}


class DistCommands(JupyterApp):
    """Groups of torch.distributed ranks from a shell; see `jupyter dist COMMAND --help`."""

    name = "jupyter-dist"
    version = __version__
    description = __doc__
    subcommands = {  # noqa: RUF012  (a trait's default)
        name: (f"{PACKAGE}.{MODULES[name]}", help_text) for name, help_text in COMMANDS.items()
    }

    def start(self) -> None:
        """Run the command, or list the commands."""
        super().start()
        print(f"usage: jupyter dist COMMAND\n\n{self.description}\n")
        print("\n".join(f"  {name:10} {help_text}" for name, help_text in COMMANDS.items()))
        self.exit(2)


main = DistCommands.launch_instance
