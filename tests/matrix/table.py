"""docs/compatibility.json, which runs of the matrix write, and docs/compatibility.md, which is made of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"
RECORD = DOCS / "compatibility.json"
TABLE = DOCS / "compatibility.md"
MAX_NAMES = 3
KEY = ("python", "torch", "ipython", "tests")

HEAD = """# Versions that have run

Made by `python tests/matrix/run.py` from what it ran; [compatibility.json](compatibility.json) has the versions in full.
Everything ran on Linux, on CPU (gloo). NCCL and CUDA have not been run: [gpu.md](gpu.md). Of JupyterLab 4.6.6 alone has run;
4.6 is declared for that reason, and nobody has tried an older one yet.

`make matrix` makes the environments below `.matrix/` and runs the tests in each; other versions of torch, whose builds for
CUDA take some gigabytes, run by hand: `python tests/matrix/run.py --python 3.10 --torch 2.5.1`. The tests are those of
`tests/compat` (a group of two ranks: start, values, collectives, errors, await, magics, figures, interrupts, a freed
collective, completion, objects, DDP, DataLoader workers, a dead rank replaced), and where the table says so those of
the ranks, the agent and the client. `make test` runs `tests/compat` with IPython 8.6.0, the newest 8 and 9.0.0.

| Python | torch | IPython | tests | result | date |
|---|---|---|---|---|---|
"""


def load() -> list[dict[str, Any]]:
    """What ran so far."""
    return json.loads(RECORD.read_text()) if RECORD.exists() else []


def record(run: dict[str, Any]) -> None:
    """Replace an earlier run of the same versions, and write the table again."""
    key = [run[name] for name in KEY]
    runs = [each for each in load() if [each[name] for name in KEY] != key] + [run]
    runs.sort(key=lambda each: [_sortable(each[name]) for name in KEY])
    RECORD.write_text(json.dumps(runs, indent=1) + "\n")
    TABLE.write_text(render(runs))


def render(runs: list[dict[str, Any]]) -> str:
    """The table's file."""
    return HEAD + "".join(_row(run) for run in runs)


def _row(run: dict[str, Any]) -> str:
    cells = [run["python"], run["torch"] or "none", run["ipython"] or "", run["tests"], result(run), run["date"]]
    return f"| {' | '.join(cells)} |\n"


def result(run: dict[str, Any]) -> str:
    if run["result"] == "not run":
        return f"not run: {run['reason']}"
    counts = f"{run['passed']} passed" + (f", {run['skipped']} skipped" if run["skipped"] else "")
    if not run["failed"]:
        return counts
    names = ", ".join(f"`{name}`" for name in run["failed"][:MAX_NAMES])
    if len(run["failed"]) > MAX_NAMES:
        names += f" and {len(run['failed']) - MAX_NAMES} more"
    return f"{counts}, **failed**: {names}"


def _sortable(version: str | None) -> list[Any]:
    return [(int(part), "") if part.isdigit() else (0, part) for part in (version or "0").split(".")]
