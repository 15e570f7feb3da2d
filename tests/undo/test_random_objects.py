"""Random object graphs, changed at random: after undo every object is the same and contains the same."""

from __future__ import annotations

import random
from array import array
from collections import defaultdict, deque
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keeping import Undoable
from objects import Slotted, build, fill, function, spoil


def picture(names: dict[str, Any]) -> dict[Any, Any]:
    """Return what can be seen of all objects: by identity, in order."""
    found: dict[Any, Any] = {name: id(one) for name, one in names.items() if name[:1] != "_"}
    todo = [one for name, one in names.items() if name[:1] != "_"]
    while todo:
        one = todo.pop()
        if id(one) in found or isinstance(one, int | str | type(None) | type):
            continue
        seen = seen_in(one)
        found[id(one)] = [type(one), *(item if isinstance(item, int | str | bytes) else id(item) for item in seen)]
        todo += [item for item in seen if not isinstance(item, bytes)]
    return found


def seen_in(one: Any) -> list[Any]:
    """Return the contents of one object."""
    seen: list[Any] = []
    if isinstance(one, dict):
        seen += [part for item in one.items() for part in item]
    elif isinstance(one, set):
        seen += sorted(one)
    elif isinstance(one, bytearray | array):
        seen.append(bytes(one))
    elif isinstance(one, list | deque | tuple):
        seen += one
    elif isinstance(one, Slotted):
        seen += [getattr(one, slot, None) for slot in Slotted.__slots__]
    elif isinstance(one, type(function)):
        seen += [one.__defaults__, *(cell.cell_contents for cell in one.__closure__ or ())]
    if hasattr(one, "__dict__"):
        seen += [one.__dict__]
    if isinstance(one, defaultdict):
        seen.append(one.default_factory)
    return seen


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 1 << 30), st.integers(2, 25), st.integers(1, 4))
def test_undo_of_random_changes(seed: int, size: int, num_cells: int) -> None:
    names = build(seed, size)
    space = Undoable(**names, chance=random.Random(seed), fill=fill, spoil=spoil)
    space.names["_objects"] = list(names.values())
    pictures = []
    for cell in range(num_cells):
        pictures.append(picture(space.names))
        space.run(
            "for one in chance.choices(_objects, k=6):\n"
            "    spoil(chance, one) if chance.random() < 0.5 else fill(chance, one, chance.choice(_objects))\n"
            f"new{cell} = first\n"
            "first = [first]\n" + ("1 / 0\n" if seed % 2 else "")
        )
        assert space.last["kept"], space.last
    for before in reversed(pictures):
        assert space.undo() == []
        assert picture(space.names) == before


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 30), st.integers(2, 5))
def test_undo_of_several_cells_at_once(seed: int, num_cells: int) -> None:
    space = Undoable(**build(seed, 12), chance=random.Random(seed), fill=fill, spoil=spoil)
    space.names["_objects"] = list(space.names.values())[2:8]
    before = picture(space.names)
    for _ in range(num_cells):
        space.run("for one in _objects:\n    spoil(chance, one)\n    fill(chance, one, chance.choice(_objects))\n")
    space.undo(num_cells)
    assert picture(space.names) == before


@pytest.mark.parametrize("value", ["bytearray(b'abc')", "__import__('array').array('d', [1.0])"])
def test_a_view_keeps_the_size_of_its_bytes(value: str) -> None:
    space = Undoable()
    space.run(f"data = {value}")
    space.run("data.append(7); view = memoryview(data)")
    kept = space.last["kept"]
    with pytest.raises(Exception, match="a view of it keeps that size"):
        space.keeper.check(kept[-1:])
