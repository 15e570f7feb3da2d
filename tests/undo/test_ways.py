"""Many ways to change a list and many states, each changed and undone twice in one namespace: none is silently different."""

from __future__ import annotations

from pathlib import Path

import pytest
import randomtypes
import ways
from keeping import Undoable
from publiccode import FOUND
from trying import try_all

pytestmark = pytest.mark.filterwarnings("ignore")  # of what cells call, and of finalizers after the names are gone
NAMED = {
    "zensum/validator-service utils/request_id.py",  # no one can delete the first value of a context variable
    "exit handlers",
    "exit handlers of an earlier function",
}  # in Python itself, which neither lists nor removes them one by one


def test_no_list_is_silently_different_after_undo() -> None:
    found = try_all(ways.WAYS, of_list=True)
    assert not [name for name, pair in found.items() if "SILENT" in pair]
    assert sum(pair == ["undone", "undone"] for pair in found.values()) >= 90
    # What is found after the cell is named then, and kept in later cells.
    assert not [name for name, (_, second) in found.items() if second != "undone"]


def test_no_state_is_silently_different_after_undo() -> None:
    found = try_all(ways.STATES, of_list=False)
    assert not [name for name, pair in found.items() if "SILENT" in pair]
    assert sum(pair == ["undone", "undone"] for pair in found.values()) >= 65


def test_what_public_code_does_is_undone() -> None:
    found = try_all({**ways.PUBLIC, **FOUND}, of_list=False)
    assert {name for name, pair in found.items() if pair != ["undone", "undone"]} <= NAMED


@pytest.mark.parametrize("seed", [1, 2, randomtypes.POLARS])
def test_no_random_value_is_silently_different(seed: int) -> None:
    if seed == randomtypes.POLARS:
        pytest.importorskip("polars")
    found = try_all(randomtypes.cases(seed, 120), of_list=False)
    assert {name: pair for name, pair in found.items() if {"SILENT", "NOT AGAIN"} & set(pair)} == {}
    num_undone = sum(pair == ["undone", "undone"] for pair in found.values())
    assert num_undone >= 80


def test_what_polars_changes_in_place_is_undone() -> None:
    pytest.importorskip("polars")
    start = (
        "import polars as pl; o = [1]\n"
        "t = pl.DataFrame({'a': [1, 2], 'b': ['x', None]}); s = pl.Series('s', [0.0, float('nan')])\n"
        "held = pl.DataFrame({'o': [o]}, schema={'o': pl.Object}); lazy = t.lazy().select(pl.col('a') + 1)"
    )
    look = "repr((t, s, str(s[0]), t.schema, held['o'].to_list(), lazy.collect()))"
    cells = [
        *("t.insert_column(0, pl.Series('c', [5, 6]))", "t[0, 'a'] = 9", "t.columns = ['q', 'r']", "t.extend(t)"),
        *("t.drop_in_place('a')", "t.vstack(t, in_place=True)", "t.replace_column(0, pl.Series('a', [7, 8]))"),
        *("s[0] = -0.0", "s.append(s)", "s.rename('r'); s.name = 'k'", "s.sort(descending=True, in_place=True)"),
        *("held['o'][0].append(2)", "lazy = lazy.collect().lazy()", "t._df, s._s = s.to_frame()._df, t['a']._s"),
    ]
    assert not [
        cell
        for cell, pair in try_all({one: (start, one, look) for one in cells}, of_list=False).items()
        if pair != ["undone", "undone"]
    ]


def test_what_polars_changes_out_of_sight_is_named() -> None:
    pytest.importorskip("polars")
    space = Undoable()
    space.run("import polars as pl, warnings\nt = pl.DataFrame({'a': range(100)})\nold = warnings.showwarning")
    space.run("warnings.showwarning = lambda *a, **k: t.__setitem__((0, 'a'), 5)")
    space.run(
        "with warnings.catch_warnings():\n    warnings.simplefilter('always')\n    warnings.showwarning = warnings.showwarning\n    warnings.warn('x')"
    )
    assert "`t`: an object changed, to which the names of the cell do not lead" in space.last["cell"]["not_kept"]
    space.run("warnings.showwarning = old", keep=False)


def test_the_published_table_holds() -> None:
    """A case that the page calls undone is in the tests above; what is not seen is in the page."""
    page = (Path(__file__).parents[2] / "docs/reference/undo.md").read_text()
    for name in {**ways.WAYS, **ways.STATES, **ways.PUBLIC, **FOUND}:
        assert f"\n| {name} | " in page
    assert "**not seen**" not in page


def test_what_only_a_library_knows_is_named_then_kept() -> None:
    space = Undoable()
    space.run(
        "import warnings\nseen = []\nold = warnings.showwarning\nwarnings.showwarning = lambda *a, **k: seen.append(1)"
    )
    warn = "with warnings.catch_warnings():\n    warnings.simplefilter('always'); warnings.showwarning = warnings.showwarning\n    warnings.warn('x')"
    space.run(warn)
    named = "`seen`: an object changed, to which the names of the cell do not lead"
    assert space.last["cell"]["not_kept"] == [named]
    assert space.undo() == [named]
    assert space["seen"] == [1]
    space.run(warn)
    assert space.undo() == []
    assert space["seen"] == [1]
    space.run("warnings.showwarning = old", keep=False)


def test_too_many_objects_are_tried_once_and_named() -> None:
    space = Undoable()
    space.run("many = [[i] for i in range(2_500_000)]; few = [1]")
    for _ in range(2):
        space.run("many[5][0] = -1")
        assert "Undo is off for cells that reach `many`" in space.last["cell"]["reason"]
    space.run("few.append(2)")
    assert "was not looked for" in str(space.last["cell"]["not_kept"])
    space.undo()
    assert space["few"] == [1]


@pytest.mark.parametrize(
    ("cell", "changed"),
    [
        ("print(1)", False),
        ("nothing", False),
        ("t", False),
        ("t.add_(1)", True),
        ("a = 1", True),
        ("torch.rand(1)", True),
    ],
)
def test_whether_a_cell_changed_something(cell: str, changed: bool) -> None:
    space = Undoable()
    space.run("import torch; t = torch.zeros(3)")
    space.run(cell)
    assert space.last["cell"]["changed"] is changed
