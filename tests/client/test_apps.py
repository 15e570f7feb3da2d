"""Ddip's apps: what sets a framework up on all ranks."""

import pytest

pytestmark = pytest.mark.part("ddip")

APP = '''
"""A third-party app."""
import os
from json import dumps

imports = ["import fractions as parts"]
told = []


def set_verbose(verbose):
    told.append(f"verbose {verbose}")


def initializer():
    told.append(f"begins on {os.environ['RANK']}")


def finalizer():
    told.append("ends")


def seed():
    told.append("seed")


def _private():
    pass
'''


@pytest.fixture(scope="module")
def teaching(notebook):
    """An app that is installed where the ranks look: an entry point of a distribution."""
    (notebook.folder / "teaching.py").write_text(APP)
    metadata = notebook.folder / "teaching-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: teaching\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[jupyter_dist.apps]\nteaching = teaching\n")
    return notebook


def test_an_app_is_set_up_on_all_ranks(teaching):
    assert "App 'teaching' is in use on all ranks." in teaching.run("%makedip -a teaching -v -t 15").text
    said = teaching.run("%%dip --see all\nimport teaching\nparts.Fraction(1, 2), teaching.told").said
    assert said == [(str(r), f"(Fraction(1, 2), ['verbose True', 'begins on {r}'])") for r in (0, 1)]
    assert teaching.run("%%dip --appcmd seed\nteaching.told[-1]").said == [("0", "'seed'")]
    teaching.run("%%dip -a seed -q\n1")
    assert teaching.run("%%rank 1\nteaching.told[2:]").said == [("1", "['seed', 'seed']")]


def test_names_that_mean_nothing_are_said(teaching):
    cell = teaching.run("%%dip -a sed\nran = True")
    assert cell.error == "DistError: The app 'teaching' has no function 'sed'. It has: seed."
    assert teaching.run("%%rank 0\n'ran' in globals()").said == [("0", "False")]
    cell = teaching.run("%makedip -a nothing")
    assert (
        cell.error
        == "DistError: There is no app 'nothing' in the ranks' Python. It has: fastai, fastai_v1, fastai_v2, teaching."
    )
    assert teaching.run("%makedip -v maybe").error.startswith("DistError: Argument -v/--verbose: invalid choice")


def test_it_is_set_up_again_after_a_restart(teaching):
    for restart in ("%makedip -r", "%dist_restart"):
        assert "App 'teaching' is in use again." in teaching.run(restart).text
    assert teaching.run("%%dip\nimport teaching; teaching.told").said == [("0", "['verbose True', 'begins on 0']")]
    teaching.run("%%dip\nteaching.initializer = lambda: 1 / 0")
    cell = teaching.run("%makedip -a teaching")
    assert cell.error.endswith("RankError: ranks 0-1: ZeroDivisionError: division by zero")
    assert "initializer" in cell.error
    assert teaching.run("%%dip\nteaching.told[-2:]").said == [("0", "['ends', 'verbose False']")]


def test_the_cache_is_emptied_after_cells_of_dip_alone(notebook):
    spy = "from jupyter_dist.rank.memory import MemoryCounters\ncalls = []\nMemoryCounters.release_if_changed = lambda self, before: calls.append(before)"
    notebook.run(f"%%distributed\n{spy}")
    notebook.run("%%dip\n1")
    notebook.run("%%dip --keep-cache\n1")
    notebook.run("%%distributed\n1")
    assert notebook.run("%%distributed\ncalls").said == [("0-1", "[None]")]
