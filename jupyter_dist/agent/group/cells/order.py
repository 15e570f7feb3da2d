"""The order of cells, decided here and nowhere else: which may start now, and which must not run after a failure. Pure.

- A cell waits for earlier cells of the same ranks. A rank that has finished its part is free for other notebooks.
- A cell *follows* another one of its notebook, and the cell that it names as `after`: it waits for all ranks of that
  cell, and does not run if that cell fails, unless the failed one was submitted without `stop_on_error`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.protocol.states import ExecutionState

from .execution import AgentExecution


def is_of_same_notebook(one: AgentExecution, other: AgentExecution) -> bool:
    """Whether both were submitted for the same notebook."""
    return None is not one.spec.notebook == other.spec.notebook


def follows(later: AgentExecution, earlier: AgentExecution) -> bool:
    """Whether a later execution depends on the outcome of an earlier one."""
    return later.spec.after == earlier.id or is_of_same_notebook(later, earlier)


def kept_ranks(earlier: AgentExecution, later: AgentExecution) -> RankSet:
    """Return the ranks that an earlier execution keeps from a later one."""
    if earlier.state != "running" or follows(later, earlier):
        return earlier.spec.ranks
    return earlier.running_ranks


class ExecutionQueue:
    """First come, first served on every rank; cells for disjoint rank sets run at the same time."""

    MAX_KEPT = 2000

    def __init__(self) -> None:
        self._executions: dict[str, AgentExecution] = {}  # oldest first
        self._unfinished: dict[str, AgentExecution] = {}  # not final at the last check

    def __iter__(self) -> Iterator[AgentExecution]:
        return iter(list(self._executions.values()))

    def after(self, execution_id: str | None) -> list[AgentExecution]:
        """Return the executions queued after the given one; all, if that one is no longer kept."""
        ids = list(self._executions)
        start = ids.index(execution_id) + 1 if execution_id in self._executions else 0
        return [self._executions[later] for later in ids[start:]]

    def add(self, execution: AgentExecution) -> None:
        """Queue an execution. Ended ones are dropped beyond MAX_KEPT, the oldest first; their journal is kept."""
        self._drop_finished()
        self._executions[execution.id] = self._unfinished[execution.id] = execution
        surplus = max(0, len(self._executions) - len(self._unfinished) - self.MAX_KEPT)
        finished = (old.id for old in self._executions.values() if old.is_final)
        for old_id in list(islice(finished, surplus)):
            del self._executions[old_id]

    def get(self, execution_id: str) -> AgentExecution:
        """Return an execution. Raises JupyterDistError `unknown_execution`."""
        if execution_id not in self._executions:
            raise JupyterDistError(
                "unknown_execution",
                say("There is no execution '%1' in this group.", execution_id[:80]),
                say("Only the last %1 are kept; its output is still in the rank's log.", self.MAX_KEPT),
            )
        return self._executions[execution_id]

    def find(self, execution_id: str | None) -> AgentExecution | None:
        """Return an execution, or None."""
        return self._executions.get(execution_id or "")

    def in_state(self, *states: ExecutionState) -> list[AgentExecution]:
        """Return the executions in one of these (non-final) states, oldest first."""
        self._drop_finished()
        return [execution for execution in self._unfinished.values() if execution.state in states]

    def startable(self) -> list[AgentExecution]:
        """Return the queued executions that share no rank with an earlier one."""
        running = self.in_state("running")
        claimed: set[int] = set()  # by queued executions
        found = []
        for execution in self.in_state("queued"):
            ranks = execution.spec.ranks
            is_free = all(kept_ranks(earlier, execution).isdisjoint(ranks) for earlier in running)
            if is_free and claimed.isdisjoint(ranks):
                found.append(execution)
            claimed.update(ranks)
        return found

    def name_waits(self, is_held: bool = False) -> list[AgentExecution]:
        """Note the cell, running or queued, for which the first queued execution of each notebook waits.

        Returns the executions for which that changed. `is_held`: the process group is re-created when no cell runs.
        """
        running, before = self.in_state("running"), list[AgentExecution]()
        seen: set[str | None] = set()
        changed = []
        for execution in self.in_state("queued"):
            text = None
            if execution.spec.notebook not in seen:
                text = _held_by(running) if is_held and running else _wait_of(execution, [*running, *before])
            seen.add(execution.spec.notebook)
            before.append(execution)
            if text != execution.waits_for:
                execution.waits_for = text
                changed.append(execution)
        return changed

    def forbids(self, execution: AgentExecution) -> AgentExecution | None:
        """Return the ended execution whose failure keeps a new one from running; None if there is none.

        Only the execution that is named as `after` counts: a cell submitted after a failure was seen is meant to run.
        """
        before = self.find(execution.spec.after)
        return before if before is not None and before.is_final and before.stops_others else None

    def stopped_by(self, failed: AgentExecution) -> Iterator[tuple[AgentExecution, AgentExecution]]:
        """Yield each queued execution that must not run, with the one before it; the caller ends it before the next."""
        ended = [failed]
        for before in ended:  # grows during the loop
            if before.stops_others:
                behind = self.after(before.id)
                for later in behind:
                    if later.state == "queued" and follows(later, before):
                        yield later, before
                        ended.append(later)

    def _drop_finished(self) -> None:
        for ended in [key for key, execution in self._unfinished.items() if execution.is_final]:
            del self._unfinished[ended]


def _wait_of(execution: AgentExecution, earlier_ones: list[AgentExecution]) -> str | None:
    """Return a sentence about the first of these executions that keeps a cell waiting; None if there is none."""
    for earlier in earlier_ones:
        if not kept_ranks(earlier, execution).isdisjoint(execution.spec.ranks):
            is_same = is_of_same_notebook(execution, earlier)
            # A rank that has finished its part is free for others: a cell of the same notebook waits for the rest.
            ranks = earlier.running_ranks if is_same else kept_ranks(earlier, execution) & execution.spec.ranks
            return f"Waits for {_ranks(ranks)}: {_name(earlier, is_same)}"
    return None


def _held_by(running: list[AgentExecution]) -> str:
    """Return a sentence about what must end before the process group can be re-created."""
    busy = "; ".join(f"{_name(one, is_same=False)} on {_ranks(one.running_ranks)}" for one in running[:3])
    return f"Waits until the process group is re-created, when this has ended: {busy}"


def _ranks(ranks: RankSet) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {ranks}"


def _name(execution: AgentExecution, is_same: bool) -> str:
    """Return how users call an execution of the same, or of another notebook."""
    kind = execution.title or ("a request" if execution.spec.silent else "a queued cell")
    cell = f"cell [{execution.execution_count}]" if execution.execution_count and not execution.spec.silent else kind
    of = "this notebook" if is_same else execution.spec.notebook
    return f"{cell} of {of}" if of else cell
