"""Writes the script: the names that ranks start with, the cells, and as comments cells that did not run on ranks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jupyter_dist.protocol.accelerators import ACCELERATORS
from jupyter_dist.protocol.errors import JupyterDistError, bad_request
from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.server.cells.python import commented, indented, is_empty
from jupyter_dist.server.cells.runs import RecordedRun
from jupyter_dist.server.folding.content import MAX_BYTES

from .choosing import ScriptCell, chosen, of_notebook, since_restart
from .models import Script

MAX_SCRIPT_CHARS = MAX_BYTES
# A `track` for scripts, which prints the same lines as the `track` of ranks.
_TRACK = (
    "def track(values=None, /, *, step=None, **named):",
    '    parts = [] if step is None else [f"step={int(step)}"]',
    '    print(*parts, *(f"{name}={float(value)!r}" for name, value in {**(values or {}), **named}.items()), sep="  ")',
)
_CELL_MAGIC = re.compile(r"\s*%%[^\n]*\n")


class Source:
    """A code cell of the notebook's file."""

    def __init__(self, fields: Any) -> None:
        if not isinstance(fields, dict) or not isinstance(fields.get("source"), str):
            raise bad_request("The field 'cells' is not a list of code cells.", "Send [{id, source}] as JSON.")
        self.id = str(fields.get("id") or "")
        self.code: str = fields["source"].strip()

    @property
    def texts(self) -> set[str]:
        """Return the code that may have run on ranks: the whole cell, or the body of a cell magic."""
        return {self.code, _CELL_MAGIC.sub("", self.code, count=1).strip()}

    def is_one_of(self, ids: set[str], codes: set[str]) -> bool:
        """Whether the cell ran on ranks."""
        return self.id in ids or not codes.isdisjoint(self.texts)


def parse_sources(text: str | None) -> list[Source]:
    """Return the notebook's code cells from the field of a request. Raises JupyterDistError `bad_request`."""
    try:
        found = json.loads(text or "[]")
    except (ValueError, RecursionError) as err:
        raise bad_request(f"The field 'cells' is not JSON: {err}.", "Send [{id, source}] as JSON.") from err
    return [Source(fields) for fields in (found if isinstance(found, list) else [found])]


def write_script(
    group: models.GroupModel,
    all_runs: Sequence[RecordedRun],
    codes: Mapping[str, str],
    notebook: str | None,
    cells: str | None,
) -> Script:
    """Return the script of a notebook's cells (docs/api.md, Script).

    Raises:
        JupyterDistError: `not_found` if no cell ran on ranks, `bad_request`, `too_large`.
    """
    runs = of_notebook(all_runs, notebook)
    recent = since_restart(all_runs, runs, group.get("started_at"))
    sources = parse_sources(cells)
    outdated = _outdated(recent, codes, sources)
    ordered, missing = chosen([run for run in recent if run not in outdated], codes)
    if not any(cell.run.is_ok for cell in ordered):
        raise JupyterDistError(
            "not_found", say("No cell has succeeded on the ranks of this group."), say("Run cells first.")
        )
    blocks = [_CellBlock(cell, group["world_size"]) for cell in ordered]
    left = [block.run for block in blocks if block.has_left and block.run.is_ok]
    notes = list(_notes(len(recent) < len(runs), missing, ordered, outdated, left))
    name = next((run.notebook for run in runs if run.notebook), None)
    parts = [_head(group, name, notes, blocks), *_with_comments(blocks, sources, runs, codes)]
    script = "\n\n".join([*parts, "\n".join(_end(group))]) + "\n"
    script = script.replace("\0", "\N{SYMBOL FOR NULL}")  # in cells that failed: comments cannot have it
    if len(script) > MAX_SCRIPT_CHARS:
        message = say("The script would have %1 characters; the limit is %2.", len(script), MAX_SCRIPT_CHARS)
        raise JupyterDistError("too_large", message, say("Move data out of the cells into files."))
    return {"script": script, "cells": sum(cell.run.is_ok for cell in ordered), "notes": notes, "notebook": name}


def _outdated(runs: Sequence[RecordedRun], codes: Mapping[str, str], sources: Sequence[Source]) -> set[RecordedRun]:
    """Return the runs without a cell's id (magics have none) whose code the notebook's file no longer has."""
    texts = set().union(*(source.texts for source in sources)) if sources else set()
    unknown = {run for run in runs if not run.cell_id and codes.get(run.execution_id, "").strip() not in texts}
    is_other_file = not any(run.is_ok for run in runs if run not in unknown)
    return set() if is_other_file else unknown


