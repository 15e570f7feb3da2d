"""The definitions of earlier cells, as source text: functions, classes, imports, and names of their instances.

Kept as text, because nearly no cell is sent to some ranks; what is needed of it is parsed when one is (needs.py).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

MAX_CHARS = 64_000  # of all together; the oldest are forgotten
MAX_CELL_CHARS = 40_000
MAX_STATEMENT_CHARS = 4_000
_WORD = re.compile(r"\w+")
_BINDS = re.compile(
    r"(?m)^[ \t]*(?:(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)|(\w+)[ \t]*(?::[^=\n]+)?=(?!=)|"
    r"(?:from[ \t]+[\w.]+[ \t]+)?import[ \t]+([^\n]+))"
)
_CONTINUES = re.compile(r"[ \t)\]}#]|$")  # how a line begins that belongs to the statement above
_DEFINES = re.compile(r"(?:@[^\n]*\n)*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)")
WRAPS = ("partial", "compile", "vmap", "lru_cache", "cache")  # functions that make another one of a function
ADDS = {"append": 0, "appendleft": 0, "add": 0, "insert": 1}  # methods of containers, and which argument they add
DROPS = frozenset({"clear", "remove", "discard"})
# A statement that changes a container.
_CHANGES = re.compile(
    r"(\w+)(?:\.(?:"
    + "|".join((*ADDS, *sorted(DROPS), "extend", "update"))
    + r")\(|\[[^\]\n]*\][ \t]*=(?!=)|[ \t]*\+=)"
)
# What may hold functions: other names, what makes one of another, texts with calls, and containers that are empty or
# begin with a name.
HOLDS = (
    r"(?:lambda\b|[\w.]*\b(?:" + "|".join(WRAPS) + r"|list|tuple|set|dict|deque)\(|[A-Za-z_][\w.]*[ \t]*(?:;|$)"
    r"|\[\s*\]|\{\s*\}"
    r"|[\[({]\s*(?:lambda\b|[*A-Za-z_][\w.]*\s*[,)\]}]|[^\n:=]*:\s*(?:lambda\b|[A-Za-z_][\w.]*\s*[,}])|[\w.]*\bpartial\()"
    r"|[\"'][^\n]*\()"
)
# A lambda, an instance, another name for something.
_MAKES = re.compile(r"(?m)(\w+)[ \t]*=[ \t]*(?:[A-Z]\w*\(|" + HOLDS + ")")


class Definition(NamedTuple):
    """A statement of an earlier cell, its words, and the ranks that have run it."""

    text: str
    words: frozenset[str]
    ranks: frozenset[int]
    calls_others: bool  # functions that it is handed


class Definitions:
    """The last definition of each name."""

    def __init__(self) -> None:
        self._by_name: dict[str, Definition] = {}
        self._num_chars = 0

    def clear(self) -> None:
        """Forget all: the ranks are new."""
        self._by_name.clear()
        self._num_chars = 0

    def note(self, code: str, ranks: Iterable[int]) -> None:
        """Store the definitions of a cell, and drop earlier definitions of the names that it binds."""
        if len(code) > MAX_CELL_CHARS:
            return
        for name in set(_bound(code)):
            self._forget(name)
        here = frozenset(ranks)
        for text in statements(code):
            if len(text) <= MAX_STATEMENT_CHARS:
                for name in _defined(text):
                    self._keep(name, text, here)
                self._change(text, here)
        while self._num_chars > MAX_CHARS:
            self._forget(next(iter(self._by_name)))

    def _keep(self, name: str, text: str, ranks: frozenset[int]) -> None:
        self._forget(name)
        self._by_name[name] = Definition(text, frozenset(_WORD.findall(text)), ranks, _calls_others(text))
        self._num_chars += len(text)

    def _change(self, text: str, ranks: frozenset[int]) -> None:
        """Add a statement such as `functions.append(step)` to the definition of the container."""
        found = _CHANGES.match(text)
        known = self._by_name.get(found[1]) if found is not None else None
        if found is None or known is None or known.text.endswith(text):
            return
        changed, both = f"{known.text}\n{text}", known.ranks & ranks
        if both and len(changed) <= MAX_STATEMENT_CHARS:
            self._keep(found[1], changed, both)

    def _forget(self, name: str) -> None:
        known = self._by_name.pop(name, None)
        self._num_chars -= len(known.text) if known is not None else 0

    def about(self, words: frozenset[str], ranks: Sequence[int]) -> dict[str, str]:
        """Return the definitions on these ranks that contain one of these words, or use such a definition, by name.

        Functions that call one of their arguments are among them.
        """
        here = {name: known for name, known in self._by_name.items() if not known.ranks.isdisjoint(ranks)}
        found = {name for name, known in here.items() if known.calls_others}
        grown = True
        while grown:
            more = {name for name, known in here.items() if not known.words.isdisjoint(words | found)} - found
            found |= more
            grown = bool(more)
        return {name: here[name].text for name in found}


def statements(code: str) -> Iterator[str]:
    """Yield the statements at the top level of code, by how their lines begin."""
    begun: list[str] = []
    for line in code.splitlines():
        belongs = _CONTINUES.match(line) or (begun and begun[-1].startswith("@")) or line.startswith(_CLAUSES)
        if begun and not belongs:
            yield "\n".join(begun)
            begun = []
        begun.append(line)
    if begun:
        yield "\n".join(begun)


_CLAUSES = ("else:", "elif ", "except:", "except ", "except*", "finally:")


_PARAMETERS = re.compile(r"(?:\bdef[ \t]+\w+[ \t]*\(|\blambda\b)([^:]*):|\bfor[ \t]+([\w, \t]+)[ \t]in\b")
_CALLED = re.compile(r"(?<![\w.])(\w+)\(")


def _calls_others(text: str) -> bool:
    names = {name for found in _PARAMETERS.findall(text) for each in found for name in _WORD.findall(each)}
    return not names.isdisjoint(_CALLED.findall(text))


def _bound(code: str) -> Iterator[str]:
    for defined, assigned, imported in _BINDS.findall(code):
        if imported:
            for part in imported.strip("()").split(","):
                yield part.split(" as ")[-1].strip().partition(".")[0]
        else:
            yield defined or assigned


def _defined(text: str) -> list[str]:
    """Return the names that a statement defines, if their values can be read from its code."""
    if (found := _DEFINES.match(text) or _MAKES.match(text)) is not None:
        return [found[1]]
    if text.startswith(("import ", "from ")) and "torch" in text:
        try:
            aliases = [
                alias
                for node in ast.parse(text).body
                if isinstance(node, ast.Import | ast.ImportFrom)
                for alias in node.names
            ]
        except (SyntaxError, ValueError):
            return []
        return [(alias.asname or alias.name).partition(".")[0] for alias in aliases]
    return []
