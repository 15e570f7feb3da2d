"""What undone cells had left is written back, in the same objects, as long as nothing has changed since."""

from __future__ import annotations

import pytest
import torch
from keeping import Undoable

from jupyter_dist.protocol.errors import JupyterDistError


def test_steps_back_and_forth() -> None:
    space = Undoable()
    space.run("import torch; a = [1]; t = torch.zeros(3); first = t")
    for number in range(3):
        space.run(f"a.append({number}); t = t.clone() if {number} == 1 else t.add_(1); torch.rand(1)")
        space.run(f"t[{number}] = 7", silent=True)
    shown = [space["a"], space["t"].tolist(), torch.initial_seed(), torch.get_rng_state().tolist()]
    kept = space.last["kept"]
    for back in (1, 2, 3):
        space.undo(back)
        space.redo(*space.keeper.after()["undo"]["undone"][::-1])
        assert [space["a"], space["t"].tolist(), torch.initial_seed(), torch.get_rng_state().tolist()] == shown
        assert (space.keeper.after()["undo"]["kept"], space.keeper.after()["undo"]["undone"]) == (kept, [])
    space.undo(3)
    space.redo("e2")
    assert (space["a"], space["t"].tolist(), space["t"] is space["first"]) == ([1, 0], [7, 1, 1], True)
    with pytest.raises(JupyterDistError, match="Cells before it are undone"):
        space.redo("e6")
    space.redo("e4", "e6")
    assert space["t"].tolist() == shown[1]


def test_what_looks_only_keeps_the_redo_and_its_results_stay() -> None:
    space = Undoable()
    space.run("a = [1]")
    space.run("a.append(2); _5 = _oh[5] = 'of the cell'")
    space.undo()
    look = space.run("len(a); _6 = _oh[6] = 'looked'")
    space.redo("e2")
    assert (space["a"], space["_5"], space["_6"], space["_oh"]) == (
        *([1, 2], "of the cell", "looked"),
        {5: "of the cell", 6: "looked"},
    )
    with pytest.raises(JupyterDistError, match="It changed nothing, and an undone cell before it was done again"):
        space.keeper.undo([look])
    space.undo()
    assert space["a"] == [1]


@pytest.mark.parametrize(
    ("cell", "keep", "reason"),
    [
        ("b = 1", True, "A cell ran after the undo that may have changed something"),
        ("len(a)", False, "A cell ran after it that did not keep undo"),
        ("", True, "It has left a mode of torch on"),
        ("w = torch.zeros(1 << 16)", True, "The limit on memory"),
    ],
)
def test_a_redo_is_refused_with_its_reason(cell: str, reason: str, *, keep: bool) -> None:
    space = Undoable({"cells": 50, "bytes": 1 << 17})
    space.run("import torch; a = [1]; from torch.utils.flop_counter import FlopCounterMode")
    mode = "FlopCounterMode(display=False).__enter__(); " if not cell else ""
    space.run(f"{mode}a.append(2); s = torch.zeros(1 << 14) if {cell.startswith('w')} else 0")
    if cell.startswith("w"):
        space.run("s.add_(1)")
        space.limits["bytes"] = 1 << 16
    space.undo()
    if cell and not cell.startswith("w"):
        space.run(cell, keep=keep)
    before = list(space["a"])
    with pytest.raises(JupyterDistError, match=f"cannot be done again. {reason}"):
        space.redo(f"e{3 if cell.startswith('w') else 2}")
    assert space["a"] == before


def test_a_graph_that_undo_has_cut_is_not_made_again() -> None:
    space = Undoable()
    space.run("import torch; p = torch.ones(2, requires_grad=True); t = torch.zeros(2)")
    space.run("t.add_(p)")
    space.undo()
    with pytest.raises(JupyterDistError, match="changed in place, so its graph is another one"):
        space.redo()
    assert space["t"].tolist() == [0, 0]


def test_a_refused_undo_is_offered_again_when_its_reason_is_gone() -> None:
    space = Undoable()
    space.run("b = bytearray(3); a = [1]")
    cell = space.run("b.extend(b'xy'); a.append(2); view = memoryview(b)")
    for _ in range(2):
        with pytest.raises(JupyterDistError, match="a view of it keeps that size"):
            space.undo()
        assert (len(space["b"]), space["a"]) == (5, [1, 2])  # nothing has changed
        assert cell in space.keeper.after()["undo"]["kept"]
    space["view"].release()
    assert space.undo() == []
    assert (len(space["b"]), space["a"], "view" in space.names) == (3, [1], False)
