"""The runs of cells on ranks, as the journal has them (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class RecordedRun:
    """One run of a cell on ranks, from its `begin` in the journal."""

    execution_id: str
    ranks: str
    state: str
    count: int | None
    notebook: str | None
    cell_id: str | None
    is_undone: bool = False
    started_at: float | None = None
    num_ranks: int | None = None  # of the group when it began; an earlier version has not recorded it

    @property
    def is_ok(self) -> bool:
        """Whether all ranks succeeded."""
        return self.state == "ok"


def latest(runs: Iterable[RecordedRun], codes: Mapping[str, str]) -> dict[str, list[RecordedRun]]:
    """Return the runs by cell, only successful runs if there are any; code identifies a cell without an id."""
    cells: dict[str, list[RecordedRun]] = {}
    for run in runs:
        key = f"id {run.cell_id}" if run.cell_id else f"code {codes.get(run.execution_id, run.execution_id).strip()}"
        cells.setdefault(key, []).append(run)
    return {key: [run for run in found if run.is_ok] or found for key, found in cells.items()}
