"""Its commands."""

from jupyter_dist.cli.listed import Listed

_COMMAND = "jupyter_dist.parts.undo.command"
COMMANDS = {
    "undo": Listed(f"{_COMMAND}.UndoCommand", "Undo the last cells that kept undo."),
    "redo": Listed(f"{_COMMAND}.RedoCommand", "Give variables what undone cells had left in them."),
}
