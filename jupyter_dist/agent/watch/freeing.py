"""Decides when an interrupt ends collectives on devices: when they cannot end, on all ranks of the cell together.

Ranks cannot decide it. A collective that waits for another rank looks the same from inside in healthy training and in a
hang, and to end it destroys the communicators: on one rank alone, that leaves the others hanging. So an interrupt first
raises KeyboardInterrupt wherever Python gets to run. Collectives are ended when a part has found that they cannot
end, or when the user interrupts again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

from jupyter_dist.agent.group.cells.execution import AgentExecution
from jupyter_dist.agent.group.group import AgentGroup
from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.protocol.accelerators import ACCELERATORS

# Two keys that are pressed at once are one interrupt.
AGAIN_SECONDS = 1.0


class Interruptible(Protocol):
    """The facts about a rank that decide."""

    @property
    def rank(self) -> int:
        """Return its number."""

    @property
    def interrupted_seconds(self) -> float:
        """Return how long ago its cell was interrupted; 0 if it was not."""


def was_interrupted(execution: AgentExecution, ranks: Iterable[Interruptible]) -> bool:
    """Whether some rank of a running execution was interrupted, and may have ended its part by it."""
    ended = any(status == "interrupted" for status, _ in execution.statuses.values())
    running = set(execution.running_ranks)
    return ended or any(rank.rank in running and rank.interrupted_seconds > 0 for rank in ranks)


def must_free(execution: AgentExecution, asked: Collection[Interruptible]) -> bool:
    """Whether an interrupt of these ranks ends the collectives of an execution; call it before they are interrupted."""
    running = set(execution.running_ranks)
    of_it = [rank for rank in asked if rank.rank in running]
    return bool(of_it) and (execution.cannot_end or any(rank.interrupted_seconds >= AGAIN_SECONDS for rank in of_it))


class Freeing:
    """Interrupts ranks of a group, and ends their collectives on devices when that is right."""

    def __init__(self, group: AgentGroup) -> None:
        self._group = group
        self._has_devices = ACCELERATORS[group.spec.accelerator].has_devices

    def interrupt(self, ranks: list[RankProcess]) -> None:
        """Interrupt the cells of these ranks."""
        freed = [execution for execution in self._running() if must_free(execution, ranks)] if self._has_devices else []
        together = {number for execution in freed for number in execution.running_ranks}
        for rank in ranks:
            if rank.rank not in together:
                rank.interrupt()
        self._free(freed)

    def judged(self, execution: AgentExecution) -> None:
        """Handle a new verdict: an interrupt that left others waiting, as one of some ranks does, ends that."""
        if self._has_devices and execution.cannot_end and was_interrupted(execution, self._group.ranks):
            self._free([execution])

    def _free(self, executions: Iterable[AgentExecution]) -> None:
        for execution in executions:
            running = set(execution.running_ranks)
            for rank in self._group.ranks:
                if rank.rank in running and rank.execution_id == execution.id:
                    rank.interrupt(frees=True)

    def _running(self) -> list[AgentExecution]:
        return self._group.dispatcher.queue.in_state("running")
