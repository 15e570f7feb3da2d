"""No cell waits for nothing: whatever happens to ranks and cells, in whatever order. Ranks without processes."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from contextlib import closing
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_dist.agent.group.cells.execution import AgentExecution
from jupyter_dist.agent.group.group import AgentGroup
from jupyter_dist.agent.processes.death import Ending
from jupyter_dist.agent.processes.records import receive
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.wire.specs import ExecutionSpec, GroupSpec

WORLD_SIZE = 3
KILLED = Ending(None, 9, because="on request")


class Ranks:
    """A group whose ranks are made up, and what was sent to it."""

    def __init__(self, folder: Path) -> None:
        spec = GroupSpec("g-1", "g", WORLD_SIZE, "cpu", "gloo", str(folder))
        self.group = AgentGroup(spec, folder, lambda: None, lambda: None, lambda _: None)
        self.group.prepare()
        self._join()
        self.sent: list[AgentExecution] = []
        self.began: list[str] = []

    def _join(self) -> None:
        for rank in self.group.living():
            rank.set_state("idle")
        self.group.formed()

    def unfinished(self) -> list[AgentExecution]:
        return [execution for execution in self.sent if not execution.is_final]

    def busy(self):
        return [rank for rank in self.group.living() if rank.execution_id is not None]

    # -- what may happen --------------------------------------------------------------------------------

    def submit(self, ranks, notebook, stop_on_error, is_after) -> None:
        after = self.sent[-1].id if is_after and self.sent else None
        spec = ExecutionSpec(
            execution_id=f"e-{len(self.sent)}",
            ranks=sorted(ranks),
            notebook=notebook,
            stop_on_error=stop_on_error,
            after=after,
        )
        try:
            self.sent.append(self.group.dispatcher.submit(AgentExecution(spec, b"1")))
        except JupyterDistError as err:
            assert err.code == "rank_dead"  # noqa: PT017

    def reply(self, index, status, is_broken) -> None:
        if busy := self.busy():
            rank = busy[index % len(busy)]
            state = "broken" if is_broken else "ok"
            reply = {"t": "reply", "execution_id": rank.execution_id, "status": status, "seconds": 0.1}
            receive(rank, {**reply, "process_group": state, "collective_seq": index}, b"")

    async def die(self, index) -> None:
        if living := self.group.living():
            await living[index % len(living)].ended(KILLED)

    def cancel(self, index) -> None:
        if queued := [execution for execution in self.sent if execution.state == "queued"]:
            self.group.dispatcher.cancel(queued[index % len(queued)])

    def replace(self) -> None:
        if self.group.state == "degraded" and not self.busy() and not self._running():
            self.group.process_group.close()
            self.group.set_state("restarting")
            self.group.renew_dead(self.group.stores.new())
            self._join()

    def _running(self) -> list[AgentExecution]:
        return self.group.dispatcher.queue.in_state("running")

    # -- what must be so --------------------------------------------------------------------------------

    def check(self) -> None:
        ranks = {rank.rank: rank for rank in self.group.ranks}
        for execution in self._running():
            assert all(ranks[rank].execution_id == execution.id for rank in execution.running_ranks)
        assert self.busy() or not self.unfinished(), "nothing runs, and cells wait"
        for number, execution in enumerate(self.sent):
            if execution.state == "queued" and self.group.process_group.may_begin:
                earlier = [one for one in self.sent[:number] if not one.is_final]
                assert any(set(one.spec.ranks) & set(execution.spec.ranks) for one in earlier), "waits for nothing"
                assert all(ranks[rank].state != "dead" for rank in execution.spec.ranks)
        # The first of each notebook says what it waits for.
        first = {one.spec.notebook: one for one in reversed(self.sent) if one.state == "queued"}
        assert all(one.waits_for for one in first.values() if self.group.process_group.is_formed)
        self._check_order()

    def _check_order(self) -> None:
        """On each rank, cells have begun in the order in which they were sent; none behind one that failed."""
        for rank in range(WORLD_SIZE):
            here = [one for one in self.sent if rank in one.spec.ranks and one.started_at is not None]
            assert [one.execution_count for one in here] == sorted(one.execution_count for one in here)
        for one, later in itertools.combinations(self.sent, 2):
            in_order = later.spec.after == one.id or (one.spec.notebook is not None and _same_notebook(one, later))
            if in_order and one.is_final and one.stops_others and later.started_at is not None:
                if _cancelled(one) or set(one.spec.ranks).isdisjoint(later.spec.ranks):
                    continue  # it may have begun before
                assert one.ended_at is not None
                assert later.queued_at >= one.ended_at, f"{later.id} has run behind {one.id}"


def _same_notebook(one: AgentExecution, later: AgentExecution) -> bool:
    return one.spec.notebook == later.spec.notebook


def _cancelled(one: AgentExecution) -> bool:
    return one.error is not None and one.error.code == "cancelled"


EVENTS = st.one_of(
    st.tuples(
        st.just("submit"),
        st.sets(st.integers(0, WORLD_SIZE - 1), min_size=1),
        st.sampled_from(["a.ipynb", "b.ipynb", None]),
        st.booleans(),
        st.booleans(),
    ),
    st.tuples(
        st.just("reply"), st.integers(0, 5), st.sampled_from(["ok", "ok", "error", "interrupted"]), st.booleans()
    ),
    st.tuples(st.just("die"), st.integers(0, 5)),
    st.tuples(st.just("cancel"), st.integers(0, 5)),
    st.tuples(st.just("replace")),
)


async def _happens(events) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ranks = Ranks(Path(folder))
        with closing(ranks.group):
            for name, *arguments in events:
                done = getattr(ranks, name)(*arguments)
                if done is not None:
                    await done
                for _ in range(6):  # ranks meet again, or cannot
                    await asyncio.sleep(0)
                ranks.check()


@settings(max_examples=100, deadline=None)
@given(st.lists(EVENTS, max_size=25))
def test_no_cell_waits_while_its_ranks_are_idle(events):
    asyncio.run(_happens(events))


def test_what_waited_behind_cells_for_a_dead_rank_ends_or_begins():
    """Two notebooks: B1 to B3 for all ranks, C for one that lives."""

    async def happens() -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            ranks = Ranks(Path(folder))
            with closing(ranks.group):
                ranks.submit({1}, "a.ipynb", True, False)
                for _ in range(3):
                    ranks.submit({0, 1, 2}, "b.ipynb", True, False)
                ranks.submit({0}, "c.ipynb", True, False)
                await ranks.group.ranks[1].ended(KILLED)
                assert ranks.sent[1].error.code == "rank_dead"
                return [execution.state for execution in ranks.sent]

    assert asyncio.run(happens()) == ["lost", "aborted", "aborted", "aborted", "running"]


def test_a_cell_that_runs_on_no_rank_is_ended_by_the_watch():
    """Nothing leads to this state; if something does, the group is not stuck."""

    async def happens() -> tuple[list[str], str]:
        with tempfile.TemporaryDirectory() as folder:
            ranks = Ranks(Path(folder))
            with closing(ranks.group):
                ranks.submit({0, 1}, "a.ipynb", True, False)
                ranks.submit({0}, None, True, False)
                ranks.group.ranks[0].execution_id = ranks.group.ranks[1].execution_id = None
                ranks.group.dispatcher.end_forgotten()
                return [execution.state for execution in ranks.sent], ranks.sent[0].error.message

    states, message = asyncio.run(happens())
    assert states == ["lost", "running"]
    assert message.startswith("Running, but not on ranks 0-1")
