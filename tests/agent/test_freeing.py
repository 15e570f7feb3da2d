"""When an interrupt ends collectives on devices: only if they cannot end, and on all ranks of the cell together."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from jupyter_dist.agent.group.cells.execution import AgentExecution
from jupyter_dist.agent.watch.freeing import AGAIN_SECONDS, Freeing
from jupyter_dist.protocol.wire.specs import ExecutionSpec


@dataclass
class Rank:
    """A rank as Freeing sees it, and what it is told."""

    rank: int
    execution_id: str | None = "e1"
    interrupted_seconds: float = 0.0
    told: tuple[bool, ...] = ()

    def interrupt(self, *, frees=False):
        self.interrupted_seconds = self.interrupted_seconds or 0.01
        self.told = (*self.told, frees)


class Queue:
    def __init__(self, executions):
        self.executions = executions

    def in_state(self, _):
        return self.executions


class Group:
    """A group on devices with these cells."""

    def __init__(self, executions, accelerator="cuda", size=4):
        self.spec = self
        self.accelerator = accelerator
        self.dispatcher = self
        self.queue = Queue(executions)
        ids = {rank: execution.id for execution in executions for rank in execution.spec.ranks}
        self.ranks = [Rank(rank, ids.get(rank)) for rank in range(size)]

    def told(self):
        return {rank.rank: rank.told for rank in self.ranks if rank.told}


def running(name, ranks):
    execution = AgentExecution(ExecutionSpec(execution_id=name, ranks=ranks), b"dist.all_reduce(x)")
    execution.start(1)
    return execution


def hangs(execution):
    execution.cannot_end = True


def test_an_interrupt_of_healthy_training_ends_no_collective_however_often_it_comes_in_its_first_second():
    group = Group([running("e1", [0, 1])])
    freeing = Freeing(group)
    freeing.interrupt(group.ranks[:2])
    freeing.interrupt(group.ranks[:2])
    assert group.told() == {0: (False, False), 1: (False, False)}
    for rank in group.ranks[:2]:
        rank.interrupted_seconds = AGAIN_SECONDS
    freeing.interrupt(group.ranks[:1])
    assert group.told() == {0: (False, False, True), 1: (False, False, True)}


def test_a_hang_is_ended_at_the_first_interrupt_on_all_ranks_of_the_cell():
    hung, healthy = running("e1", [0, 1, 2]), running("e2", [3])
    hangs(hung)
    group = Group([hung, healthy])
    Freeing(group).interrupt(group.ranks[:1])
    assert group.told() == {0: (True,), 1: (True,), 2: (True,)}


def test_a_cell_beside_a_hang_is_interrupted_and_keeps_its_collectives():
    hung, healthy = running("e1", [0, 1]), running("e2", [2, 3])
    hangs(hung)
    group = Group([hung, healthy])
    Freeing(group).interrupt(group.ranks)
    assert group.told() == {0: (True,), 1: (True,), 2: (False,), 3: (False,)}


@pytest.mark.parametrize("interrupted", [[0], [0, 1, 2]])
def test_what_an_interrupt_leaves_hanging_is_ended_when_that_is_known(interrupted):
    """As a part of the ranks that train does: the others wait for it. Several times in one group."""
    for name in ("e1", "e2"):
        execution = running(name, [0, 1, 2])
        group = Group([execution])
        freeing = Freeing(group)
        freeing.judged(execution)
        freeing.interrupt([group.ranks[rank] for rank in interrupted])
        freeing.judged(execution)  # nothing is known yet
        assert group.told() == dict.fromkeys(interrupted, (False,))
        execution.ranks_ended([0], "interrupted", [1.0])
        group.ranks[0] = Rank(0, None)  # idle
        hangs(execution)
        freeing.judged(execution)
        assert {rank: told[-1] for rank, told in group.told().items()} == {1: True, 2: True}


def test_a_hang_that_nobody_interrupts_is_left_alone():
    execution = running("e1", [0, 1])
    hangs(execution)
    group = Group([execution])
    Freeing(group).judged(execution)
    assert group.told() == {}


def test_ranks_on_cpu_are_interrupted_one_by_one():
    """There each rank finds out by itself: it breaks connections only where its own main thread waits for one."""
    execution = running("e1", [0, 1])
    hangs(execution)
    group = Group([execution], "cpu")
    freeing = Freeing(group)
    freeing.interrupt(group.ranks[:1])
    freeing.judged(execution)
    assert group.told() == {0: (False,)}
