"""Real ranks that were replaced: what they have missed, and that they have it again after they have caught up."""

import json

import pytest
from waits import until

from jupyter_dist.client import JupyterDistError, RankError

NOTEBOOK = "lesson.ipynb"


@pytest.fixture(scope="module")
def own_group(client):
    group = client.start("drifting", num_ranks=3, accelerator="cpu")
    yield group
    group.shutdown()


@pytest.fixture
def group(own_group):
    """Three ranks that have run nothing."""
    own_group.restart()
    return own_group


def cell(group, name, code, ranks="all"):
    """Run a cell of a notebook."""
    return group.run(code, ranks, cell_id=name, notebook=NOTEBOOK)


def die(group, rank):
    group.kill(rank)
    until(lambda: group.status().state == "degraded")


def told(drift):
    return {
        one.cell_id or one.line: ([missed(part.ranks, part.reason) for part in one.missed], one.offered)
        for one in drift
    }


def missed(ranks, reason):
    return {"ranks": ranks, "reason": reason}


def test_a_replaced_rank_catches_up_and_has_its_variables_again(group):
    cell(group, "a", "base = 40").raise_for_error()
    cell(group, "b", "mine = base + rank").raise_for_error()
    cell(group, "plot", "drawn = True", "0").raise_for_error()
    cell(group, "wrong", "1 / 0")
    group.launch(int)
    assert not group.drift().offered
    die(group, 1)
    cell(group, "late", "meanwhile = 7", "!1").raise_for_error()
    group.replace()

    found = group.drift()
    assert [(step.cell.cell_id, step.ranks, step.code) for step in found.offered] == [
        ("a", "1", "base = 40"),
        ("b", "1", "mine = base + rank"),
        ("late", "1", "meanwhile = 7"),
    ]
    cells = told(found)
    assert cells["plot"] == ([missed("1-2", "skipped")], "")
    assert cells["# launch of int"] == ([missed("1", "replaced")], "")  # it cannot be sent again
    assert cells["wrong"] == ([missed("1", "replaced")], "")
    assert "* [2] mine = base + rank" in repr(found)
    assert "missed by rank 1, replaced since" in repr(found)
    assert "rank 0; not on ranks 1-2" in repr(found)

    results = group.catch_up()
    assert [result.ranks for result in results] == [(1,)] * 3
    assert group.gather("(mine, meanwhile)") == {0: (40, 7), 1: (41, 7), 2: (42, 7)}
    after = group.drift()
    assert after.offered == []
    assert {"a", "b", "late"} <= set(told(after))
    assert "base = 40" not in told(after)  # what was sent is a run of its cell
    assert group.catch_up() == []


def test_a_skipped_rank_gets_what_it_is_sent_on_purpose(group):
    cell(group, "some", "only = 'here'", "0").raise_for_error()
    cell(group, "new", "value = 1").raise_for_error()
    cell(group, "new", "value = 2", "0-1").raise_for_error()
    found = group.drift()
    assert found.offered == []
    assert told(found)["new"] == ([missed("2", "changed")], "")
    assert "[3] value = 2 (version 2)  ranks 0-1; rank 2 ran version 1" in repr(found)
    group.catch_up(found.missed)
    assert group.gather("(only, value)") == dict.fromkeys(range(3), ("here", 2))
    assert group.drift().missed == []


def test_it_stops_at_the_first_cell_that_fails(group, tmp_path):
    flag = tmp_path / "flag"
    cell(group, "a", "first = 1").raise_for_error()
    cell(group, "b", f"import os\nif os.path.exists({str(flag)!r}): raise ValueError('not again')").raise_for_error()
    cell(group, "c", "third = 3").raise_for_error()
    flag.touch()
    die(group, 2)
    group.replace()
    with pytest.raises(RankError, match="not again") as failed:
        group.catch_up()
    assert [result.ok for result in failed.value.caught_up] == [True, False]
    assert group.gather("[name for name in ('first', 'third') if name in globals()]")[2] == ["first"]
    assert [step.cell.cell_id for step in group.drift().offered] == ["c"]  # the cell that failed has run there


