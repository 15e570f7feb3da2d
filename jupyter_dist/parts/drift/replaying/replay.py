"""The order in which replaced ranks run the cells that they have missed, to end with the values of the others. Pure.

Cells stand in the order of their last runs. Where a cell had used values of an earlier run (another version of a
cell, or the same cell that counts up), that run is sent as well, in front of the cell (docs/decisions/0031).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from jupyter_dist.parts.drift import models as drift
from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.ranks import RankSet

from .missed import CatchUpCell, Event, Processes, events_of, ordered, ran_on, was_on_all, with_code
from .names import Names, names_of, with_bodies

MAX_RUNS = 300  # whose names are read


def in_order(
    executions: Sequence[models.ExecutionModel],
    processes: Processes,
    cells: Sequence[CatchUpCell],
    codes: Mapping[str, str],
) -> list[drift.DriftCell]:
    """Return the models of these cells, and of earlier runs that replaced ranks need, in order.

    Args:
        executions: the executions of the cells, oldest first.
        processes: the processes of the ranks.
        cells: all of `cells_of`.
        codes: by execution; only known code.
    """
    shown = {
        cell.model["execution_id"]: with_code(cell, codes.get(cell.model["execution_id"]) if cell.is_missed else None)
        for cell in cells
    }
    ranks = sorted({rank for model in shown.values() for rank in RankSet.from_text(model["offered"])})
    if not ranks or len(executions) > MAX_RUNS:
        return [shown[cell.model["execution_id"]] for cell in ordered(cells, codes)]
    events = events_of(executions)
    names = with_bodies(names_of(codes.get(event.run["id"], "")) for event in events)
    wanted: dict[int, set[int]] = {}  # by place of the run: for which ranks
    for rank in ranks:
        targets = {
            cell.last for cell in cells if rank in RankSet.from_text(shown[cell.model["execution_id"]]["offered"])
        }
        for place in _for_rank(rank, targets, events, names, processes):
            wanted.setdefault(place, set()).add(rank)
    placed = {cell.last: shown[cell.model["execution_id"]] for cell in cells}
    for place in wanted.keys() - placed.keys():
        code = codes.get(events[place].run["id"])
        owner = next((cell for cell in cells if events[place].checksum in cell.checksums), None)
        if code and owner is not None:
            placed[place] = _earlier(owner, events[place], wanted[place], code)
    for place, some in wanted.items():
        if place in placed and not placed[place]["offered"]:
            placed[place] = _again(placed[place], some, codes.get(events[place].run["id"]))
    return list(_with_uses(placed, names))


def _for_rank(
    rank: int, targets: set[int], events: Sequence[Event], names: Sequence[Names], processes: Processes
) -> set[int]:
    """Return the places of the runs that a rank needs to have the values that the targets left on other ranks."""
    began = processes.began(rank)
    needs: set[str] = set()
    found: set[int] = set()
    deadly = _deadly(rank, events)
    for place in range(max(targets, default=-1), -1, -1):
        event = events[place]
        is_lost = event.at < began and not processes.are_covered(rank, event.at)
        was_there = is_lost and (rank in event.statuses or was_on_all(event, processes))
        is_good = event.is_ok and event.statuses.get(rank, "ok") == "ok" and event.checksum not in deadly
        if place in targets or (is_good and was_there and names[place].writes & needs):
            found.add(place)
            needs = (needs - names[place].sets) | names[place].reads
    # Later cells, which the rank has run as well, set these names again.
    touched = {name for place in found for name in names[place].sets}
    for place, event in enumerate(events):
        is_shared = any(other not in processes.absences for other in event.statuses)
        if place not in found and is_shared and ran_on(event, rank, processes) and names[place].sets & touched:
            found.add(place)
            touched |= names[place].sets
    return found


def _deadly(rank: int, events: Sequence[Event]) -> set[str]:
    """Return the checksums of the code in whose last run a rank died."""
    last = {event.checksum: event.statuses[rank] for event in events if rank in event.statuses}
    return {checksum for checksum, status in last.items() if status == "lost"}


def _earlier(owner: CatchUpCell, event: Event, ranks: Iterable[int], code: str) -> drift.DriftCell:
    """Return an earlier run of a cell, to be sent before the run that counts."""
    run = event.run
    seconds = [part["seconds"] for part in run["statuses"] if part["seconds"] is not None]
    earlier: drift.DriftCell = {
        **owner.model,
        "execution_id": run["id"],
        "execution_count": run["execution_count"],
        "line": run.get("line") or "",
        "state": "ok",
        "seconds": max(seconds, default=None),
        "version": owner.checksums.index(event.checksum) + 1,
        "runs": [],
    }
    return _again(earlier, ranks, code)


def _again(model: drift.DriftCell, ranks: Iterable[int], code: str | None) -> drift.DriftCell:
    """Return a run as missed by ranks, and needed by a later cell."""
    offered = str(RankSet(ranks))
    missed: drift.MissedCell = {"ranks": offered, "reason": "replaced", "state": "ok"}
    return {**model, "missed": model["missed"] or [missed], "offered": offered, "code": code}


def _with_uses(placed: Mapping[int, drift.DriftCell], names: Sequence[Names]) -> Iterator[drift.DriftCell]:
    """Yield the cells in order, each with the cells that it uses: if one of them is not offered, it is not either."""
    shown: dict[int, drift.DriftCell] = {}
    for place, model in sorted(placed.items()):
        uses = _uses(place, shown, names) if model["offered"] else []
        is_sent = all(one["offered"] for one in shown.values() if one["execution_id"] in uses)
        shown[place] = {**model, "uses": uses, "offered": model["offered"] if is_sent else ""}
        yield shown[place]


def _uses(place: int, placed: Mapping[int, drift.DriftCell], names: Sequence[Names]) -> list[str]:
    """Return the executions before, missed as well, whose values this execution uses."""
    found: list[str] = []
    needs = set(names[place].reads)
    for before in sorted(placed, reverse=True):
        if _leaves(placed[before], names[before]) & needs:
            found.append(placed[before]["execution_id"])
            needs -= names[before].sets
    return found


def _leaves(model: drift.DriftCell, names: Names) -> frozenset[str]:
    """Return the names that a missed cell gives later ones: if it is not sent, only names that it sets in any case."""
    if model["offered"]:
        return names.writes
    is_withheld = any(part["reason"] == "replaced" for part in model["missed"]) and model["state"] == "ok"
    return names.sets - names.imports if is_withheld else frozenset()
