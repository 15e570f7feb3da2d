"""Finds variables of the user that only grow: lists, dictionaries, sets and deques, and sums that keep their graph."""

from __future__ import annotations

import contextlib
import re
from collections import deque
from typing import Any

import torch

from jupyter_dist.rank.cells.values.opening import is_one_of
from jupyter_dist.rank.guard.own import linecache

MAX_NAMES = 2000
MAX_GROWN = 10
MAX_NAME = 100
MAX_CODE = 200
MANY_NUMBERS = 100_000  # that a variable must gain to matter
_NUMBERS = (int, float, bool, complex)
_KINDS = (list, dict, set, deque)
# An assignment in a block: `sum += loss`, `sum = sum + loss`, `sum = loss + sum`, or any other.
_ASSIGNS = r"\s+NAME\s*(?:(?P<adds>\+=)|=(?!=)(?P<sum>\s*NAME\s*\+|.*\+\s*NAME\s*$)?)"
_ADDS = r"\.(append|appendleft|extend|add|update|setdefault)\b|\[.*\]\s*=[^=]|\+="


class Growth:
    """Compares the lengths of variables from look to look. No code of the user runs: these types are Python's own."""

    def __init__(self) -> None:
        self._lengths: dict[str, tuple[int, int]] = {}  # by name: the id of the object, and its length
        self._first: dict[str, int] = {}
        self._shrunk: set[str] = set()
        self._places: dict[tuple[str, str], list[Any] | None] = {}  # by name and file

    def look(self, namespace: dict[str, Any], file: str) -> list[list[Any]]:
        """Return the names that only grow, with their type, by how much, and the line of a cell's file that adds."""
        found: dict[str, tuple[int, int]] = {}
        kinds: dict[str, str] = {}
        for name, value in list(namespace.items())[:MAX_NAMES]:
            if type(name) is str and not name.startswith("_") and is_one_of(value, _KINDS) and value is not namespace:
                found[name] = id(value), len(value)
                kinds[name] = type(value).__name__
        for name, (identity, length) in found.items():
            before = self._lengths.get(name)
            if before is None or before[0] != identity or length < before[1]:
                self._first[name] = length
                if before is not None:
                    self._shrunk.add(name)
        self._lengths = found
        grown = [
            (length - self._first[name], name)
            for name, (_, length) in found.items()
            if name not in self._shrunk
            and length > self._first[name]
            and name not in ("In", "Out")
            and (length - self._first[name] >= MANY_NUMBERS or not _has_numbers(namespace.get(name)))
        ]
        longest = sorted(grown, reverse=True)[:MAX_GROWN]
        rows = [[name[:MAX_NAME], kinds[name], by, self._place_of(name, file)] for by, name in longest]
        return (rows + self._sums(namespace, file))[:MAX_GROWN]

    def _sums(self, namespace: dict[str, Any], file: str) -> list[list[Any]]:
        """Return the tensors with a gradient to which a loop of the cell adds: each keeps the graphs of all it adds."""
        tensors = [
            name
            for name, value in list(namespace.items())[:MAX_NAMES]
            if type(name) is str and type(value) is torch.Tensor and value.requires_grad
        ]
        places = [(name, self._sum_of(name, file)) for name in tensors]
        return [[name[:MAX_NAME], "tensor", 0, place] for name, place in places if place is not None]

    def _sum_of(self, name: str, file: str) -> list[Any] | None:
        """Return the only line of a cell that adds to a sum in a loop; None if a loop sets the sum to another value."""
        key = f"{name} +", file
        if key not in self._places:
            assigns = re.compile(_ASSIGNS.replace("NAME", re.escape(name)))
            lines = enumerate(linecache.getlines(file), 1)
            in_loops = [(number, line, match) for number, line in lines if (match := assigns.match(line))]
            is_sum = len(in_loops) == 1 and (in_loops[0][2]["adds"] or in_loops[0][2]["sum"])
            self._places[key] = [file, in_loops[0][0], "", in_loops[0][1].strip()[:MAX_CODE]] if is_sum else None
        return self._places[key]

    def _place_of(self, name: str, file: str) -> list[Any] | None:
        """Return the only line of a cell that adds to a variable; None if there is none, or there are several."""
        if (name, file) not in self._places:
            adds = re.compile(rf"\b{re.escape(name)}\s*({_ADDS})")
            lines = enumerate(linecache.getlines(file), 1)
            found = [[file, number, "", line.strip()[:MAX_CODE]] for number, line in lines if adds.search(line)]
            self._places[name, file] = found[0] if len(found) == 1 else None
        return self._places[name, file]


def _has_numbers(value: Any) -> bool:
    """Whether a variable has a number as its newest element, which takes next to no memory."""
    with contextlib.suppress(IndexError, RuntimeError, StopIteration):  # the cell changes it meanwhile
        if type(value) is dict:
            return is_one_of(next(reversed(value.values())), _NUMBERS)
        if is_one_of(value, (list, deque)):
            return is_one_of(value[-1], _NUMBERS)
        if type(value) is set:
            return is_one_of(next(iter(value)), _NUMBERS)
    return False
