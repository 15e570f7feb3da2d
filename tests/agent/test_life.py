"""The life cycles: what may follow what, that the docs draw the same, and when the process group is re-created."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_dist.agent.group.cells.execution import AgentExecution
from jupyter_dist.agent.group.process_group import ProcessGroup, Revived, Todo
from jupyter_dist.protocol import states
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.states import IllegalTransitionError
from jupyter_dist.protocol.wire.specs import ExecutionSpec

STATES = {
    "group": states.GroupState,
    "rank": states.RankState,
    "execution": states.ExecutionState,
    "process group": states.ProcessGroupState,
}
LIVES = [states.GROUP_LIFE, states.RANK_LIFE, states.EXECUTION_LIFE, states.PROCESS_GROUP_LIFE]
OF_THE_SERVER = {"unresponsive", "incompatible", "lost"}  # the last three of a group
PAGE = (Path(__file__).parents[2] / "docs" / "messaging.md").read_text()


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.thing)
def test_a_table_has_every_state_and_leads_to_no_other(life):
    known = set(get_args(STATES[life.thing])) - (OF_THE_SERVER if life.thing == "group" else set())
    assert set(life.transitions) == known
    assert set().union(*life.transitions.values()) <= known
    first = next(iter(life.transitions))
    reached, new = set(), {first}
    while new:
        reached |= new
        new = set().union(*(life.transitions[state] for state in new)) - reached
    assert reached == known


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.thing)
def test_what_is_not_in_the_table_is_refused(life):
    for old in life.transitions:
        for new in life.transitions:
            if new == old or new in life.transitions[old]:
                life.check(old, new)
            else:
                with pytest.raises(IllegalTransitionError, match=f"{life.thing} cannot go from '{old}' to '{new}'"):
                    life.check(old, new)


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.thing)
def test_the_docs_draw_the_same_table(life):
    part = PAGE.split(f"### Life of {'an' if life.thing[0] == 'e' else 'a'} {life.thing}\n", 1)[1].split("\n#", 1)[0]
    drawn = {
        state: frozenset(re.findall(r"`(\w+)`", following))
        for state, following in re.findall(r"^\| `(\w+)` \|(.*?)\|", part, re.M)
    }
    assert drawn == dict(life.transitions)


def test_an_execution_never_leaves_its_end():
    execution = AgentExecution(ExecutionSpec(execution_id="e", ranks=[0]), b"")
    execution.finish("aborted", JupyterDistError("cancelled", "Cancelled."))
    for step in (lambda: execution.start(1), lambda: execution.finish("lost")):
        with pytest.raises(IllegalTransitionError):
            step()
    assert execution.state == "aborted"


@dataclass
class Rank:
    rank: int
    collective_seq: int | None = 3
    process_group: str = "ok"


RANKS = [Rank(0), Rank(1)]
UNEVEN = [Rank(0, 3), Rank(1, 4)]


def formed():
    group = ProcessGroup()
    assert group.formed().pump
    return group


def test_cells_begin_only_when_the_ranks_have_joined():
    group = ProcessGroup()
    assert not group.may_begin
    assert not group.is_formed
    group.formed()
    assert group.may_begin
    group.close()
    assert not group.may_begin


def test_a_broken_process_group_is_re_created_when_no_cell_runs():
    group = formed()
    group.replied({"status": "error", "process_group": "broken"}, RANKS)
    assert not group.may_begin
    assert group.is_formed
    assert group.settle([Rank(0), Rank(1)], 2, is_running=True) == group.settle([], 2, is_running=True)
    todo = group.settle([Rank(0), Rank(1)], 2, is_running=False)
    assert (todo.rejoin, todo.pump, group.state) == (True, False, "rejoining")
    assert group.not_rejoined("a link was cut", is_whole=True).retry
    assert group.again(is_running=False).rejoin
    todo = group.rejoined(Revived(3, ("7",)))
    assert "all variables are kept as the cell left them. So were its 3 subgroups: " in todo.news
    assert "ranks do not know them alike: 7." in todo.news
    assert todo.pump
    assert group.may_begin


def test_what_is_re_created_on_request_left_nothing_half_done():
    group = formed()
    assert group.requested(is_running=False).rejoin
    assert "all variables are kept." in group.rejoined(Revived(0, ())).news


def test_it_is_not_re_created_without_all_ranks():
    group = formed()
    group.replied({"status": "error", "process_group": "broken"}, RANKS)
    todo = group.settle([Rank(0)], 2, is_running=False)
    assert not todo.rejoin
    assert "A rank is dead" in todo.note
    assert group.may_begin


def test_an_interrupt_matters_only_where_collectives_are_uneven():
    group = formed()
    group.replied({"status": "interrupted"}, RANKS)
    assert group.may_begin
    assert not group.settle(RANKS, 2, is_running=False).rejoin
    group.replied({"status": "interrupted"}, UNEVEN)
    assert not group.may_begin  # a cell that is queued already would hang
    assert group.settle(UNEVEN, 2, is_running=False).rejoin


def test_uneven_counts_of_ranks_that_still_run_hold_no_cell():
    group = formed()
    group.replied({"status": "interrupted"}, UNEVEN[:1])
    assert group.may_begin
    group.replied({"status": "ok"}, UNEVEN)  # the other rank ended too
    assert not group.may_begin


def test_who_left_is_told_once_and_who_came_back_too():
    group = formed()
    left = [Rank(0), Rank(1, process_group="none")]
    assert "Rank 1 destroyed" in group.settle(left, 2, is_running=False).notes[0]
    assert group.settle(left, 2, is_running=False).notes == ()
    assert "again" in group.settle([Rank(0), Rank(1)], 2, is_running=False).notes[0]


def test_a_restart_while_ranks_rejoin_opens_nothing_for_the_old_ranks():
    for outcome in (
        lambda group: group.rejoined(Revived(0, ())),
        lambda group: group.not_rejoined("died", is_whole=False),
    ):
        group = formed()
        assert group.requested(is_running=False).rejoin
        with pytest.raises(JupyterDistError, match="joining already"):
            group.requested(is_running=False)
        group.close()
        assert not outcome(group).pump
        assert not group.may_begin


def test_a_process_group_that_could_not_be_re_created_is_not_said_to_be_destroyed_by_a_rank():
    group = formed()
    assert group.requested(is_running=False).rejoin
    failed = group.not_rejoined("a link was cut", is_whole=True)
    assert "'reform'" in failed.notes[0]
    assert failed.retry
    gone = [Rank(rank, process_group="none") for rank in (0, 1)]
    (told,) = group.settle(gone, 2, is_running=False).notes
    assert told.startswith("Ranks 0-1: the process group is gone, because it could not be re-created.")
    assert group.again(is_running=True) == Todo(retry=True)
    assert group.again(is_running=False).rejoin
    again = group.not_rejoined("a link was cut", is_whole=True)
    assert (again.notes, again.retry) == ((), True)  # named once
    assert group.again(is_running=False).rejoin
    group.rejoined(Revived(0, ()))
    assert group.again(is_running=False) == Todo()
    assert "destroyed" in group.settle(gone, 2, is_running=False).notes[0]


EVENTS = {
    "close": lambda group: group.close(),
    "formed": lambda group: group.state == "closed" and group.formed(),
    "broken": lambda group: group.replied({"status": "error", "process_group": "broken"}, RANKS),
    "interrupted": lambda group: group.replied({"status": "interrupted"}, RANKS),
    "uneven": lambda group: group.replied({"status": "interrupted"}, UNEVEN),
    "ended": lambda group: group.settle(RANKS, 2, is_running=False),
    "ended on some": lambda group: group.settle(RANKS, 2, is_running=True),
    "died": lambda group: group.settle(RANKS[:1], 2, is_running=False),
    "requested": lambda group: group.is_formed and group.requested(is_running=False),
    "rejoined": lambda group: group.rejoined(Revived(0, ())),
    "again": lambda group: group.again(is_running=False),
    "not rejoined": lambda group: group.not_rejoined("why", is_whole=True),
}


@given(st.lists(st.sampled_from(list(EVENTS)), max_size=30))
def test_whatever_happens_in_whatever_order_no_cell_waits_for_ever(events):
    group = formed()
    for event in events:
        EVENTS[event](group)
    # However it stands: the end of what it waits for opens it again.
    for event in ("formed", "ended", "rejoined"):
        EVENTS[event](group)
    assert group.may_begin
