"""Random graphs of objects over names: a restored graph has the same values, and shares what the saved one shared."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shells import Shell

DEFINES = """
import numpy as np, torch
class Node:
    pass
class Slotted:
    __slots__ = ("held",)
def closure(held):
    def get(): return held
    return get
"""
MEMORY = ["tensor", "view", "array", "slice", "turned", "torch", "numpy"]
KINDS = ["list", "dict", "tuple", "node", "slotted", "closure", *MEMORY, *MEMORY]


class Graph:
    """Objects that are made one after the other, of those before."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.objects: list[Any] = []
        self._names = namespace

    def add(self, kind: str, first: int, second: int) -> None:
        self.objects.append(getattr(self, f"_make_{kind}")(self._before(first), self._before(second)))

    def _before(self, number: int) -> Any:
        return self.objects[number % len(self.objects)] if self.objects else number

    def link(self, first: int, second: int) -> None:
        """Let an earlier object refer to any other, which makes circles."""
        one, other = self._before(first), self._before(second)
        if type(one) is list:
            one.append(other)
        elif type(one) is dict:
            one[f"to {second}"] = other
        elif type(one) is self._names["Node"]:
            one.to = other

    def _make_list(self, one: Any, other: Any) -> Any:
        return [one, 1, other]

    def _make_dict(self, one: Any, other: Any) -> Any:
        return {"one": one, "other": other}

    def _make_tuple(self, one: Any, other: Any) -> Any:
        return (one, other)

    def _make_node(self, one: Any, other: Any) -> Any:
        node = self._names["Node"]()
        node.one, node.other = one, other
        return node

    def _make_slotted(self, one: Any, other: Any) -> Any:
        slotted = self._names["Slotted"]()
        slotted.held = one
        return slotted

    def _make_closure(self, one: Any, other: Any) -> Any:
        return self._names["closure"](one)

    def _make_tensor(self, one: Any, other: Any) -> Any:
        return torch.arange(24.0).reshape(4, 6)

    def _make_view(self, one: Any, other: Any) -> Any:
        base = self._one_of(torch.Tensor, one)
        return torch.ones(3, 3) if base is None else base[1:, ::2]

    def _make_array(self, one: Any, other: Any) -> Any:
        return np.array([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]])

    def _make_slice(self, one: Any, other: Any) -> Any:
        base = self._one_of(np.ndarray, one)
        return np.zeros((3, 4)) if base is None else base[1:, ::2]

    def _make_turned(self, one: Any, other: Any) -> Any:
        base = self._one_of(np.ndarray, one)
        return np.zeros((3, 4)) if base is None else base[::-1, ::-1]

    def _make_torch(self, one: Any, other: Any) -> Any:
        base = self._one_of(np.ndarray, one)
        is_usable = base is not None and all(stride > 0 for stride in base.strides)
        return torch.from_numpy(base) if is_usable else torch.zeros(2, 2)

    def _make_numpy(self, one: Any, other: Any) -> Any:
        base = self._one_of(torch.Tensor, one)
        return np.ones((2, 2)) if base is None else base.numpy()

    def _one_of(self, kind: type, one: Any) -> Any:
        """Return this object, or the last one of a kind that is large enough to be cut."""
        found = [each for each in (*self.objects, one) if isinstance(each, kind) and min(each.shape) > 1]
        return found[-1] if found else None


def address(value: Any) -> int:
    return value.data_ptr() if isinstance(value, torch.Tensor) else value.__array_interface__["data"][0]


def parts(value: Any) -> list[Any]:
    if type(value) in (list, tuple):
        return list(value)
    if type(value) is dict:
        return [part for item in value.items() for part in item]
    if type(value) is FunctionType:
        return [cell.cell_contents for cell in value.__closure__ or ()]
    if type(value).__name__ == "Node":
        return parts(vars(value))
    return [value.held] if type(value).__name__ == "Slotted" else []


class Comparison:
    """Walks through two graphs side by side."""

    def __init__(self) -> None:
        self.same: dict[int, Any] = {}
        self.back: dict[int, Any] = {}
        self.memory: list[tuple[Any, Any]] = []

    def compare(self, one: Any, other: Any) -> None:
        todo = [(one, other)]
        while todo:
            one, other = todo.pop()
            if isinstance(one, (int, float, str)):
                assert one == other
                continue
            known = self.same.get(id(one))
            # A tuple cannot change, so that two equal ones may become one, or one two.
            if known is not None and type(one) is not tuple:
                assert known is other
                assert self.back[id(other)] is one
            if known is not None:
                continue
            assert type(one).__name__ == type(other).__name__
            if type(one) is not tuple:
                assert id(other) not in self.back
            self.same[id(one)], self.back[id(other)] = other, one
            if isinstance(one, (torch.Tensor, np.ndarray)):
                self._compare_memory(one, other)
            inside, beside = parts(one), parts(other)
            assert len(inside) == len(beside)
            todo += zip(inside, beside, strict=True)

    def _compare_memory(self, one: Any, other: Any) -> None:
        assert np.array_equal(np.asarray(one), np.asarray(other))
        strides = (one.stride(), other.stride()) if isinstance(one, torch.Tensor) else (one.strides, other.strides)
        assert strides[0] == strides[1]
        for before, after in self.memory:
            is_shared = np.shares_memory(np.asarray(before), np.asarray(one))
            assert np.shares_memory(np.asarray(after), np.asarray(other)) == is_shared
            if is_shared:
                assert address(after) - address(other) == address(before) - address(one)
        self.memory.append((one, other))


numbers = st.integers(0, 30)
makings = st.lists(st.tuples(st.sampled_from(KINDS), numbers, numbers), min_size=1, max_size=30)
links = st.lists(st.tuples(numbers, numbers), max_size=6)


@given(makings=makings, links=links, named=st.lists(numbers, min_size=1, max_size=30))
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.usefixtures("shell")
def test_a_restored_graph_shares_what_the_saved_one_shared(
    makings: list[tuple[str, int, int]], links: list[tuple[int, int]], named: list[int]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        before = Shell(Path(folder))
        before.run(DEFINES)
        graph = Graph(before.names)
        for making in makings:
            graph.add(*making)
        for link in links:
            graph.link(*link)
        names = {f"n{place}": graph.objects[number % len(graph.objects)] for place, number in enumerate(named)}
        before.names.update(names)
        assert not before.save().skipped
        after = Shell(before.folder)
        assert not after.restore().failed
        comparison = Comparison()
        for name, value in names.items():
            comparison.compare(value, after.names[name])
        after.run("assert all(type(one) is not Node or one.__class__ is Node for one in list(globals().values()))")
