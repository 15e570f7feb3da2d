"""Replays a notebook that was written for Ddip or nbdistributed: only its %load_ext line is another.

    python tests/replay.py notebook.ipynb

A cell whose published output is an error is expected to fail; every other one is expected to succeed. Published
notebooks are not in this repository; tests/client/test_published_notebooks.py has cells of our own in their order.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from waits import PATIENCE_WITH_A_START

LOAD = re.compile(r"^%load_ext (?:Ddip|nbdistributed)\b", re.MULTILINE)


def replay(notebook: nbformat.NotebookNode, folder: Path) -> list[str]:
    """Run all cells in `folder`, and return a sentence for each whose outcome is not the published one."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]
    failed_before = [_error(cell) is not None for cell in cells]
    for cell in cells:
        cell.source = LOAD.sub("%load_ext jupyter_dist", cell.source)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    client = NotebookClient(
        notebook, timeout=PATIENCE_WITH_A_START, allow_errors=True, resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    return [
        f"{cell.source.splitlines()[0]}: {_error(cell) or 'no error'}"
        for cell, failed in zip(cells, failed_before, strict=True)
        if (_error(cell) is not None) != failed
    ]


def text_of(cell: nbformat.NotebookNode) -> str:
    """What a reader without our renderer sees below a cell."""
    return "".join(output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.outputs)


def _error(cell: nbformat.NotebookNode) -> str | None:
    """The error of a cell: of the kernel, or one that ranks printed."""
    errors = [output["evalue"] for output in cell.outputs if output["output_type"] == "error"]
    printed = re.search(r"^❌ Error: (.*)", text_of(cell), re.MULTILINE)  # nbdistributed's cells end well all the same
    return errors[0] if errors else printed and printed[1]


if __name__ == "__main__":
    path = Path(sys.argv[1])
    replayed = nbformat.read(path, as_version=4)
    surprises = replay(replayed, Path.cwd())
    for one in replayed.cells:
        if one.cell_type == "code":
            print(f"\n>>> {one.source}\n{text_of(one)}{_error(one) or ''}")
    print(f"\n{len(surprises)} cells ended otherwise than published", *surprises, sep="\n")
    sys.exit(bool(surprises))
