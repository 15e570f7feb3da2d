"""Whether a cell calls something that all ranks must call, by its code and by what ranks have under its names. Pure.

Used for a cell that is sent to some ranks only. It must not be wrong about code with a process group for these ranks,
so where the code alone is not enough, the answer is no: a hang is still named when it happens
(parts/hangs/agent/verdict.py).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from jupyter_dist.protocol.parts import body_magics

from .cellreader import CHECKPOINT, GROUP_POSITIONS, METHODS, TENSOR_METHODS, WRAPPERS, Reader
from .definitions import WRAPS, statements

# What is longer or denser takes more than 5 ms to parse. Of a longer cell, only the statements that matter are parsed.
MAX_BYTES = 4_000
MAX_WORDS = 1_200
MAX_CELL_BYTES = 40_000
WORDS = frozenset(("dist", "distributed", "backward", *GROUP_POSITIONS, *WRAPPERS, *TENSOR_METHODS, *CHECKPOINT, "dcp"))
_TIMED = re.compile(rf"%%(?:{'|'.join(body_magics())})\b[^\n]*\n")
_MAGIC = re.compile(r"(?m)^([ \t]*)(?:%(?:time|timeit|prun)[ \t]+(?=\w)|[!%?][^\n]*)")
_WORD = re.compile(r"\w+")
_DEFINED = re.compile(r"\b(?:def|class)[ \t]+(\w+)")
_BACKWARD = re.compile(r"(\w+)\.backward\b")
_ALIAS = re.compile(r"\bas[ \t]+(\w+)")
# What a name gets that may be called by it: `red = dist.all_reduce`, `functions.append(step)`.
_OTHER_NAME = re.compile(
    r"(?m)^[ \t]*([\w.]+(?:[ \t]*[,=][ \t]*[\w.]+)*)(?:[ \t]*\+?=|\[[^\]\n]*\][ \t]*="
    r"|\.(?:append|appendleft|add|insert|extend|update)\()[ \t]*"
    r"((?:[\w.]*\b(?:" + "|".join(WRAPS) + r")\([^\n]*|[\w.]+(?:[ \t]*,[ \t]*[\w.]+)*\)?[ \t]*$|[a-z_]\w*\(\)"
    r"|[\[({][^\n]*(?:\n[ \t\])}][^\n]*)*"
    r"|(?:list|tuple|set|dict|deque)\([^\n]*|\"\"\"(?s:.*?)\"\"\"|\'\'\'(?s:.*?)\'\'\'|[\"'][^\n]*))"
)
_LAMBDA = re.compile(r"(\w+)[ \t]*=[ \t]*lambda\b")

__all__ = ["METHODS", "WORDS", "find_need"]


def find_need(
    code: str, kinds: Mapping[str, str], earlier: Mapping[str, str] | None = None, world_size: int | None = None
) -> str | None:
    """Return the first call that all ranks must make, such as `all_reduce`; None if there is none, or it is not clear.

    Args:
        code: the cell, with IPython's syntax.
        kinds: what the ranks have under names: a key of METHODS by name.
        earlier: the statements of earlier cells that have defined names, by name (definitions.py).
        world_size: the number of ranks.
    """
    if len(code) > MAX_CELL_BYTES or (code.startswith("%%") and not _TIMED.match(code)):
        return None
    plain = _MAGIC.sub(lambda found: found[1] + ("" if found[0].rstrip() != found[0] else "pass"), _TIMED.sub("", code))
    words = _words(plain, kinds, earlier or {})
    if not _matters(plain, words):
        return None
    try:
        body = _parsed(plain, words)
        return next(Reader(body, kinds, earlier or {}, world_size).needs(body), None)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _parsed(plain: str, words: frozenset[str]) -> list[ast.stmt]:
    """Return the statements that matter. Most of a cell has nothing to do with it; to read all would take longer."""
    if len(plain) <= MAX_BYTES and len(_WORD.findall(plain)) <= MAX_WORDS:
        lines = plain.splitlines()
        body = ast.parse(plain).body
        return [node for node in body if _matters("\n".join(lines[node.lineno - 1 : node.end_lineno]), words)]
    found = "\n".join(text for text in statements(plain) if _matters(text, words))
    if len(found) > MAX_BYTES or len(_WORD.findall(found)) > MAX_WORDS:
        raise ValueError("too long")
    return ast.parse(found).body


def _words(code: str, kinds: Mapping[str, str], earlier: Mapping[str, str]) -> frozenset[str]:
    """Return the words of lines that matter: collectives, wrappers, what ranks have, and functions."""
    found = [name for pattern in (_DEFINED, _BACKWARD, _ALIAS, _LAMBDA) for name in pattern.findall(code)]
    names = (re.split(r"[.\[]", name)[0] for name in kinds)
    words = WORDS.union(names, found, earlier)
    for names_here, value in _OTHER_NAME.findall(code):
        if not words.isdisjoint(_WORD.findall(value)):
            words |= {*_WORD.findall(names_here)}
    return words


def _matters(text: str, words: frozenset[str]) -> bool:
    return "rank" in text.lower() or not words.isdisjoint(_WORD.findall(text))
