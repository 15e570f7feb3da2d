"""Which version of each cell ran on which ranks, and which ranks have missed it (docs/decisions/0031). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jupyter_dist.parts.drift import models as drift
from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.server.cells.names import missing_names
from jupyter_dist.server.cells.python import is_empty, to_python

if TYPE_CHECKING:
    from jupyter_dist.protocol.states import ExecutionState

# A rank that failed in a cell has run it, as the cell's own state shows. A rank that died in it has not.
_RAN = frozenset({"ok", "running", "error", "interrupted"})
_REASONS: tuple[drift.MissedReason, ...] = ("replaced", "changed", "skipped")
# How a cell ended as a whole: the first of these that it has on a rank.
_WORST: tuple[ExecutionState, ...] = ("lost", "error", "interrupted", "aborted", "running", "queued")
MAX_TRANSLATED = 300  # cells whose names are read to put them in order

# The notebook and the id of a cell in it; for code outside notebooks, only its checksum.
Key = tuple[str, ...]


@dataclass(frozen=True)
class Processes:
    """The processes of ranks: when they began, and when ranks had none."""

    world_size: int
    living: frozenset[int]
    absences: Mapping[int, Sequence[Sequence[float]]]  # by rank: from when to when it had no process
    # By rank: from when to when it has the values of cells that ran before its process began, of a save or a copy.
    covered: Mapping[int, Sequence[Sequence[float]]] = field(default_factory=dict)

    @classmethod
    def of(cls, group: models.GroupModel) -> Processes:
        """Return the processes of a group's ranks."""
        ranks = group["ranks"]
        living = frozenset(rank["rank"] for rank in ranks if rank["state"] != "dead")
        absences = {rank["rank"]: found for rank in ranks if (found := rank.get("absences"))}
        covered = {rank["rank"]: found for rank in ranks if (found := rank.get("covered"))}
        return cls(group["world_size"], living, absences, covered)

    def began(self, rank: int) -> float:
        """Return when the rank's process replaced another one; 0 for the first process."""
        return self.absences[rank][-1][1] if rank in self.absences else 0.0

    def has_values(self, rank: int, at: float) -> bool:
        """Whether the rank's process has what a cell had left that ran on it, or on all ranks, at that time."""
        return at >= self.began(rank) or self.are_covered(rank, at)

    def are_covered(self, rank: int, at: float) -> bool:
        """Whether the rank has the values of cells of that time from a save or a copy."""
        return any(start <= at <= end for start, end in self.covered.get(rank, ()))

    def were_absent(self, ranks: Iterable[int], at: float) -> bool:
        """Whether none of these ranks had a process then."""
        return all(any(start <= at <= end for start, end in self.absences.get(rank, ())) for rank in ranks)


@dataclass(frozen=True)
class Event:
    """One execution, by rank."""

    run: models.ExecutionModel
    statuses: Mapping[int, ExecutionState]
    checksum: str
    at: float

    @property
    def is_ok(self) -> bool:
        """Whether the execution succeeded on any rank."""
        return "ok" in self.statuses.values()


@dataclass(frozen=True)
class CatchUpCell:
    """A cell: its model in the API, and its places among the executions."""

    model: drift.DriftCell
    first: int  # the place of its first successful run, else of its first run
    last: int
    checksums: tuple[str, ...]  # of its versions

    @property
    def is_missed(self) -> bool:
        """Whether ranks have missed it."""
        return bool(self.model["missed"])


def cells_of(executions: Sequence[models.ExecutionModel], processes: Processes) -> list[CatchUpCell]:
    """Return the cells of these executions.

    Args:
        executions: all that have begun in this generation, oldest first, without silent ones.
        processes: the processes of the ranks.
    """
    events = events_of(executions)
    cells: dict[Key, list[int]] = {}
    for place, event in enumerate(events):
        cells.setdefault(_key(event), []).append(place)
    named = {key: places for key, places in cells.items() if len(key) > 1}
    # The same code, sent without a cell (to catch up, or by a client), is a run of the cell, too.
    versions = {events[place].checksum for places in named.values() for place in places}
    found = named | {key: places for key, places in cells.items() if len(key) == 1 and key[0] not in versions}
    return [_cell(events, places, cells, processes) for places in found.values()]


