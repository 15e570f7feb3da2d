"""Its commands."""

from jupyter_dist.cli.listed import Listed

_COMMAND = "jupyter_dist.parts.saves.command"
COMMANDS = {
    "save": Listed(f"{_COMMAND}.SaveCommand", "Save the variables of all ranks of a group."),
    "restore": Listed(f"{_COMMAND}.RestoreCommand", "Give all ranks of a group the variables of a save."),
}
