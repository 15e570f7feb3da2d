"""`export`: the cells that ran on ranks, as a script for torchrun."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from jupyter_dist.cli.command import Command, add_group_argument
from jupyter_dist.client import JupyterDistError


class ExportCommand(Command):
    """Write the cells that ran on ranks as a script for torchrun, each in its last version, in the order they ran."""

    needs_groups = True

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """The group, the notebook and the file."""
        add_group_argument(parser)
        parser.add_argument("--notebook", help="path of the notebook (default: the only one that ran cells)")
        parser.add_argument("-o", "--output", default="-", help="the script's file (default: print it)")
        parser.add_argument("--force", action="store_true", help="replace the file if it exists")

    def act(self) -> int:
        """Write the script."""
        name, target = self.options.notebook, self.options.output
        if target != "-" and os.path.exists(target) and not self.options.force:
            raise JupyterDistError("bad_request", f"'{target}' exists.", "Choose another file, or replace it: --force.")
        cells = None
        if name is not None and os.path.isfile(name):
            cells, name = json.dumps(code_cells(Path(name))), os.path.realpath(name)
        script = self.client.attach(self.options.group).script(name, cells)
        if target == "-":
            self.tell(script.model, script.script.rstrip("\n"))
            return 0
        try:
            Path(target).write_text(script.script)
        except OSError as err:
            raise JupyterDistError("bad_request", f"'{target}' cannot be written: {err.strerror}.") from err
        text = f"Wrote {script.cells} cells of {script.notebook or 'no notebook'} to {target}."
        self.tell({**script.model, "file": target}, text)
        if not self.options.json:
            print("\n".join(script.notes), file=sys.stderr, end="\n" if script.notes else "")
        return 0


def code_cells(path: Path) -> list[dict[str, Any]]:
    """Return the ids and sources of a notebook's code cells.

    Raises:
        JupyterDistError: `bad_request`, if the file is not a notebook.
    """
    try:
        cells = json.loads(path.read_text())["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        return [{"id": cell.get("id", ""), "source": "".join(cell["source"])} for cell in code]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OSError) as err:
        message = f"'{path}' is not a notebook that can be read: {err}."
        raise JupyterDistError("bad_request", message, "Notebooks have format 4: save it once in JupyterLab.") from err