def test_a_cell_that_needs_all_ranks_is_not_sent_to_one_and_what_does_not_use_it_is(group):
    cell(group, "before", "before = 1").raise_for_error()
    cell(group, "sum", "total = torch.ones(1)\ndist.all_reduce(total)").raise_for_error()
    cell(group, "mean", "mean = total / 3").raise_for_error()
    cell(group, "after", "after = before + 1").raise_for_error()
    for _ in range(2):
        die(group, 1)
        group.replace()
        found = group.catch_up()
        assert [one.step.cell.cell_id for one in found.not_run] == ["sum", "mean"]
        assert "all_reduce needs all 3 ranks, 1 is chosen" in found.not_run[0].why
        assert "which was not run" in found.not_run[1].why
        assert len(found) == 2
        assert "run these cells again on all ranks" in repr(found)
        assert group.gather("(after, 'total' in globals())") == {0: (2, True), 1: (2, False), 2: (2, True)}


def test_a_replaced_rank_has_what_the_others_have_after_an_edit(group):
    cell(group, "lr", "lr = 0.1").raise_for_error()
    cell(group, "y", "y = lr * 3\nn = 0").raise_for_error()
    cell(group, "lr", "lr = 0.5").raise_for_error()
    for _ in range(2):
        cell(group, "n", "n += 1").raise_for_error()
    die(group, 1)
    group.replace()
    found = group.drift()
    assert [(step.code, step.ranks) for step in found.offered] == [
        ("lr = 0.1", "1"),
        ("y = lr * 3\nn = 0", "1"),
        ("lr = 0.5", "1"),
        ("n += 1", "1"),
        ("n += 1", "1"),
    ]
    group.catch_up()
    assert len(set(group.gather("(lr, y, n)").values())) == 1
    assert group.drift().offered == []


def test_a_cell_in_which_the_rank_died_is_sent_on_purpose_only(group, tmp_path):
    flag = tmp_path / "flag"
    code = f"import os\nfound = 5\nif rank == 1 and not os.path.exists({str(flag)!r}): os.kill(os.getpid(), 9)"
    cell(group, "before", "before = 1").raise_for_error()
    cell(group, "deadly", code)
    until(lambda: group.status().state == "degraded")
    cell(group, "uses", "uses = found", "!1").raise_for_error()
    group.replace()
    found = group.drift()
    assert [step.cell.cell_id for step in found.offered] == ["before"]
    assert "missed by rank 1, replaced since (died on rank 1)" in repr(found)
    group.catch_up()  # and the rank lives
    flag.touch()
    group.catch_up([step for step in group.drift().missed if step.cell.cell_id == "deadly"])
    assert group.gather("(before, found)") == dict.fromkeys(range(3), (1, 5))
    die(group, 1)
    group.replace()  # it ran the cell well since
    assert [step.cell.cell_id for step in group.drift().offered] == ["before", "deadly", "uses"]
    group.catch_up()
    assert group.gather("(before, uses)") == dict.fromkeys(range(3), (1, 5))
    die(group, 1)
    assert group.drift().offered == []  # nothing while it is dead
    group.replace()
    assert len(group.model["ranks"][1]["absences"]) == 3


def test_a_restart_begins_again(group):
    cell(group, "a", "x = 1").raise_for_error()
    die(group, 0)
    group.replace()
    assert group.drift().offered
    group.restart()
    found = group.drift()
    assert (list(found), repr(found)) == ([], "No cells ran.")
    assert "absences" not in group.model["ranks"][0]


def test_a_group_that_has_ended_is_an_error_with_a_sentence(client):
    ended = client.start("ended-drift", num_ranks=1, accelerator="cpu")
    for rank in range(1):
        ended.kill(rank)
    until(lambda: ended.status().state == "dead")
    with pytest.raises(JupyterDistError, match="Group 'ended-drift' is dead") as refused:
        ended.drift()
    assert refused.value.code == "group_not_ready"
    ended.shutdown()
    with pytest.raises(JupyterDistError, match="There is no group"):
        ended.drift()


def test_the_answer_is_json_of_the_documented_form(group):
    cell(group, "a", "x = 1").raise_for_error()
    model = group.drift().model
    (only,) = model["cells"]
    assert json.loads(json.dumps(model)) == model
    assert (model["left_out"], model["forgotten"]) == (0, False)
    assert (only["line"], only["state"], only["versions"], only["version"], only["code"]) == ("x = 1", "ok", 1, 1, None)
    (one,) = only["runs"]
    assert (one["ranks"], one["version"], one["execution_count"]) == ("0-2", 1, 1)
