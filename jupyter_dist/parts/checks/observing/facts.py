"""What calls of libraries show, sent at once: each is rare."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from jupyter_dist.rank.collectives.diagnosis import records
from jupyter_dist.rank.guard.own import threading

from .places import Place, place_of

MAX_FACTS = 100  # of a cell


class Facts:
    """The facts of a cell."""

    def __init__(self, namespace: dict[str, Any], send: Callable[[Mapping[str, Any]], None]) -> None:
        self.namespace = namespace
        self._send = send
        self._num_sent = 0
        self.is_on = False
        self.execution_id = ""

    @property
    def is_observed(self) -> bool:
        """Whether a cell is observed, and this is its thread."""
        return self.is_on and threading.current_thread() is threading.main_thread()

    def place(self, depth: int) -> Place | None:
        """Return the line of the user's code that has called so many functions further down."""
        return place_of(sys._getframe(depth), self.namespace)

    def begin_cell(self, is_on: bool, execution_id: str) -> None:
        """Begin a cell."""
        self.is_on, self.execution_id, self._num_sent = is_on, execution_id, 0

    def add(
        self,
        kind: str,
        key: object,
        numbers: Iterable[float] = (),
        texts: Iterable[str] = (),
        place: Place | None = None,
    ) -> None:
        """Send a fact. A later one of the same kind and key replaces it."""
        self._num_sent += 1
        if self._num_sent <= MAX_FACTS:
            row = {"kind": kind, "key": str(key), "numbers": list(numbers), "texts": list(texts), "place": place}
            self._send({"execution_id": self.execution_id, "facts": [row]})


def collectives_since(time_ns: int) -> list[tuple[str, int, int]]:
    """Return the collectives that were begun after a time: name, elements, and when. Takes about a millisecond."""
    found = []
    for entries in records.entries_by_recorder().values():
        with suppress(*records.OF_OTHER_VERSIONS):
            for entry in entries:
                if int(entry["time_created_ns"]) >= time_ns and not entry.get("is_p2p"):
                    size = 1
                    for length in (entry.get("input_sizes") or [[]])[0]:
                        size *= int(length)
                    name = str(entry["profiling_name"]).rpartition(":")[2]
                    found.append((name, size, int(entry["time_created_ns"])))
    return found
