"""`jupyter dist undo`, `redo` and `undoable`."""

from cli.conftest import group  # noqa: F401  (fixture)
from ownserver import dist  # noqa: F401  (fixture)


def test_undo_of_the_last_cell(dist, group):  # noqa: F811
    group.run("numbers = [1]", keep_undo=True)
    group.run("numbers.append(2)", keep_undo=True)
    assert "numbers.append(2)" in dist("undoable", "from-shell").stdout
    assert "Undone: cell" in dist("undo", "-g", "from-shell").stdout
    assert "Done again: cell" in dist("redo", "-g", "from-shell").stdout
    assert group.gather("numbers") == {0: [1, 2], 1: [1, 2]}
    assert "Undone: cell" in dist("undo", "-g", "from-shell").stdout
    assert group.gather("numbers") == {0: [1], 1: [1]}
    assert "can be undone, not 9" in dist("undo", "9", "-g", "from-shell", status=1).stderr
