"""Writes docs/reference/undo.md: `python tests/undo/table.py` runs all cases of ways.py and has the outcome of each."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
import ways
from publiccode import FOUND
from trying import counts, rows, try_all

from jupyter_dist.rank.state.process import settings

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "undo.md"
HEAD = """# What undo takes back

Each case below is a cell that keeps undo, run and undone twice in one process (`tests/undo/ways.py`, which has the code of each). *Undone*: all is as before, and a redo brings the effect back. *Named*: something is not, and the execution's `undo`, the
undo itself and the dialog name it. *Refused*: nothing has been changed back, with the reason. *Not seen*: undo says nothing, and something is different. A test tries all of them again on each change of this project;
`python tests/undo/table.py` writes this page.
"""
TABLES = {
    "Ways to change a list": (ways.WAYS, True),
    "States": (ways.STATES, False),
    "From public code": (ways.PUBLIC, False),
    "From public files, by their address": (FOUND, False),
}
OF_PROCESS = """
## Settings of the process

Undo and saves keep these by the same table (`jupyter_dist/rank/state/process/settings.py`), and a test changes each of them:
"""


def page() -> str:
    """Return the page, after all cases were tried."""
    parts = [HEAD]
    for title, (cases, of_list) in TABLES.items():
        found = try_all(cases, of_list=of_list)
        number = counts(found)
        words = ", ".join(f"{number[key]} {word}" for key, word in _WORDS.items())
        parts += [f"\n## {title}\n\n{len(cases)} cases, {2 * len(cases)} undos: {words}.\n\n"]
        parts += ["| | the first undo | the second |\n| --- | --- | --- |\n", "\n".join(rows(found)), "\n"]
    return "".join([*parts, OF_PROCESS, f"\n{', '.join(settings.rows())}.\n"])


_WORDS = {"undone": "undone", "named": "named", "refused": "refused", "SILENT": "not seen"}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    PAGE.write_text(page())
    sys.stdout.write(f"{PAGE}\n")
