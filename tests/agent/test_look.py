"""A look at the ranks: what they tell of themselves may be anything, and the work grows with the ranks, not their square."""

import asyncio
import math
import time
from types import SimpleNamespace

import pytest

from jupyter_dist.agent.group.cells.execution import AgentExecution
from jupyter_dist.agent.group.cells.order import ExecutionQueue
from jupyter_dist.agent.group.cells.proving import Proving
from jupyter_dist.agent.watch import hangs
from jupyter_dist.agent.watch.look import finite, look_at
from jupyter_dist.agent.watch.verdicts import verdict
from jupyter_dist.agent.watch.verdicts.facts import Fact, WaitedCall
from jupyter_dist.agent.watch.verdicts.verdict import judge
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


@pytest.mark.parametrize(
    ("of_first", "reason"),
    [
        (
            Fact(0, "waits", WaitedCall("all_reduce", "default", frozenset(range(NUM_RANKS)), shape="float [5]")),
            "shapes",
        ),
        (Fact(0, "waits", WaitedCall("broadcast", "default", frozenset(range(NUM_RANKS)), peer=0)), "mismatch"),
        (Fact(0, "idle"), "missing"),
        (Fact(0, "runs"), "busy"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_ranks_in_one_collective_are_judged_together(monkeypatch, of_first, reason):
    compared = []
    meet = verdict._meet
    monkeypatch.setattr(verdict, "_meet", lambda call, other: compared.append(other) or meet(call, other))

    def facts():
        call = lambda: WaitedCall("all_reduce", "default", frozenset(range(NUM_RANKS)), shape="float [4]")  # noqa: E731
        return {0: of_first} | {rank: Fact(rank, "waits", call(), execution_id="e") for rank in range(1, NUM_RANKS)}

    found = judge(facts(), facts())["e"]
    assert (found["reason"], found["waiting"][-1]["ranks"]) == (reason, f"1-{NUM_RANKS - 1}")
    assert len(compared) <= 3 * NUM_RANKS


async def test_a_cell_that_begins_soon_after_another_is_looked_at_as_soon():
    cells = []
    queue = SimpleNamespace(in_state=lambda _: cells)
    spec = SimpleNamespace(accelerator="cpu", world_size=64)
    group = SimpleNamespace(dispatcher=SimpleNamespace(queue=queue), spec=spec)
    watch = hangs.HangWatch(group, lambda _: None, Proving())
    loop = asyncio.get_running_loop()
    watch._look_in(hangs.LOOK_SECONDS)  # after a look at a cell that has ended since
    watch.changed(SimpleNamespace(state="running", is_final=False, began=time.monotonic()))
    assert watch._timer.when() - loop.time() <= hangs.FIRST_SECONDS
    # A rank that leaves its cell during a look is looked at soon after it, too.
    watch._timer.cancel()
    watch._looking = loop.create_future()
    watch.changed(SimpleNamespace(state="running", is_final=False, began=time.monotonic() - 10))
    assert watch._wish == hangs.SETTLE_SECONDS
    watch.stop()


async def test_the_look_of_a_cell_that_has_ended_does_not_come_to_the_next_one():
    cells = []
    queue = SimpleNamespace(in_state=lambda _: cells)
    spec = SimpleNamespace(accelerator="cpu", world_size=1024)
    watch = hangs.HangWatch(
        SimpleNamespace(dispatcher=SimpleNamespace(queue=queue), spec=spec), lambda _: None, Proving()
    )
    first, second = (SimpleNamespace(state="running", is_final=False, began=time.monotonic()) for _ in range(2))
    cells[:] = [first, second]
    watch.changed(first)
    planned = watch._timer
    cells.remove(first)
    watch.changed(SimpleNamespace(state="ok", is_final=True))
    assert watch._timer is planned  # the other cell still runs
    assert not planned.cancelled()
    cells.remove(second)
    watch.changed(SimpleNamespace(state="ok", is_final=True))
    assert planned.cancelled()
    third = SimpleNamespace(state="running", is_final=False, began=time.monotonic())
    cells.append(third)
    watch.changed(third)
    assert watch._timer.when() > planned.when()
    watch.stop()


@pytest.mark.parametrize("world_size", [1024, 8192])
async def test_ranks_of_a_large_group_are_looked_at_later_and_not_for_ever_later(world_size):
    group = SimpleNamespace(spec=SimpleNamespace(accelerator="cpu", world_size=world_size))
    watch = hangs.HangWatch(group, lambda _: None, Proving())
    watch._looking = asyncio.get_running_loop().create_future()
    watch.changed(SimpleNamespace(state="running", is_final=False, began=time.monotonic() - 10))
    assert hangs.SETTLE_SECONDS < watch._wish <= hangs.LOOK_SECONDS
    watch.stop()
