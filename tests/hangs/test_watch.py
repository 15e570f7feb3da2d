"""When a group is looked at for hangs, and that the work grows with the ranks, not their square."""

import asyncio
import time
from types import SimpleNamespace

import pytest

from jupyter_dist.agent.group.cells.proving import Proving
from jupyter_dist.agent.part import AgentCore
from jupyter_dist.agent.watch.facts import Fact, WaitedCall
from jupyter_dist.agent.watch.look import Looks
from jupyter_dist.parts.hangs.agent import HangWatch, hangwatch, verdict
from jupyter_dist.parts.hangs.agent.verdict import judge

NUM_RANKS = 64


def core_of(group):
    return AgentCore(
        group=group,
        starts=None,
        proving=Proving(),
        looks=Looks(group),
        begun_rank=lambda rank: group.ranks[rank],
        used=lambda: None,
        execution_changed=lambda _: None,
        status_changed=lambda: None,
        group_answer=lambda: None,
        interrupt=lambda _: None,
        send=lambda *_: None,
        failed=lambda _: None,
    )


def cell(state, began=0.0):
    return SimpleNamespace(id="e", state=state, is_final=state == "ok", began=began)


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
    watch = HangWatch(core_of(group))
    loop = asyncio.get_running_loop()
    watch._look_in(hangwatch.LOOK_SECONDS)  # after a look at a cell that has ended since
    watch.changed(cell("running", time.monotonic()))
    assert watch._timer.when() - loop.time() <= hangwatch.FIRST_SECONDS
    # A rank that leaves its cell during a look is looked at soon after it, too.
    watch._timer.cancel()
    watch._looking = loop.create_future()
    watch.changed(cell("running", time.monotonic() - 10))
    assert watch._wish == hangwatch.SETTLE_SECONDS
    watch.stop()


async def test_the_look_of_a_cell_that_has_ended_does_not_come_to_the_next_one():
    cells = []
    queue = SimpleNamespace(in_state=lambda _: cells)
    spec = SimpleNamespace(accelerator="cpu", world_size=1024)
    watch = HangWatch(core_of(SimpleNamespace(dispatcher=SimpleNamespace(queue=queue), spec=spec)))
    first, second = (cell("running", time.monotonic()) for _ in range(2))
    cells[:] = [first, second]
    watch.changed(first)
    planned = watch._timer
    cells.remove(first)
    watch.changed(cell("ok"))
    assert watch._timer is planned  # the other cell still runs
    assert not planned.cancelled()
    cells.remove(second)
    watch.changed(cell("ok"))
    assert planned.cancelled()
    third = cell("running", time.monotonic())
    cells.append(third)
    watch.changed(third)
    assert watch._timer.when() > planned.when()
    watch.stop()


@pytest.mark.parametrize("world_size", [1024, 8192])
async def test_ranks_of_a_large_group_are_looked_at_later_and_not_for_ever_later(world_size):
    group = SimpleNamespace(spec=SimpleNamespace(accelerator="cpu", world_size=world_size))
    watch = HangWatch(core_of(group))
    watch._looking = asyncio.get_running_loop().create_future()
    watch.changed(cell("running", time.monotonic() - 10))
    assert hangwatch.SETTLE_SECONDS < watch._wish <= hangwatch.LOOK_SECONDS
    watch.stop()
