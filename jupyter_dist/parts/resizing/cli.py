"""Its command."""

from jupyter_dist.cli.listed import Listed

COMMANDS = {
    "resize": Listed("jupyter_dist.parts.resizing.command.ResizeCommand", "Change the number of a group's ranks.")
}
