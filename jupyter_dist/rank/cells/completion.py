"""Completions at the cursor: from the shell while the rank is idle, from the namespace alone while a cell runs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from IPython.core.completer import provisionalcompleter, rectify_completions

from .shell import RankShell

if TYPE_CHECKING:
    from jupyter_dist.protocol.models import Completion

MAX_MATCHES = 2000

# The name before the cursor, unless it is an attribute.
_NAME = re.compile(r"(?<![\w.])(?:[^\W\d]\w*)?\Z")


def complete(shell: RankShell, code: str, cursor_pos: int) -> Completion:
    """Return the completions of the shell. Attribute access may run user code."""
    with provisionalcompleter():
        found = list(rectify_completions(code, shell.Completer.completions(code, cursor_pos)))[:MAX_MATCHES]
    start = found[0].start if found else cursor_pos
    end = found[0].end if found else cursor_pos
    return _answer([match.text for match in found], start, end)


def names(namespace: dict[Any, Any], code: str, cursor_pos: int) -> Completion:
    """Return completions while a cell runs: variables only, without attributes, so that no code runs."""
    before = _NAME.search(code[:cursor_pos])
    if before is None:
        return _answer([], cursor_pos, cursor_pos)
    word = before[0]
    known = [name for name in list(namespace) if isinstance(name, str) and name.startswith(word)]
    shown = sorted(name for name in known if word.startswith("_") or not name.startswith("_"))
    return _answer(shown[:MAX_MATCHES], cursor_pos - len(word), cursor_pos)


def _answer(matches: list[str], start: int, end: int) -> Completion:
    return {"matches": matches, "cursor_start": start, "cursor_end": end}
