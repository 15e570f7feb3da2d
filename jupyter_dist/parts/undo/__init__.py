"""Undo and redo of cells: the state before them is kept, and written back in place (docs/how-to/undo-a-cell.md)."""

from jupyter_dist.protocol.models.sentences import say

# By which code names it. Launchers take a start back, too.
WORDS = (
    "undoable",
    "undo_?(keeper|cost|request|parser|command|note|model|dialog|cells|bytes|options)",
    "(keep|cannot)_?undo",
    "dist_(undo|redo)",
    "cell_?undo",
    "[`'\"]undo[`'\"]",
)
NEWER_FIELDS = {"keep_undo": say("keep undo of cells")}
NEWER_REQUESTS = {"undo": say("undo cells"), "undoable": say("undo cells"), "redo": say("undo cells")}
MAGICS = {
    "%dist_undo": "In Python, group.undo().",
    "%dist_redo": "In Python, group.redo().",
    "%dist_keep_undo": "In Python, group.keep_undo.",
}
