"""Which cells go to the ranks by themselves."""

import pytest

from jupyter_dist.magics.automode import AutoMode, goes_to_ranks
from jupyter_dist.magics.linemagics import places


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
        ("%run train.py --lr 3", True),
        ("# timed\n%time f()\n%timeit -n1 f()", True),
        ("%pip install x\n%run train.py", False),
        ("%debug", True),
        ("%tb", True),
        ("# dip_locally\n%run train.py", False),
        ("%runner", False),
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


def test_a_script_is_not_run_on_one_process_by_silence(capsys):
    auto = AutoMode()
    auto.prefix = "dip --see all"
    warned = auto(["%pip install x\n", "%run train.py\n"])
    assert warned[1:] == ["%pip install x\n", "%run train.py\n"]
    exec(warned[0])
    assert capsys.readouterr().out.startswith("%run runs in the kernel, because other magics of this cell do.")
    assert auto(["# dip_locally\n", "%run train.py\n"]) == ["# dip_locally\n", "%run train.py\n"]
    assert auto(["%%bash\n", "%run\n"]) == ["%%bash\n", "%run\n"]


BOTH = "in the kernel and on the ranks."


@pytest.mark.parametrize(
    ("cell", "here", "there", "said"),
    [
        ("%cd sub", "%cd sub", "%cd sub", f"%cd runs {BOTH}"),
        ("%env A=1\n%set_env B 2", "%env A=1\n%set_env B 2", "%env A=1\n%set_env B 2", f"%env and %set_env run {BOTH}"),
        ("%load_ext autoreload\n%autoreload 2\n%run a.py", "%load_ext autoreload\n%autoreload 2\n", "", BOTH),
        ("%pip install x\n%cd sub", "%pip install x\n%cd sub", "\n%cd sub", f"%cd runs {BOTH}"),
        ("%dist_status\n%matplotlib inline", "%dist_status\n%matplotlib inline", "\n%matplotlib inline", BOTH),
        ("%load_ext dotenv", "%load_ext dotenv", None, "%load_ext dotenv: in the kernel alone."),
        ("%pip install x", "%pip install x", None, ""),
        ("%load_ext jupyter_dist", "%load_ext jupyter_dist", None, ""),
    ],
)
def test_settings_are_made_in_the_kernel_and_on_the_ranks(cell, here, there, said):
    lines = cell.splitlines(keepends=True)
    found = places(lines, "distributed")
    assert "".join(found.kernel).rstrip() == here.rstrip()
    assert "".join(found.ranks) == (cell if there == "" else there or "")
    assert (said in found.sentence) if said else not found.sentence
    assert not goes_to_ranks(lines)


@pytest.mark.parametrize("cell", ["%who", "%whos int\n%env", "%env HOME", "%reset -f", "%cd $folder", "%env A={a}"])
def test_what_depends_on_variables_goes_to_the_ranks(cell):
    assert goes_to_ranks(cell.splitlines(keepends=True))


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
