"""The runs of cells that a script consists of: of one notebook since the last restart, each cell once, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from jupyter_dist.protocol.errors import JupyterDistError, bad_request
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.server.cells.names import missing_names
from jupyter_dist.server.cells.python import Plain, commented, to_python
from jupyter_dist.server.cells.runs import RecordedRun, latest

# In place of a notebook's path: a code console of a page.
CONSOLE = "console:"


@dataclass(frozen=True)
class ScriptCell:
    """A cell of the script: its last successful run, else its last run."""

    run: RecordedRun
    code: str
    plain: Plain


def of_notebook(runs: Sequence[RecordedRun], wanted: str | None) -> list[RecordedRun]:
    """Return the runs of the notebook with that path, or part of a path; without one, of the only notebook.

    Cells of consoles are left out.

    Raises:
        JupyterDistError: `bad_request` or `not_found`, naming the notebooks that ran cells.
    """
    runs = [run for run in runs if not (run.notebook or "").startswith(CONSOLE)]
    known = {run.notebook for run in runs if run.notebook}
    listed = ", ".join(sorted(known)) or "none"
    if wanted is None:
        if len(known) > 1:
            message = say("Cells of %1 notebooks ran on this group.", len(known))
            raise bad_request(message, say("Name one of them: %1.", listed))
        return [run for run in runs if run.notebook or not known]
    found = [path for path in known if path == wanted] or [path for path in known if _is_part(path, wanted)]
    if len(found) != 1:
        none = say("No cell of '%1' ran on this group.", wanted[:200])
        several = say("Cells of more than one '%1' ran on this group.", wanted[:200])
        raise JupyterDistError("not_found", several if found else none, say("Notebooks: %1.", listed))
    return [run for run in runs if run.notebook == found[0]]


def _is_part(one: str, other: str) -> bool:
    """Whether a path is the end of the other: paths of notebooks are relative to the server's root, or absolute."""
    short, long = sorted((PurePosixPath(one).parts, PurePosixPath(other).parts), key=len)
    return bool(short) and long[-len(short) :] == short


def since_restart(
    all_runs: Sequence[RecordedRun], runs: Sequence[RecordedRun], restarted_at: float | None = None
) -> list[RecordedRun]:
    """Return the runs of the last generation of ranks that has a success; a restart counts cells from 1 again.

    So does a kernel that is restarted and counts the cells of its ranks, which are the same after `restarted_at`.
    """
    mine = set(runs)
    generations: list[list[RecordedRun]] = [[]]
    last, is_last_generation = 0, False
    for run in all_runs:
        if run.count is not None:
            if run.count <= last and not is_last_generation:
                generations.append([])
            last = run.count
        is_last_generation = restarted_at is not None and (run.started_at or 0.0) >= restarted_at
        if run in mine:
            generations[-1].append(run)
    return next((found for found in reversed(generations) if any(run.is_ok for run in found)), list(runs))


def chosen(runs: Sequence[RecordedRun], codes: Mapping[str, str]) -> tuple[list[ScriptCell], list[str]]:
    """Return the cells in order, and the names that they use before any cell has defined them.

    A cell that ran again stands where it first succeeded, because later cells use its names; unless more names are
    known where it ran last.
    """
    found = latest(runs, codes)
    cells = {key: _cell(of_cell[-1], codes) for key, of_cell in found.items()}
    place = {run.execution_id: number for number, run in enumerate(runs)}
    orders = []
    for end in (0, -1):
        keys = sorted(found, key=lambda key, end=end: place[found[key][end].execution_id])  # type: ignore[misc]
        ordered = [cells[key] for key in keys]
        orders.append((ordered, missing_names(cell.plain for cell in ordered if cell.run.is_ok)))
    return min(orders, key=lambda order: len(order[1]))


def _cell(run: RecordedRun, codes: Mapping[str, str]) -> ScriptCell:
    code = codes.get(run.execution_id, "")
    return ScriptCell(run, code, to_python(code) if run.is_ok else Plain(commented(code), [], set()))
