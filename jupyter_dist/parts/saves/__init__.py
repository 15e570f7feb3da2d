"""Saves: the variables of all ranks in files, and groups that begin with them (docs/how-to/save-and-restore.md)."""

from jupyter_dist.protocol.models.sentences import say

# By which code names it.
WORDS = (
    "begin-with",
    "start-saved",
    "jupyter-dist:saves?",
    "dist_(save|restore)",
    "(save|saves|preview)_text",
)
NEWER_REQUESTS = {
    "transfer": say("save or restore its ranks"),
    "preview_save": say("save its ranks"),
}
MAGICS = {"%dist_save": "In Python, group.save().", "%dist_restore": "In Python, group.restore()."}