def ordered(cells: Sequence[CatchUpCell], codes: Mapping[str, str]) -> list[CatchUpCell]:
    """Return the cells in the order in which to run them again, where there are too many to consider all runs.

    A cell that ran again stands where it first succeeded, because later cells use its names; unless fewer of the cells
    in `codes`, by their execution, use names before they are defined where it ran last.
    """
    orders = [sorted(cells, key=lambda cell: cell.first), sorted(cells, key=lambda cell: cell.last)]
    if len(codes) > MAX_TRANSLATED or orders[0] == orders[1]:
        return orders[0]
    plain = {execution_id: to_python(code) for execution_id, code in codes.items()}

    def num_missing(order: list[CatchUpCell]) -> int:
        return len(missing_names(plain[at] for cell in order if (at := cell.model["execution_id"]) in plain))

    return min(orders, key=num_missing)


def with_code(cell: CatchUpCell, code: str | None) -> drift.DriftCell:
    """Return the model of a cell with its code; offered to replaced ranks where it ended well."""
    if code is None or is_empty(code):  # a call of a client has only a comment as code
        return cell.model
    good = [part for part in cell.model["missed"] if part["reason"] == "replaced" and part.get("state") == "ok"]
    offered = {rank for part in good for rank in RankSet.from_text(part["ranks"])}
    return {**cell.model, "code": code, "offered": str(RankSet(offered)) if offered else ""}


def events_of(executions: Iterable[models.ExecutionModel]) -> list[Event]:
    """Return the events of executions, in the same order."""
    return [_event(run) for run in executions]


def ran_on(event: Event, rank: int, processes: Processes) -> bool:
    """Whether the execution ran on a rank in the process of now, or in one whose values that has."""
    return event.statuses.get(rank) in _RAN and processes.has_values(rank, event.at)


def _event(run: models.ExecutionModel) -> Event:
    statuses = {rank: part["status"] for part in run["statuses"] for rank in RankSet.from_text(part["ranks"])}
    return Event(run, statuses, run.get("code_checksum", run["id"]), run["started_at"] or 0.0)


def _key(event: Event) -> Key:
    cell_id = event.run["cell_id"]
    return (event.run["notebook"] or "", cell_id) if cell_id else (event.checksum,)


def _wanted(events: Sequence[Event], places: Sequence[int]) -> int:
    """Return the place of the run that counts: the last run that succeeded on a rank, else the last run."""
    return next((place for place in reversed(places) if events[place].is_ok), places[-1])


def _cell(
    events: Sequence[Event], own: Sequence[int], cells: Mapping[Key, Sequence[int]], processes: Processes
) -> CatchUpCell:
    """Return a cell from the places of its runs; other runs of the code that counts are runs of the cell, too."""
    wanted = events[_wanted(events, own)]
    others = cells.get((wanted.checksum,), ())
    last = _last_runs([events[place] for place in sorted({*own, *others})], processes)
    versions = list(dict.fromkeys(events[place].checksum for place in own))
    ended = [events[place] for place in sorted({*own, *others}) if events[place].checksum == wanted.checksum]
    missed = _with_ends(_missed([events[place] for place in own], wanted, last, processes), ended)
    seconds = [part["seconds"] for part in wanted.run["statuses"] if part["seconds"] is not None]
    model: drift.DriftCell = {
        "execution_id": wanted.run["id"],
        "execution_count": wanted.run["execution_count"],
        "notebook": wanted.run["notebook"],
        "cell_id": wanted.run["cell_id"],
        "line": wanted.run.get("line") or "",
        "state": "ok" if wanted.is_ok else wanted.run["state"],
        "seconds": max(seconds, default=None),
        "versions": len(versions),
        "version": versions.index(wanted.checksum) + 1,
        "runs": list(_cell_runs(last, versions)),
        "missed": missed,
        "offered": "",
        "code": None,
        "uses": [],
    }
    good = [place for place in own if events[place].is_ok] or own
    return CatchUpCell(model, good[0], good[-1], tuple(versions))


