"""What calls of libraries show, sent at once: each is rare."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from jupyter_dist.parts.checks.reports import CallFact
from jupyter_dist.rank.collectives.diagnosis import lines
from jupyter_dist.rank.guard.own import linecache, threading
from jupyter_dist.transport.rows import CodePlace

MAX_FACTS = 100  # of a cell


class Facts:
    """The facts of a cell."""

    def __init__(self, namespace: dict[str, Any], send: Callable[[Mapping[str, Any]], None]) -> None:
        self.namespace = namespace
        self._send = send
        self._num_sent = 0
        self.num_steps = 0  # of all optimizers
        self.is_on = False
        self.execution_id = ""

    @property
    def is_observed(self) -> bool:
        """Whether a cell is observed, and this is its thread."""
        return self.is_on and threading.current_thread() is threading.main_thread()

    def place(self) -> CodePlace | None:
        """Return the innermost line of the user's code that runs in this thread; None if no code of a cell runs."""
        found = outer = lines.users_frame(sys._getframe(1))
        while outer is not None and outer.f_globals is not self.namespace:
            outer = outer.f_back
        if found is None or outer is None:
            return None
        file, line = found.f_code.co_filename, lines.line_of(found)
        return CodePlace(file, line, found.f_code.co_name, linecache.getline(file, line).strip()[:200])

    def begin_cell(self, is_on: bool, execution_id: str) -> None:
        """Begin a cell."""
        self.is_on, self.execution_id, self._num_sent, self.num_steps = is_on, execution_id, 0, 0

    def add(
        self,
        kind: str,
        key: object,
        numbers: Iterable[float] = (),
        texts: Iterable[str] = (),
        place: CodePlace | None = None,
    ) -> None:
        """Send a fact. A later one of the same kind and key replaces it."""
        self._num_sent += 1
        if self._num_sent <= MAX_FACTS:
            self._send(
                {"execution_id": self.execution_id, "facts": [CallFact(kind, str(key), (*numbers,), (*texts,), place)]}
            )
