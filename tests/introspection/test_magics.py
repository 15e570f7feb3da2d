"""Names of ranks in the completion of a kernel beside them."""

import pytest
from waits import until


@pytest.fixture(scope="module")
def named(notebook):
    notebook.run("model_here = 'mine'")
    notebook.run("%%distributed\nclass Net:\n    weights_of_rank = 1\nmodel_there = Net()\nif rank: model_of_one = 1")
    return notebook


def test_names_and_attributes_of_ranks_complete(named):
    assert named.complete("%%distributed\nmodel_") == ["%%distributed\nmodel_there"]
    assert named.complete("%%distributed\nmodel_there.wei") == ["%%distributed\nmodel_there.weights_of_rank"]
    assert named.complete("%%rank [1]\nprint(model_o") == ["%%rank [1]\nprint(model_of_one"]
    assert named.complete("%%rank[1]\nü = model_o + 1", 21) == ["%%rank[1]\nü = model_of_one"]
    assert "%%dip\ntorch.zeros_like" in named.complete("%%dip\ntorch.zer")
    both = named.complete("%%dip everywhere\nmodel_")
    assert {text.partition("\n")[2] for text in both} == {"model_here", "model_there"}


def test_in_auto_mode_cells_have_the_ranks_names(named):
    named.run("%dist_mode -e")
    assert named.complete("x = 1\nmodel_") == ["x = 1\nmodel_there"]
    named.run("%dist_mode -d")
    assert named.complete("model_") == ["model_here"]


@pytest.mark.part("ddip")
def test_names_are_known_while_a_rank_is_busy_or_silent(named):
    text = named.run("%dist_sync_ide").text
    assert text.startswith("Completion knows ")
    assert "model_there" in text
    assert "model_of_one" not in text
    assert "The kernel's variables are unchanged." in text
    named.run("%dipper shared_group")
    named.run("busy = shared_group.submit('import time\\nwhile True: time.sleep(0.01)', '0')")
    _wait_running(named)
    assert named.complete("%%rank 0\nmodel_") == ["%%rank 0\nmodel_there"]
    assert named.complete("%%rank 0\nmodel_there.") == []
    named.run("busy.cancel(); busy.result()")
    # It holds the interpreter: nothing on that rank can answer.
    named.run("stuck = shared_group.submit('import ctypes\\nctypes.PyDLL(None).usleep(5_000_000)', '0')")
    _wait_running(named)
    assert named.complete("%%rank 0\nmodel_") == ["%%rank 0\nmodel_there"]
    assert named.run("stuck.result().raise_for_error()").status == "ok"


def _wait_running(named):
    until(lambda: named.run("print(len(shared_group.status().running))").text == "1\n")


def test_a_group_is_found_again_by_name(named):
    named.run("%reload_ext jupyter_dist")
    assert named.complete("%%rank 0\nmodel_there.") == []
    named.run("%%rank 0\n1")
    assert named.complete("%%rank 0\nmodel_there.wei") == ["%%rank 0\nmodel_there.weights_of_rank"]
