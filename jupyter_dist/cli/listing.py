"""The commands of `jupyter dist`: the list of commands, each with its class and its line in the help.

A command for exactly one operation of the API has no class here: the table of operations names the command
(`Operation.command`), and commands/operation.py makes its class. A part adds
commands by `COMMANDS` of its module `cli`.
"""

from __future__ import annotations

from jupyter_dist.protocol.operations import OPERATIONS
from jupyter_dist.protocol.parts import find_modules

from .listed import Listed


def _own(place: str, text: str) -> Listed:
    return Listed(f"jupyter_dist.cli.commands.{place}", text)


COMMANDS = {
    "start": _own("groups.StartCommand", "Start a group."),
    "list": _own("groups.ListCommand", "List all groups."),
    "status": _own("groups.StatusCommand", "Show a group's ranks."),
    "samples": _own("groups.SamplesCommand", "Show what each rank used in the last hour."),
    "stacks": _own("operation.stacks", "Show the line that each rank is at."),
    "attach": _own("attach.AttachCommand", "Open a prompt whose cells run on a group's ranks."),
    "exec": _own("cells.ExecCommand", "Run code on a group's ranks."),
    "run": _own("cells.RunCommand", "Run a script on a new group, like torchrun."),
    "logs": _own("logs.LogsCommand", "Show the output of a rank."),
    "join": _own("machine.join.JoinCommand", "Be a node of a group over several machines."),
    "launchers": _own(
        "machine.launchers.LaunchersCommand", "List what can start the nodes of a group, with what is free."
    ),
    "start-again": _own("groups.StartAgainCommand", "Start a group that has ended, with the options of its start."),
    "replace": _own("groups.ReplaceCommand", "Start new processes for a group's dead ranks."),
    "stop": _own("groups.StopCommand", "End a group."),
    "doctor": _own("machine.doctor.DoctorCommand", "Check this machine, and say how to fix problems."),
    "completion": _own("machine.completion.CompletionCommand", "Print a script for shell completion."),
}
COMMANDS.update(
    (operation.command, _own(f"operation.{operation.name}", f"{operation.title}."))
    for operation in OPERATIONS
    if operation.command and operation.command not in COMMANDS
)
for _module in find_modules("cli").modules.values():
    COMMANDS.update({word: listed for word, listed in _module.COMMANDS.items() if word not in COMMANDS})


def word_of(command: type) -> str:
    """Return the name that a command is run by."""
    path = f"{command.__module__}.{command.__name__}"
    return next((word for word, listed in COMMANDS.items() if listed.path == path), "")
