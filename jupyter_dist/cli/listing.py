"""The commands of `jupyter dist`: the list of commands, each with its class and its line in the help.

A command for exactly one operation of the API has no class here: the table of operations names the command
(`Operation.command`), and commands/operation.py makes its class.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from jupyter_dist.protocol.operations import OPERATIONS

PACKAGE = "jupyter_dist.cli.commands"


@dataclass(frozen=True)
class Listed:
    """A command: its module and class in commands/, imported when the command is run, and its line in the help."""

    place: str
    text: str

    @property
    def path(self) -> str:
        """Return the path of the command's class."""
        return f"{PACKAGE}.{self.place}"

    def load(self) -> Any:
        """Return the class of the command, a subclass of Command."""
        module, _, name = self.path.rpartition(".")
        return getattr(importlib.import_module(module), name)


COMMANDS = {
    "start": Listed("groups.StartCommand", "Start a group."),
    "list": Listed("groups.ListCommand", "List all groups."),
    "status": Listed("groups.StatusCommand", "Show a group's ranks."),
    "samples": Listed("groups.SamplesCommand", "Show what each rank used in the last hour."),
    "stacks": Listed("operation.stacks", "Show the line that each rank is at."),
    "variables": Listed("operation.variables", "List the variables of ranks, with what differs between them."),
    "memory": Listed("reading.comparing.MemoryCommand", "Show what holds the memory of ranks."),
    "compare": Listed("reading.comparing.CompareCommand", "Show which tensors of a variable differ between ranks."),
    "curves": Listed("reading.curves.CurvesCommand", "Show curves such as the loss of a cell, or write them as CSV."),
    "drift": Listed("reading.drift.DriftCommand", "Show which version of which cell ran on which ranks."),
    "catch-up": Listed("reading.drift.CatchUpCommand", "Run on replaced ranks the cells that they have missed."),
    "save": Listed("saving.SaveCommand", "Save the variables of all ranks of a group."),
    "restore": Listed("saving.RestoreCommand", "Give all ranks of a group the variables of a save."),
    "saves": Listed("operation.all_saves", "List the saves in a folder."),
    "last-saves": Listed("operation.last_saves", "List the newest save of each group."),
    "attach": Listed("attach.AttachCommand", "Open a prompt whose cells run on a group's ranks."),
    "exec": Listed("cells.ExecCommand", "Run code on a group's ranks."),
    "undo": Listed("cells.UndoCommand", "Undo the last cells that kept undo."),
    "redo": Listed("cells.RedoCommand", "Give variables what undone cells had left in them."),
    "run": Listed("cells.RunCommand", "Run a script on a new group, like torchrun."),
    "logs": Listed("reading.logs.LogsCommand", "Show the output of a rank."),
    "export": Listed("reading.export.ExportCommand", "Write the cells that ran on ranks as a script for torchrun."),
    "mcp": Listed("machine.mcp.McpCommand", "Serve groups to language-model agents."),
    "join": Listed("machine.join.JoinCommand", "Be a node of a group over several machines."),
    "launchers": Listed(
        "machine.launchers.LaunchersCommand", "List what can start the nodes of a group, with what is free."
    ),
    "start-again": Listed("groups.StartAgainCommand", "Start a group that has ended, with the options of its start."),
    "replace": Listed("groups.ReplaceCommand", "Start new processes for a group's dead ranks."),
    "resize": Listed("groups.ResizeCommand", "Change the number of a group's ranks."),
    "stop": Listed("groups.StopCommand", "End a group."),
    "doctor": Listed("machine.doctor.DoctorCommand", "Check this machine, and say how to fix problems."),
    "completion": Listed("machine.completion.CompletionCommand", "Print a script for shell completion."),
}
COMMANDS.update(
    (operation.command, Listed(f"operation.{operation.name}", f"{operation.title}."))
    for operation in OPERATIONS
    if operation.command and operation.command not in COMMANDS
)


def word_of(command: type) -> str:
    """Return the name that a command is run by."""
    path = f"{command.__module__}.{command.__name__}"
    return next((word for word, listed in COMMANDS.items() if listed.path == path), "")
