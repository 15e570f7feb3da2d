"""The runs of a group's cells and their code: from the agent's reports, or from the journal's files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from jupyter_dist.journal.reader import JournalCursor
from jupyter_dist.journal.records.record import Check, Record
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.server.cells.runs import RecordedRun, latest

MAX_CODE_CHARS = 64 << 20


class Codes:
    """The code of runs, bounded."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self._num_chars = 0

    def add(self, execution_id: str, code: str, needed: Callable[[], Iterable[RecordedRun]] | None = None) -> None:
        """Keep the code; at the limit, drop the code of runs that are not needed.

        Raises:
            JupyterDistError: `too_large`, if all code is needed.
        """
        self.found[execution_id] = code
        self._num_chars += len(code)
        if self._num_chars > MAX_CODE_CHARS and needed is not None:
            kept = {run.execution_id for run in needed()}
            self.found = {key: text for key, text in self.found.items() if key in kept}
            self._num_chars = sum(map(len, self.found.values()))
        if self._num_chars > MAX_CODE_CHARS:
            message = say("The cells of this group have more than %1 MiB of code.", MAX_CODE_CHARS >> 20)
            raise JupyterDistError("too_large", message, say("Move data out of the cells into files."))


def run_of(model: models.ExecutionModel) -> RecordedRun:
    """Return the run of an execution that began."""
    count, notebook, cell_id = model["execution_count"], model["notebook"], model["cell_id"]
    of_cell = (model["state"], count, notebook, cell_id, "undone_at" in model)
    return RecordedRun(model["id"], model["ranks"], *of_cell, model["started_at"], model.get("num_ranks"))


def needed_runs(runs: Iterable[RecordedRun]) -> list[RecordedRun]:
    """Return the last run of each cell, and all runs of cells without an id: only their code identifies the cell."""
    return [of_cell[-1] for of_cell in latest(runs, {}).values()]


def journal_runs(journal: Path, check: Check) -> tuple[list[RecordedRun], dict[str, str]]:
    """Read the runs from the journal's files, about a megabyte at a time. Reads files: call it in a thread."""
    reader = _RunReader()
    with closing(JournalCursor(journal, check=check)) as cursor:
        while records := cursor.read():
            for record in records:
                reader.feed(record)
    return list(reader.runs.values()), reader.codes.found


class _RunReader:
    """Collects runs from records."""

    def __init__(self) -> None:
        self.runs: dict[str, RecordedRun] = {}
        self.codes = Codes()
        self._last_count = 0

    def feed(self, record: Record) -> None:
        """Add a record of the journal."""
        header = record.header
        if header["kind"] == "end" and (run := self.runs.get(header["execution_id"])) is not None:
            self.runs[run.execution_id] = replace(run, state=str(header.get("state")))
        if header["kind"] in ("undone", "redone") and (run := self.runs.get(header["execution_id"])) is not None:
            self.runs[run.execution_id] = replace(run, is_undone=header["kind"] == "undone")
        if header["kind"] == "begin" and header.get("extends"):
            self._extend(header)
            return
        if header["kind"] == "begin" and not self._is_silent(header):
            count = self._last_count = header["execution_count"]
            cell = (header.get("notebook"), header.get("cell_id"))
            of_cell = ("lost", count, *cell, False, header["at"], header.get("num_ranks"))
            run = RecordedRun(header["execution_id"], header["ranks"], *of_cell)
            self.runs[run.execution_id] = run
            code = record.payload.decode("utf-8", "replace")
            self.codes.add(run.execution_id, code, lambda: needed_runs(self.runs.values()))

    def _is_silent(self, header: dict[str, Any]) -> bool:
        """Whether the cell is left out of the history; in records of 0.3 it has the number of the cell before it."""
        count = header.get("execution_count")
        return not count or header.get("silent", count == self._last_count)

    def _extend(self, header: dict[str, Any]) -> None:
        """Add the ranks that a running cell was extended to."""
        if (run := self.runs.get(header["execution_id"])) is not None:
            ranks = RankSet.from_text(run.ranks) | RankSet.from_text(header["ranks"])
            self.runs[run.execution_id] = replace(run, ranks=str(ranks))