class _CellBlock:
    """A cell as it stands in the script."""

    def __init__(self, cell: ScriptCell, world_size: int) -> None:
        self.run = cell.run
        self.plain = cell.plain
        self._ranks = RankSet.from_text(cell.run.ranks)  # some may have left the group in a resize since
        self._is_for_all = len(self._ranks) == (cell.run.num_ranks or world_size)
        self.has_left = not self._is_for_all and bool(self._ranks) and self._ranks[-1] >= world_size

    def __str__(self) -> str:
        title = f"# %% [{self.run.count}]"
        if not self.run.is_ok:
            return f"{title} is left out: it ended with '{self.run.state}'.\n{self.plain.text}"
        if self._is_for_all or is_empty(self.plain.text):
            return f"{title}\n{self.plain.text}"
        ranks = f"({', '.join(map(str, self._ranks))}{',' if len(self._ranks) == 1 else ''})"
        return f"{title}\nif rank in {ranks}:\n{indented(self.plain.text)}"


def _notes(
    is_restarted: bool,
    missing: Sequence[str],
    cells: Sequence[ScriptCell],
    outdated: set[RecordedRun],
    left: Sequence[RecordedRun],
) -> Iterator[str]:
    if is_restarted:
        yield "Cells that ran before the ranks were restarted are left out."
    if missing:
        names = ", ".join(missing[:20])
        yield f"No cell defines these names before they are used: {names}. The kernel may have sent them."
    if old := [f"[{count}]" for count in sorted(run.count or 0 for run in outdated)]:
        yield f"Left out, because the notebook's file no longer has their code: {', '.join(old[:20])}."
    if left:
        counts = ", ".join(f"[{run.count}]" for run in left[:20])
        yield f"The group was resized: cells that ran on ranks which it no longer has are {counts}."
    if failed := [f"[{cell.run.count}]" for cell in cells if not cell.run.is_ok]:
        yield f"Cells that did not succeed are comments: {', '.join(failed[:20])}."


def _head(group: models.GroupModel, notebook: str | None, notes: Sequence[str], blocks: Sequence[_CellBlock]) -> str:
    futures = dict.fromkeys(name for block in blocks for name in block.plain.futures)
    modules = sorted({"os", "sys"}.union(*(block.plain.modules for block in blocks)))
    text = "\n".join(block.plain.text for block in blocks)
    what = f"{notebook or 'The cells'}, as run on {group['world_size']} ranks of group '{group['name']}'"
    paragraphs = [
        f"{what}. Written by jupyter_dist.",
        f"In {group['cwd']}:",
        f"    torchrun --nproc-per-node {group['world_size']} THIS_FILE.py",
        *notes,
    ]
    return "\n".join(
        [
            commented("\n\n".join(paragraphs)),
            *([f"from __future__ import {', '.join(futures)}"] if futures else []),
            "",
            *(f"import {name}" for name in modules),
            "",
            "import torch",
            "import torch.distributed as dist",
            *(["from IPython.display import display"] if re.search(r"\bdisplay\(", text) else []),
            "",
            *_rank_names(group, text),
        ]
    )


def _rank_names(group: models.GroupModel, text: str) -> Iterator[str]:
    """Yield the definitions of the names that every rank starts with."""
    row = ACCELERATORS[group["accelerator"]]
    yield 'sys.path.insert(0, "")  # modules in the working directory, as on the ranks'
    yield 'rank = int(os.environ["RANK"])'
    yield 'local_rank = int(os.environ["LOCAL_RANK"])'
    yield 'world_size = int(os.environ["WORLD_SIZE"])'
    if row.has_devices:
        yield f'device = torch.device("{row.device_type}", local_rank)'
        yield f"torch.{row.device_type}.set_device(device)"
    else:
        yield f'device = torch.device("{row.device_type}")'
    others = {"gpu_id": "local_rank" if row.has_devices else "None", "__rank__": "rank", "__world_size__": "world_size"}
    for name, value in others.items():
        if name in text:
            yield f"{name} = {value}"
    if re.search(r"\btrack\(", text):
        yield from _TRACK
    yield f'dist.init_process_group("{group["backend"]}")'


def _end(group: models.GroupModel) -> Iterator[str]:
    yield "dist.destroy_process_group()"
    if group["backend"] == "gloo":
        # A thread of gloo that releases its last tensor when Python has ended aborts the process (pytorch#179291). As
        # long as a model holds the process group, destroying it does not wait for its threads.
        yield "from time import sleep"
        yield ""
        yield "sleep(0.5)  # gloo's threads must be idle when Python ends"


def _with_comments(
    blocks: Sequence[_CellBlock], sources: Sequence[Source], runs: Sequence[RecordedRun], codes: Mapping[str, str]
) -> Iterator[str]:
    """Yield the cells, and after each as comments the cells of the file that follow it and did not run on ranks."""
    ids = {run.cell_id for run in runs if run.cell_id}
    texts = {codes[run.execution_id].strip() for run in runs if run.execution_id in codes}
    last_id = ""
    after: dict[str, list[str]] = {}
    for source in sources:
        if source.is_one_of(ids, texts):
            last_id = source.id
        elif source.code:
            after.setdefault(last_id, []).append(f"# Did not run on ranks:\n{commented(source.code)}")
    yield from after.pop("", [])
    for block in blocks:
        yield str(block)
        yield from after.pop(block.run.cell_id or "", [])
    for rest in after.values():
        yield from rest
