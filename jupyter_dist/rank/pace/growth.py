"""Finds variables of the user that only grow: lists, dictionaries, sets and deques."""

from __future__ import annotations

from collections import deque
from typing import Any

MAX_NAMES = 2000
MAX_GROWN = 10
MAX_NAME = 100
_KINDS = (list, dict, set, deque)


class Growth:
    """Compares the lengths of variables from look to look. No code of the user runs: these types are Python's own."""

    def __init__(self) -> None:
        self._lengths: dict[str, tuple[int, int]] = {}  # by name: the id of the object, and its length
        self._first: dict[str, int] = {}
        self._shrunk: set[str] = set()

    def look(self, namespace: dict[str, Any]) -> list[list[Any]]:
        """Return the names that have grown at each look, with their type and by how much; the longest first."""
        found: dict[str, tuple[int, int]] = {}
        kinds: dict[str, str] = {}
        for name, value in list(namespace.items())[:MAX_NAMES]:
            if type(name) is str and not name.startswith("_") and type(value) in _KINDS and value is not namespace:
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
            if name not in self._shrunk and length > self._first[name] and name not in ("In", "Out")
        ]
        return [[name[:MAX_NAME], kinds[name], by] for by, name in sorted(grown, reverse=True)[:MAX_GROWN]]
