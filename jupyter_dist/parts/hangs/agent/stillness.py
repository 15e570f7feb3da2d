"""For how long no rank of a cell has moved: all may wait in one lock, store or queue, and then no rank is missing."""

from __future__ import annotations

from jupyter_dist.agent.watch.facts import Fact, Facts

from .verdict import MOVES_SECONDS, is_same


class Stillness:
    """Compares each look with the one before."""

    def __init__(self) -> None:
        self._before: Facts = {}
        self._since: dict[str, float] = {}  # by execution, in monotonic seconds

    def after(self, now: Facts, cpu_counts: bool, moment: float) -> dict[str, float]:
        """Return for how many seconds no rank of an execution has moved, by its id, after another look."""
        cells = {fact.execution_id for fact in now.values() if fact.execution_id is not None}
        for cell in cells:
            here = [fact for fact in now.values() if fact.execution_id == cell]
            if any(self._may_move(fact, cpu_counts) for fact in here):
                self._since[cell] = moment
        self._since = {cell: self._since.get(cell, moment) for cell in cells}
        self._before = now
        return {cell: moment - since for cell, since in self._since.items()}

    def _may_move(self, fact: Fact, cpu_counts: bool) -> bool:
        before = self._before.get(fact.rank)
        if before is None or fact.state not in ("runs", "waits") or fact.may_start or fact.sleeps:
            return True
        # Without a frame of the user's code, the cell awaits; on a device, processor time proves nothing.
        is_unknown = not fact.place or (fact.state == "runs" and not cpu_counts and not fact.left_over)
        used = fact.cpu_seconds - before.cpu_seconds
        return is_unknown or not is_same(before, fact) or (cpu_counts and used > MOVES_SECONDS)
