"""Saves: the variables of all ranks in files, and groups that begin with them (docs/how-to/save-and-restore.md)."""

from jupyter_dist.protocol.models.sentences import say

# By which code names it. Alone, `save` and `restore` are words of checkpoints of torch and of CUDA, and of a kind of
# slow call, too; `saved` is what a notebook has, and what undo keeps.
COMMON_WORDS = ("save", "restore", "folder")
WORDS = (
    "begin-with",
    "start-saved",
    "jupyter-dist:saves?",
    "dist_(save|restore)",
    "(save|saves|preview)_text",
    "saves_(folder|bytes|days|kept)",
    "save_(every|before)_[a-z_]+",
    "(save|saves)(folder|model|record|preview|request)(field)?",
    "transfers?(spec|news|decision|seconds)?",
    "save: str",
    r"\[.save.\]",
    "restore: str",
    "restore=restore",
    r"wanted\.restore",
    '"restore": [{"]',
)
NEWER_REQUESTS = {
    "transfer": say("save or restore its ranks"),
    "preview_save": say("save its ranks"),
}
MAGICS = {"%dist_save": "In Python, group.save().", "%dist_restore": "In Python, group.restore()."}
