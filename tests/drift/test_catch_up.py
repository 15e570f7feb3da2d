"""`jupyter dist drift` and `catch-up`, as a shell runs them."""

import json

import pytest
from waits import until


@pytest.fixture(scope="module")
def group(client):
    group = client.start("from-shell", num_ranks=2, accelerator="cpu")
    yield group
    group.shutdown()


@pytest.fixture
def replaced(group):
    """Two ranks, of which rank 1 was replaced after two cells."""
    group.restart()
    group.run("kept = 40 + rank", cell_id="a", notebook="n.ipynb").raise_for_error()
    group.run("plotted = True", "0", cell_id="b", notebook="n.ipynb").raise_for_error()
    group.kill(1)
    until(lambda: group.status().state == "degraded")
    group.replace()
    return group


def test_its_commands_are_listed(dist):
    said = dist(status=2).stdout
    assert "  drift " in said
    assert "  catch-up " in said


def test_drift_lists_and_catch_up_runs_what_was_missed(dist, replaced):
    said = dist("drift", "from-shell").stdout
    assert "* [1] kept = 40 + rank  rank 0; missed by rank 1, replaced since" in said
    assert json.loads(dist("drift", "--json").stdout)["cells"][0]["offered"] == "1"
    assert "Nothing was sent" not in dist("catch-up", "--yes").stdout
    assert replaced.gather("kept") == {0: 40, 1: 41}
    assert dist("catch-up", "--yes").stdout == "No rank of 'from-shell' has missed a cell.\n"
    assert "1 cell ran." in dist("catch-up", "--yes", "--cell", "2", "--ranks", "1").stdout
    assert replaced.gather("plotted") == {0: True, 1: True}


def test_nothing_is_sent_without_a_confirmation(dist, replaced):
    refused = dist("catch-up", "from-shell", status=1, input="y\n")
    assert "There is no terminal to ask at. Look with jupyter dist drift, then add --yes." in refused.stderr
    assert replaced.run("'kept' in globals()").values == {0: "True", 1: "False"}


def test_bad_input_is_one_sentence(dist, replaced):
    assert "No rank has missed a cell [99]." in dist("catch-up", "--yes", "-c", "99", status=1).stderr
    assert "There is no rank 7" in dist("catch-up", "--yes", "-r", "7", status=1).stderr
    assert "There is no group 'nowhere'" in dist("drift", "nowhere", status=1).stderr
    assert "There is no group 'nowhere'" in dist("catch-up", "nowhere", "--yes", status=1).stderr


def test_it_stops_at_the_cell_that_fails(dist, group, tmp_path):
    group.restart()
    flag = tmp_path / "flag"
    group.run(f"import os\nif os.path.exists({str(flag)!r}): raise ValueError('not again')").raise_for_error()
    group.run("total = torch.ones(1)\ndist.all_reduce(total)").raise_for_error()
    group.run("after = 1").raise_for_error()
    flag.touch()
    group.kill(1)
    until(lambda: group.status().state == "degraded")
    group.replace()
    said = dist("catch-up", "--yes", status=1).stdout
    assert "ValueError: not again" in said
    assert "Stopped at rank 1: [1] import os: error. Not run: 2 cells." in said
    # The one that failed has run there.
    stopped = json.loads(dist("catch-up", "--yes", "--json", status=1).stdout)
    assert len(stopped["executions"]) == 1
    assert ["all_reduce needs all 2 ranks" in one["why"] for one in stopped["not_run"]] == [True]
    assert group.gather("after") == {0: 1, 1: 1}
