"""The cells that ranks have run or missed, as `group.drift()` returns them, and their text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from jupyter_dist.client.answers.infos import DriftCellInfo
from jupyter_dist.client.bundles.bundle import rank_label
from jupyter_dist.client.results.result import RankError, Result
from jupyter_dist.parts.drift import models
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.ranks import RankSet


@dataclass(frozen=True)
class Step:
    """A cell to run again, on the ranks that have missed it; `reason` is `replaced`, `changed` or `skipped`."""

    cell: DriftCellInfo
    ranks: str
    reason: str
    code: str

    def __str__(self) -> str:
        return f"{rank_label(self.ranks)}: {_name(self.cell.model)}"


@dataclass(frozen=True)
class NotRun:
    """A step of a catch-up that was not run, and why."""

    step: Step
    why: str

    def __str__(self) -> str:
        return f"{self.step}: {self.why}"


class CaughtUp(list[Result]):
    """The results of the cells that ran, in order; `not_run` has the others, each with the reason."""

    def __init__(self) -> None:
        super().__init__()
        self.not_run: list[NotRun] = []
        self._blocked: set[str] = set()

    def runnable(self, steps: Iterable[Step]) -> Iterator[Step]:
        """Yield the steps that can run, given the steps that did not run before them."""
        for step in steps:
            if self._blocked.intersection(step.cell.uses):
                self._add(step, "it uses what a cell above sets or changes, which was not run")
            else:
                yield step

    @contextmanager
    def running(self, step: Step) -> Iterator[None]:
        """Run the block, and note a refusal of the step. Raises CatchUpError if its cell fails."""
        try:
            yield
        except RankError as err:
            raise CatchUpError(err, self) from err
        except JupyterDistError as err:
            self.refused(step, err)

    def refused(self, step: Step, err: JupyterDistError) -> None:
        """Add a step that needs all ranks; raise any other error."""
        if err.code != "needs_all_ranks":
            raise err
        self._add(step, err.message)

    def _add(self, step: Step, why: str) -> None:
        self.not_run.append(NotRun(step, why))
        self._blocked.add(step.cell.execution_id)

    def __repr__(self) -> str:
        lines = [f"{len(self)} cell{'' if len(self) == 1 else 's'} ran."]
        if self.not_run:
            lines += ["Not run:", *(f"  {one}" for one in self.not_run), RUN_ON_ALL]
        return "\n".join(lines)


RUN_ON_ALL = (
    "To have their values, run these cells again on all ranks, in this order, or send them with dist.broadcast."
)


class CatchUpError(RankError):
    """A cell failed while a rank caught up; `caught_up` has the results so far, with the failed cell's as the last."""

    def __init__(self, error: RankError, caught_up: CaughtUp) -> None:
        super().__init__(error.message, error.result, error.hint)
        self.caught_up = caught_up


class CellDrift:
    """The cells since the last restart; `model` is the answer of the API (docs/api.md, Drift)."""

    def __init__(self, model: models.DriftModel) -> None:
        self.model = model

    def __iter__(self) -> Iterator[DriftCellInfo]:
        return map(DriftCellInfo, self.model["cells"])

    def __len__(self) -> int:
        return len(self.model["cells"])

    @property
    def offered(self) -> list[Step]:
        """Return the cells that replaced ranks have missed and that can be sent to them, in order."""
        cells = (cell for cell in self if cell.offered)
        return [Step(cell, cell.offered, "replaced", cell.code or "") for cell in cells]

    @property
    def missed(self) -> list[Step]:
        """Return all cells that ranks have missed and that can be sent to them, in order, whatever the reason."""
        return [
            Step(cell, part.ranks, part.reason, cell.code)
            for cell in self
            for part in cell.missed
            if cell.code is not None
        ]

    def __repr__(self) -> str:
        rows = [(f"{'*' if cell['offered'] else ' '} {_name(cell)}", _where(cell)) for cell in self.model["cells"]]
        width = max((len(name) for name, _ in rows), default=0)
        lines = [f"{name:{width}}  {where}".rstrip() for name, where in rows]
        return "\n".join([*lines, *_notes(self.model)]) or "No cells ran."


def _name(cell: models.DriftCell) -> str:
    count = cell["execution_count"]
    version = f" (version {cell['version']})" if cell["versions"] > 1 else ""
    return f"[{' ' if count is None else count}] {cell['line'][:60]}{version}"


def _where(cell: models.DriftCell) -> str:
    """Return the ranks on which a cell ran, and the ranks that have missed it."""
    by_version: dict[int, list[str]] = {}
    for run in cell["runs"]:
        by_version.setdefault(run["version"], []).append(run["ranks"])
    parts = [f"{'' if cell['state'] == 'ok' else cell['state'] + ' on '}{_ranks(by_version.pop(cell['version'], []))}"]
    parts += [f"{_ranks(ranks)} ran version {version}" for version, ranks in by_version.items()]
    for part in cell["missed"]:
        if part["reason"] == "replaced":
            parts.append(f"missed by {rank_label(part['ranks'])}, replaced since{_ended(part)}")
        elif part["reason"] == "skipped":
            parts.append(f"not on {rank_label(part['ranks'])}")
    return "; ".join(parts)


def _ended(part: models.MissedCell) -> str:
    """Return how a cell ended that is not offered for that."""
    word = {"lost": "died", "error": "failed", "interrupted": "interrupted"}.get(part.get("state", "ok"))
    return f" ({word} on {rank_label(part['ended_on'])})" if word and "ended_on" in part else ""


def _ranks(ranks: list[str]) -> str:
    return rank_label(str(RankSet(rank for part in ranks for rank in RankSet.from_text(part)))) if ranks else "no rank"


def _notes(model: models.DriftModel) -> Iterator[str]:
    if any(cell["offered"] for cell in model["cells"]):
        yield "* catch_up() sends it to the ranks that were replaced."
    if model["left_out"]:
        yield f"Left out: {model['left_out']} later cells."
    if model["forgotten"]:
        yield "Only the last 2000 executions are known."
