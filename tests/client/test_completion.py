"""Names of ranks in the kernel's completion."""

import pytest
from waits import until

from jupyter_dist.magics.completion import CellTarget, place_of


@pytest.mark.parametrize(
    ("cell", "prefix", "place"),
    [
        ("mod", None, None),
        ("mod", "distributed", CellTarget("all", "mod", 3)),
        ("a\nmod", "distributed", CellTarget("all", "a\nmod", 5)),
        ("%%time\nmod", "distributed", CellTarget("all", "%%time\nmod", 10)),
        ("%%bash\nmod", "distributed", None),
        ("%dist_st", "distributed", None),
        ("# dip_locally\nmod", "dip", None),
        ("%%distributed\nmod", None, CellTarget("all", "mod", 3)),
        ("%%rank [1]\na\nmod", None, CellTarget("[1]", "a\nmod", 5)),
        ("%%rank[0,1]\nmod", "distributed", CellTarget("[0,1]", "mod", 3)),
        ("%%rank [0", None, None),
        ("%%ranking\nmod", None, None),
        ("%%dip --see all\nmod", None, CellTarget("all", "mod", 3)),
        ("%%dip local\nmod", None, None),
        ("%%dip everywhere\nmod", None, CellTarget("all", "mod", 3, True)),
        ("mod", "dip everywhere", CellTarget("all", "mod", 3, True)),
    ],
)
def test_where_a_cell_will_run(cell, prefix, place):
    lines = cell.split("\n")
    assert place_of(lines, lines, prefix) == place


def test_a_line_above_the_cursor_is_part_of_the_code():
    assert place_of(["%%rank 0", "mod = 1", "x"], ["%%rank 0", "mo"], None) == CellTarget("0", "mod = 1\nx", 2)
    assert place_of(["%%rank 0", "x"], ["%%ra"], None) is None


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


def test_rank_expressions_complete_in_the_lines_of_magics(named):
    assert named.complete("%%rank al") == ["%%rank all"]
    assert named.complete("%%rank [0,al", 12) == ["%%rank [0,all"]
    assert named.complete("%dist_variables -r 0,!a") == ["%dist_variables -r 0,!all"]


def test_cells_of_the_kernel_have_its_own_names(named):
    assert named.complete("model_") == ["model_here"]
    assert named.complete("%%dip local\nmodel_") == ["%%dip local\nmodel_here"]
    both = named.complete("%%dip everywhere\nmodel_")
    assert {text.partition("\n")[2] for text in both} == {"model_here", "model_there"}


def test_in_auto_mode_cells_have_the_ranks_names(named):
    named.run("%dist_mode -e")
    assert named.complete("x = 1\nmodel_") == ["x = 1\nmodel_there"]
    assert "%dist_status" in named.complete("%dist_s")
    assert "x = 1\n%dist_status" in named.complete("x = 1\n%dist_s")
    named.run("%dist_mode -d")
    assert named.complete("model_") == ["model_here"]


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


def test_the_kernels_namespace_stays_its_own(named):
    left = named.run("print('model_there' in globals(), 'rank' in globals(), 'torch' in globals(), model_here)")
    assert left.text == "False False False mine\n"
    named.run("%reload_ext jupyter_dist")
    assert named.complete("%%rank 0\nmodel_there.") == []
    named.run("%%rank 0\n1")  # it is found again by name
    assert named.complete("%%rank 0\nmodel_there.wei") == ["%%rank 0\nmodel_there.weights_of_rank"]