def _last_runs(events: Sequence[Event], processes: Processes) -> dict[int, Event]:
    """Return the last run on each living rank in its current process: the last successful one, if there is one."""
    last: dict[int, Event] = {}
    for event in events:
        for rank, status in event.statuses.items():
            if rank not in processes.living or status not in _RAN or not processes.has_values(rank, event.at):
                continue
            if status in ("ok", "running") or rank not in last or last[rank].statuses[rank] not in ("ok", "running"):
                last[rank] = event
    return last


def _missed(
    own: Sequence[Event], wanted: Event, last: Mapping[int, Event], processes: Processes
) -> dict[drift.MissedReason, list[int]]:
    by_reason: dict[drift.MissedReason, list[int]] = {}
    runs = [(event, was_on_all(event, processes)) for event in own]
    for rank in sorted(processes.living):
        if rank not in last:
            began = processes.began(rank)
            if processes.are_covered(rank, wanted.at) and was_on_all(wanted, processes):
                continue  # it has copies of what the cell had left
            # The cell ran in the process before; or there was none, and the cell ran on all ranks that existed.
            was_meant = any(run.at < began and (on_all or rank in run.statuses) for run, on_all in runs)
            by_reason.setdefault("replaced" if was_meant else "skipped", []).append(rank)
        elif last[rank].checksum != wanted.checksum:
            by_reason.setdefault("changed", []).append(rank)
    return {name: by_reason[name] for name in _REASONS if name in by_reason}


def _with_ends(missed: Mapping[drift.MissedReason, Sequence[int]], runs: Sequence[Event]) -> list[drift.MissedCell]:
    """Return the ranks that have missed a cell by reason, and by how the cell ended on them.

    A cell that failed anywhere is no state to begin from, and one in which a rank died would kill it again.
    """
    ends = last_statuses(runs)
    whole: ExecutionState = next((state for state in _WORST if state in ends.values()), "ok")
    parts: dict[tuple[drift.MissedReason, ExecutionState, bool], list[int]] = {}
    for reason, ranks in missed.items():
        for rank in ranks:
            own: ExecutionState = ends.get(rank, "ok")
            parts.setdefault((reason, whole if own == "ok" else own, own != "ok"), []).append(rank)
    found: list[drift.MissedCell] = []
    for (reason, state, is_own), ranks in parts.items():
        where = ranks if is_own else [rank for rank, status in ends.items() if status == state]
        ended: drift.MissedCell = {"ranks": str(RankSet(ranks)), "reason": reason, "state": state}
        found.append(ended if state == "ok" else {**ended, "ended_on": str(RankSet(where))})
    return found


def last_statuses(runs: Iterable[Event]) -> dict[int, ExecutionState]:
    """Return how the last of these runs on each rank ended there."""
    return {rank: status for run in runs for rank, status in run.statuses.items()}


def was_on_all(event: Event, processes: Processes) -> bool:
    """Return whether a cell ran on all ranks that had a process then."""
    others = (rank for rank in range(processes.world_size) if rank not in event.statuses)
    return processes.were_absent(others, event.at)


def _cell_runs(last: Mapping[int, Event], versions: Sequence[str]) -> Iterator[drift.CellRun]:
    by_run: dict[str, list[int]] = {}
    for rank, event in last.items():
        by_run.setdefault(event.run["id"], []).append(rank)
    for ranks in sorted(by_run.values()):
        event = last[ranks[0]]
        yield {
            "ranks": str(RankSet(ranks)),
            "version": versions.index(event.checksum) + 1,
            "execution_id": event.run["id"],
            "execution_count": event.run["execution_count"],
        }
