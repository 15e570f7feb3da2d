"""Answers to a client while its user types: completions, documentation, and the history."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from typing import Any

from jupyter_dist.client import Group, JupyterDistError
from jupyter_dist.client.answers.cursor import at_cursor
from jupyter_dist.kernel.execution.host import KernelHost
from jupyter_dist.kernel.execution.lines import KernelMagics
from jupyter_dist.magics.completion import CellTarget, first_rank, place_of

PREFIX = "distributed"  # AutoMode's: where cells run that do not choose
MAX_HISTORY = 1000

_MAGIC = re.compile(r"\s*%%?(\w+)")
# ipykernel's name for what completers show beside a name.
_TYPES = "_jupyter_types_experimental"


class Knowing:
    """Answered by the first rank that the cell runs on; never waits for a running cell, never starts a group."""

    def __init__(self, host: KernelHost, magics: KernelMagics) -> None:
        self._host = host
        self._magics = magics
        self._history: list[tuple[int, int, str]] = []

    def complete(self, code: str, cursor_pos: int) -> dict[str, Any]:
        """Return the content of a complete_reply."""
        line = code[:cursor_pos].rsplit("\n", maxsplit=1)[-1]
        if line.startswith("%") and " " not in line:
            names = self._magic_names(line)
            return {"matches": names, "cursor_start": cursor_pos - len(line), "cursor_end": cursor_pos, "metadata": {}}
        nothing = {"matches": [], "cursor_start": cursor_pos, "cursor_end": cursor_pos, "metadata": {}}
        asked = self._asked(code, cursor_pos)
        if asked is None:
            return nothing
        group, place, rank = asked
        try:
            found = at_cursor(group, "complete_request", rank, place.code, place.cursor_pos)
        except JupyterDistError:
            return nothing
        if found is None:
            return nothing
        offset = cursor_pos - place.cursor_pos  # of a magic's own line
        start, end = found["cursor_start"] + offset, found["cursor_end"] + offset
        triples = zip(found["matches"], found.get("types", ()), found.get("signatures", ()), strict=False)
        types = [
            {"start": start, "end": end, "text": text, "type": kind, "signature": signature}
            for text, kind, signature in triples
        ]
        metadata = {_TYPES: types} if types else {}
        return {"matches": found["matches"], "cursor_start": start, "cursor_end": end, "metadata": metadata}

    def inspect(self, code: str, cursor_pos: int, detail: int) -> dict[str, Any]:
        """Return the content of an inspect_reply."""
        line = code[:cursor_pos].rpartition("\n")[2] + code[cursor_pos:].partition("\n")[0]
        if (magic := _MAGIC.match(line)) is not None and (text := self._magics.help_of(magic[1])) is not None:
            return _inspected(text)
        asked = self._asked(code, cursor_pos)
        if asked is None:
            return {"found": False, "data": {}, "metadata": {}}
        group, place, rank = asked
        try:
            found = at_cursor(group, "inspect_request", rank, place.code, place.cursor_pos, detail=detail)
        except JupyterDistError as err:
            return _inspected(f"Rank {rank}: {err}")
        if found is None or not (found["found"] or found["busy"]):
            return {"found": False, "data": {}, "metadata": {}}
        return {"found": True, "data": found["data"], "metadata": {}}

    def remember(self, count: int, code: str) -> None:
        """Add a cell to the history."""
        self._history.append((0, count, code))
        del self._history[:-MAX_HISTORY]

    def history(self, wanted: dict[str, Any]) -> list[Any]:
        """Return the content of a history_reply: the cells of the group, from all clients."""
        found, kind = self._cells(), wanted.get("hist_access_type")
        if kind == "range":
            first, last = wanted.get("start") or 0, wanted.get("stop")
            found = [entry for entry in found if first <= entry[1] and (last is None or entry[1] < last)]
        if kind == "search":
            found = [entry for entry in found if fnmatch(entry[2], str(wanted.get("pattern") or "*"))]
        if wanted.get("unique"):
            found = list({entry[2]: entry for entry in found}.values())
        if kind in ("tail", "search") and (number := wanted.get("n")):
            found = found[-int(number) :]
        if wanted.get("output"):
            return [(session, count, (code, None)) for session, count, code in found]
        return found

    def _cells(self) -> list[tuple[int, int, str]]:
        """Return the group's cells; without a group, or without an answer from its server, this process's cells."""
        group = self._host.group_if_any()
        try:
            cells = group.history(MAX_HISTORY) if group is not None else []
        except JupyterDistError:
            cells = []
        return [(0, cell.execution_count or 0, cell.code) for cell in cells] or list(self._history)

    def _asked(self, code: str, cursor_pos: int) -> tuple[Group, CellTarget, int] | None:
        """Return the rank to ask, and what the cursor is in; None if there is no group, or no code at the cursor."""
        place = place_of(code.split("\n"), code[:cursor_pos].split("\n"), PREFIX) or CellTarget("all", code, cursor_pos)
        group = self._host.group_if_any()
        return None if group is None else (group, place, first_rank(group, place.ranks))

    def _magic_names(self, line: str) -> list[str]:
        names = [f"%{name}" for name in self._magics.magics["line"]]
        names += [f"%%{name}" for name in self._magics.magics["cell"]]
        return sorted(name for name in names if name.startswith(line))


def _inspected(text: str) -> dict[str, Any]:
    return {"found": True, "data": {"text/plain": text}, "metadata": {}}
