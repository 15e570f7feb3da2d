"""Which cells go to the ranks by themselves."""

import pytest

from jupyter_dist.magics.automode import AutoMode, goes_to_ranks


@pytest.mark.parametrize(
    ("cell", "remote"),
    [
        ("x = 1", True),
        ("\n# a comment\nx = 1", True),
        ("%matplotlib inline\nx = 1", True),
        ("%%time\nx = 1", True),
        ("!nvidia-smi", True),
        ("", False),
        ("# only a comment\n", False),
        ("%pip install x", False),
        ("%dist_status", False),
        ("%dist_init -n 2\nprint(rank)", False),
        ("%load_ext autoreload\n%autoreload 2", False),
        ("%%rank [0]\nx", False),
        ("%%bash\nls", False),
        ("# dip_locally\nx = 1", False),
        ("%", False),
        ("%%", False),
    ],
)
def test_cells_that_go_to_the_ranks(cell, remote):
    assert goes_to_ranks(cell.splitlines(keepends=True)) is remote


@pytest.mark.parametrize("written", ["%%rank[0,1]\nx", "%%rank [0,1]\nx"])
def test_the_space_before_ranks_is_free(written):
    assert AutoMode()(written.splitlines(keepends=True))[0] == "%%rank [0,1]\n"


@pytest.mark.parametrize("written", ["%%rank!0\nx", "%%rank::2\nx", "%%rank 0-2\nx", "%%ranks 0\nx", "%%rank\nx"])
def test_other_forms(written):
    first = AutoMode()(written.splitlines(keepends=True))[0]
    assert first == written.splitlines(keepends=True)[0].replace("rank!", "rank !").replace("rank::", "rank ::")


def test_a_cell_is_wrapped_whole():
    auto = AutoMode()
    assert auto(["x = 1\n"]) == ["x = 1\n"]
    auto.prefix = "dip --see all"
    assert auto(["x = 'a'\n", "y\n"]) == ["get_ipython().run_cell_magic('dip', '--see all', \"x = 'a'\\ny\\n\")\n"]
