"""Its command."""

from jupyter_dist.cli.listed import Listed

COMMANDS = {
    "export": Listed(
        "jupyter_dist.parts.script.command.ExportCommand", "Write the cells that ran on ranks as a script for torchrun."
    )
}
