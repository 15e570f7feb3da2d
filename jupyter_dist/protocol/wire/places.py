"""Files in stacks of ranks: which ones are the user's, and how users call them."""

from __future__ import annotations

import re

from jupyter_dist.protocol.models.sentences import say

MAX_NAME = 200

_CELL = re.compile(r"<ipython-input-(\d+)-")
_DEBUGGED_CELL = re.compile(r"/cells/\d+\.py$")  # parts/debugging/rank/dap.py
_LIBRARIES = ("site-packages", "dist-packages", "/lib/python", "<frozen", "jupyter_dist/")


def is_library(file: str) -> bool:
    """Whether a file is neither a cell nor a module of the user."""
    return any(part in file for part in _LIBRARIES)


def name_of_file(file: str) -> str:
    """Return the name of a file for users: "cell [5]", "model.py"."""
    cell = _CELL.match(file)
    if _DEBUGGED_CELL.search(file):
        return say("the cell")
    return say("cell [%1]", cell[1]) if cell else file.rpartition("/")[2][:MAX_NAME]


def describe_line(file: str, line: int, code: str) -> str:
    """Return a line of the user's code for users: "line 3 of cell [5]: loss.backward()"."""
    code = cut(code, MAX_NAME).rstrip(":")  # the begin of a block: a full stop may follow
    place = line, name_of_file(file)
    return say("line %1 of %2: %3", *place, code) if code else say("line %1 of %2", *place)


def cut(text: str, most: int) -> str:
    """Return a text, or the words of it that fit and an ellipsis."""
    if len(text) <= most:
        return text
    end = text.rfind(" ", most // 2, most)
    return f"{text[: end if end > 0 else most]}\u2026"
