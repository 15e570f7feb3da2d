"""The completion of a kernel beside ranks: which cells it is of, its own names, and rank expressions."""

import pytest

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
    notebook.run("%%distributed\nmodel_there = 1")
    return notebook


def test_rank_expressions_complete_in_the_lines_of_magics(named):
    assert named.complete("%%rank al") == ["%%rank all"]
    assert named.complete("%%rank [0,al", 12) == ["%%rank [0,all"]
    assert named.complete("%dist_interrupt -r 0,!a") == ["%dist_interrupt -r 0,!all"]


def test_cells_of_the_kernel_have_its_own_names(named):
    assert named.complete("model_") == ["model_here"]
    assert named.complete("%%dip local\nmodel_") == ["%%dip local\nmodel_here"]
    assert "%%dip everywhere\nmodel_here" in named.complete("%%dip everywhere\nmodel_")


def test_magics_complete_in_auto_mode_too(named):
    named.run("%dist_mode -e")
    assert "%dist_status" in named.complete("%dist_s")
    assert "x = 1\n%dist_status" in named.complete("x = 1\n%dist_s")
    named.run("%dist_mode -d")
    assert named.complete("model_") == ["model_here"]


def test_the_kernels_namespace_stays_its_own(named):
    left = named.run("print('model_there' in globals(), 'rank' in globals(), 'torch' in globals(), model_here)")
    assert left.text == "False False False mine\n"
