"""Completions at the cursor: from the shell while the rank is idle, from the namespace alone while a cell runs."""

from __future__ import annotations

import keyword
import re
from typing import TYPE_CHECKING, Any

from IPython.core.completer import provisionalcompleter, rectify_completions

from jupyter_dist.rank.cells.shell import RankShell

from .inspection import kind_of, signature_of, static_attribute, static_value

if TYPE_CHECKING:
    from jupyter_dist.parts.introspection.models import CompletionModel

MAX_MATCHES = 2000
MAX_SIGNATURES = 50  # each takes up to 0.1 ms, and users read the first ones

# The name before the cursor, unless it is an attribute.
_BASE = re.compile(r"[\w.]*\Z")  # of an attribute; versions of IPython complete more or less of the name
_NAME = re.compile(r"(?<![\w.])(?:[^\W\d]\w*)?\Z")


def complete(shell: RankShell, code: str, cursor_pos: int) -> CompletionModel:
    """Return the completions of the shell. Attribute access may run user code."""
    with provisionalcompleter():
        found = list(rectify_completions(code, shell.Completer.completions(code, cursor_pos)))[:MAX_MATCHES]
    start = found[0].start if found else cursor_pos
    end = found[0].end if found else cursor_pos
    matches = [match.text for match in found]
    answer = _answer(matches, start, end)
    answer["types"], answer["signatures"] = _described(shell.user_ns, code[:start], matches)
    return answer


def _described(namespace: dict[Any, Any], before: str, matches: list[str]) -> tuple[list[str], list[str]]:
    """Return types and signatures of matches. Properties are not evaluated for that."""
    base = _BASE.search(before)
    assert base is not None
    owner, dot, part = base[0].rpartition(".")
    if dot and not any("." in match for match in matches):
        found = static_value(namespace, owner)
        values = [static_attribute(found, part + match) for match in matches]
    else:
        values = [static_value(namespace, base[0] + match) for match in matches]
    kinds = [
        "keyword" if keyword.iskeyword(match) else kind_of(value) for match, value in zip(matches, values, strict=True)
    ]
    signatures = [signature_of(value) for value in values[:MAX_SIGNATURES]]
    return kinds, signatures + [""] * (len(matches) - len(signatures))


def names(namespace: dict[Any, Any], code: str, cursor_pos: int) -> CompletionModel:
    """Return completions while a cell runs: variables only, without attributes, so that no code runs."""
    before = _NAME.search(code[:cursor_pos])
    if before is None:
        return _answer([], cursor_pos, cursor_pos)
    word = before[0]
    known = [name for name in list(namespace) if isinstance(name, str) and name.startswith(word)]
    shown = sorted(name for name in known if word.startswith("_") or not name.startswith("_"))
    return _answer(shown[:MAX_MATCHES], cursor_pos - len(word), cursor_pos)


def _answer(matches: list[str], start: int, end: int) -> CompletionModel:
    return {"matches": matches, "cursor_start": start, "cursor_end": end}
