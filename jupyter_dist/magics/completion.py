"""Names of ranks, and rank expressions, in the kernel's completion: fetched on demand and not stored in the kernel."""

from __future__ import annotations

import builtins
import contextlib
import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

from jupyter_dist.client import Group, JupyterDistError
from jupyter_dist.client.answers.cursor import at_cursor
from jupyter_dist.protocol.ranks import completions, ranks_in

from .automode import AutoMode, goes_to_ranks
from .session import Session

# The kernel's magics, including ours, are useful in every cell.
KEPT = {"IPCompleter.magic_matcher", "IPCompleter.magic_config_matcher", "IPCompleter.magic_color_matcher"}
NOT_VARIABLES = {"In", "Out", "exit", "quit", "get_ipython"}

_CELL_MAGIC = re.compile(r"%%(distributed|rank|dip)\b\s*(.*)")
# The rank expression of a magic, up to the cursor.
_EXPRESSION = re.compile(r"(?:%%rank\s*[\[\"'\s]?|%dist_\w+\b.*\s(?:-r|--ranks)[ =]?)([^\s\"'\]]*)\Z")
_NAME = re.compile(r"(?<![\w.])(?:[^\W\d]\w*)?\Z")


@dataclass(frozen=True)
class CellTarget:
    """Where a cell will run: its ranks, the code they will get, and the cursor in it."""

    ranks: str
    code: str
    cursor_pos: int
    in_kernel_too: bool = False


class RankNames:
    """A matcher for IPython; returns matches only for cells that run on ranks."""

    def __init__(self, session: Session, auto: AutoMode) -> None:
        self._session = session
        self._auto = auto
        self._names: list[str] = []  # names on rank 0 at the last refresh, in case it cannot answer

    @context_matcher(identifier="jupyter_dist")
    def matcher(self, context: CompletionContext) -> SimpleMatcherResult:
        """Called by IPython with a cell and a cursor."""
        place, group = self._place(context), self._session.known
        if place is None and group is not None and (line := _EXPRESSION.match(context.text_until_cursor)):
            return self._expressions(line[1], group)
        if place is None or group is None:
            return {"completions": []}
        rank = first_rank(group, place.ranks)
        found = self._ask(group, rank, place) or self._remembered(place)
        texts = [text for text in found["matches"] if not text.startswith("%")]
        return {
            "completions": [SimpleCompletion(text=text, type=f"rank\N{NO-BREAK SPACE}{rank}") for text in texts],
            "matched_fragment": place.code[found["cursor_start"] : place.cursor_pos],
            "suppress": not place.in_kernel_too,
            "do_not_suppress": KEPT,
        }

    def _expressions(self, typed: str, group: Group) -> SimpleMatcherResult:
        texts = completions(typed, group.model)
        return {
            "completions": [SimpleCompletion(text=text, type="ranks") for text in texts],
            "matched_fragment": typed,
            "suppress": bool(texts),
        }

    def refresh(self, group: Group) -> list[str]:
        """Fetch the variables of rank 0, and cache them.

        Raises:
            JupyterDistError: if it cannot answer.
        """
        found = at_cursor(group, "complete_request", 0, "", 0) or {"matches": []}
        python = set(keyword.kwlist) | set(dir(builtins)) | NOT_VARIABLES
        self._names = [name for name in found["matches"] if name.isidentifier() and name not in python]
        return self._names

    def _ask(self, group: Group, rank: int, place: CellTarget) -> Mapping[str, Any] | None:
        with contextlib.suppress(JupyterDistError):
            return at_cursor(group, "complete_request", rank, place.code, place.cursor_pos)
        return None

    def _remembered(self, place: CellTarget) -> Mapping[str, Any]:
        word = _NAME.search(place.code[: place.cursor_pos])
        matches = [name for name in self._names if word is not None and name.startswith(word[0])]
        start = place.cursor_pos - len(word[0] if word else "")
        return {"matches": matches, "cursor_start": start, "cursor_end": place.cursor_pos}

    def _place(self, context: CompletionContext) -> CellTarget | None:
        lines = context.full_text.split("\n")
        before = [*lines[: context.cursor_line], context.text_until_cursor]
        return place_of(lines, before, self._auto.prefix)


def place_of(lines: list[str], before: list[str], prefix: str | None) -> CellTarget | None:
    """Return where a cell will run; None for the kernel, or if the cursor is in the magic's own line.

    Args:
        lines: the cell.
        before: the lines before the cursor; the last one up to it.
        prefix: AutoMode's.
    """
    magic = _CELL_MAGIC.match(lines[0])
    if magic is None:
        if prefix is None or not goes_to_ranks(lines):
            return None
        magic = _CELL_MAGIC.match(f"%%{prefix}")
        first = 0
    else:
        first = 1
    if magic is None or len(before) <= first:
        return None
    name, arguments = magic.groups()
    if name == "dip" and "local" in arguments.split():
        return None
    ranks = arguments if name == "rank" else "all"
    everywhere = name == "dip" and "everywhere" in arguments.split()
    return CellTarget(ranks, "\n".join(lines[first:]), len("\n".join(before[first:])), everywhere)


def first_rank(group: Group, ranks: str) -> int:
    """Return the first rank of an expression in a group; rank 0 if it is not one."""
    with contextlib.suppress(JupyterDistError):
        return ranks_in(group.model, ranks.strip("\"'"))[0]
    return 0
