"""A look at the ranks: what they tell of themselves may be anything, and the work grows with the ranks, not their square."""

import math
from types import SimpleNamespace

import pytest

from jupyter_dist.agent.group.cells.execution import AgentExecution
from jupyter_dist.agent.group.cells.order import ExecutionQueue
from jupyter_dist.agent.watch.look import finite, look_at, place_of
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.protocol.wire.specs import ExecutionSpec

NUM_RANKS = 64
NUM_CELLS = 200


@pytest.mark.parametrize("value", [None, "5", "inf", math.inf, -math.inf, math.nan, True, [1], {}, 10**400])
def test_what_is_no_finite_number_is_none(value):
    assert finite(value) is None


@pytest.mark.parametrize("value", [0, 1.5, -2, 1 << 50])
def test_numbers_are_as_they_were_told(value):
    assert finite(value) == value


class CountedRanks(RankSet):
    """The ranks of a cell; counts how often they are read."""

    num_reads = 0

    def __iter__(self):
        CountedRanks.num_reads += 1
        return super().__iter__()

    def __contains__(self, rank):
        CountedRanks.num_reads += 1
        return super().__contains__(rank)


class IdleRank:
    is_silent = False
    state = "idle"
    execution_id = None
    cell_error = None

    def __init__(self, rank):
        self.rank = rank

    async def request(self, *_):
        return {"stack": []}


def group_of(ranks_of_cells, queued=()):
    """A group of idle ranks, and its cells: those that have ended, then the queued ones."""
    queue = ExecutionQueue()
    for number, ranks in enumerate([*ranks_of_cells, *queued], start=1):
        spec = ExecutionSpec(execution_id=f"e-{number}", ranks=tuple.__new__(CountedRanks, ranks))
        execution = AgentExecution(spec, b"")
        if number <= len(ranks_of_cells):
            execution.start(number)
            execution.finish()
        queue.add(execution)
    queue.in_state("queued")
    CountedRanks.num_reads = 0
    return SimpleNamespace(ranks=[IdleRank(rank) for rank in range(NUM_RANKS)], dispatcher=SimpleNamespace(queue=queue))


async def test_a_look_stops_at_the_cell_that_the_last_rank_had():
    cells = [range(NUM_RANKS)] * (NUM_CELLS - 2) + [[0, 1]] + [[1]]
    facts = await look_at(group_of(cells))
    places = [facts[rank].place for rank in range(3)]
    assert places == [f"since cell [{number}]" for number in (NUM_CELLS - 1, NUM_CELLS, NUM_CELLS - 2)]
    assert CountedRanks.num_reads == 3


async def test_a_look_reads_each_cell_once_even_if_a_rank_never_had_one():
    facts = await look_at(group_of([range(NUM_RANKS - 1)] * NUM_CELLS))
    assert facts[NUM_RANKS - 1].place == ""
    assert facts[0].place == f"since cell [{NUM_CELLS}]"
    assert CountedRanks.num_reads <= NUM_CELLS


async def test_queued_cells_are_read_once_for_all_ranks():
    facts = await look_at(group_of([range(NUM_RANKS)], queued=[[0, 2], [1]]))
    assert [rank for rank, fact in facts.items() if fact.may_start] == [0, 1, 2]
    assert CountedRanks.num_reads < NUM_RANKS


def test_code_that_exec_runs_is_at_the_line_that_runs_it():
    cell = {"file": "<ipython-input-3-0>", "line": 2, "function": "<module>", "code": "exec(text)"}
    inner = {"file": "<string>", "line": 1, "function": "<module>", "code": ""}
    assert place_of({"stack": [cell, inner]}) == "line 2 of cell [3]: exec(text)"
    assert place_of({"stack": [inner]}) == "line 1 of <string>"
