"""Checks in a notebook of another client: the note in a cell's output, and the magic."""

from . import kinds

(WRONG,) = (kind for kind in kinds.WRONG if kind.name == "zero_grad is forgotten")
SAYS = "The gradients on ranks 0-1 are not set to zero between steps (line "


def test_a_wrong_cell_is_in_its_output_and_in_the_magic(notebook):
    assert notebook.run(f"%%distributed\n{kinds.FIRST}").status == "ok"
    cell = notebook.run(f"%%distributed\n{WRONG.code}")
    assert cell.status == "ok", cell.error
    assert f"[wrong] {SAYS}" in cell.text
    assert notebook.run("%dist_checks").text.startswith(SAYS)


def test_the_magic_switches_checks_off_and_on(notebook):
    assert "'maybe' is neither on nor off" in notebook.run("%dist_checks maybe").error
    assert notebook.run("%dist_checks off").text == "Checks are off.\n"
    assert notebook.run(f"%%distributed\n{kinds.FIRST}{WRONG.code}").status == "ok"
    assert notebook.run("%dist_checks").text == "Checks are off in this group.\n"
    assert notebook.run("%dist_checks on").text == "Checks are on.\n"
