"""Splits a line into words and the numbers between them.

The TypeScript counterpart is labextension/src/model/numbers/numbertokens.ts. Both run tests/vectors/lines.json,
and their curves with tests/vectors/curves.json.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from jupyter_dist.protocol.ranks import WHITE

# Hashes and identifiers: the commit 3f2a91c. They are compared as a whole.
_HASH = (
    r"(?<![A-Za-z0-9_])(?:[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
    r"|(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{7,})(?![A-Za-z0-9_])"
)
_DURATION = r"[0-9]+(?:d|h|min|m)(?: ?[0-9]+(?:\.[0-9]+)?(?:h|min|ms|m|s))+(?![A-Za-z0-9_])"
_CLOCK = (
    r"(?<![A-Za-z0-9_])0x[0-9a-fA-F]+|[0-9]+(?::[0-9]{2})+(?![0-9])(?:[.,][0-9]+)?"
    rf"|[0-9]+(?:[.-][0-9]+){{2,}}|{_DURATION}"
)
_DIGITS = (
    r"[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])(?:\.[0-9]+)?"
    r"|(?:[0-9]+\.[0-9]+|[0-9]+\.(?![A-Za-z0-9_])|(?<![A-Za-z0-9_.])\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
    r"|[0-9]+[eE][-+][0-9]+|[0-9]+(?!\.[0-9])"
)
# What follows makes it a part of a word: 12e4, 1_000, 0.25.pt, 3-gram. A unit does not: 12.5GB/s.
_ENDS = r"(?![A-Za-z]*[0-9_])(?![._@+-][A-Za-z_])"
_NOT_FINITE = r"(?<![A-Za-z0-9_])(?:nan|NaN|NAN|inf|Inf|INF|Infinity)(?![A-Za-z0-9_]|[./@+-][A-Za-z_])"
_NUMBER = rf"(?:(?<![A-Za-z0-9_.)\]])[-+])?(?:(?<![A-Za-z_])(?:{_DIGITS}){_ENDS}|{_NOT_FINITE})"
_UNIT = r"[ \u00a0\u202f]?(?:ns|[\u00b5\u03bcu]s|ms|s|min|h)(?![A-Za-z0-9_/])"
# A number inside a word is no number: layers.0.attn, step100.pt, A100-SXM4, v2.5, top5.
_WORD = (
    r"(?<![A-Za-z0-9_])(?:[A-Za-z_][A-Za-z0-9_]*(?:[./@+-][A-Za-z0-9_]+)*"
    r"|[0-9][A-Za-z0-9_]*(?:[.@+-][A-Za-z0-9_]+)*)"
)
_TOKEN = re.compile(
    rf"(?P<bar>(?<=%)\|[^|]*\|)|(?P<hash>{_HASH})|(?P<clock>{_CLOCK})"
    rf"|(?P<number>{_NUMBER})(?P<unit>{_UNIT})?|(?P<word>{_WORD})"
)
_LABELS = re.compile(rf"{_HASH}|[0-9]+(?:\.[0-9]+)*")
# A whole number behind one of these is a name.
_NAMED = re.compile(
    r"(?:\b|_)(?:rank|gpu|device|node|host|worker|process|thread|p?id|port|seed)[ :=#(\[]*\Z",
    re.IGNORECASE | re.ASCII,  # else letters are not the same in JavaScript
)
# Device libraries, matched by the pattern of their names and not by vendor.
_VERSION = re.compile(
    rf"(?a:\b(?:cud[a-z]+|[a-z]*ccl|rocm|driver|numpy|python|release|torch|version))[{WHITE}:=/v-]*\Z", re.IGNORECASE
)
COLOR = re.compile(r"\x1b\[[0-9;]*m")
_TWO_PARTS = re.compile(r"[0-9]+\.[0-9]+")
_WHOLE = re.compile(r"[0-9]+")
MAX_BEFORE = 20
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class Token:
    """A part that may differ between similar lines.

    Attributes:
        kind: number; clock (a time, a duration, a date, a version or an address) and label (a number in a word or
            behind one such as `rank`, or a hash), which have an order but no mean; bar.
        text: the part as printed.
        value: the number, in seconds if it has a unit; nan for the other kinds.
        unit: the unit of time.
    """

    kind: str
    text: str
    value: float = math.nan
    unit: str = ""

    @property
    def is_decimal(self) -> bool:
        """Whether the number has a fraction, an exponent or a unit, or is nan or inf."""
        special = self.unit or re.search(r"[.eE]", self.text) or not math.isfinite(self.value)
        return self.kind == "number" and bool(special)


def tokenize(text: str) -> tuple[tuple[str, ...], tuple[Token, ...]]:
    """Split a line into words and the tokens between them."""
    words: list[str] = []
    tokens: list[Token] = []
    end = 0
    for start, token in _tokens(text):
        words.append(text[end:start])
        tokens.append(token)
        end = start + len(token.text)
    return (*words, text[end:]), tuple(tokens)


def _tokens(text: str) -> Iterator[tuple[int, Token]]:
    """Yield the tokens of a line, each with its place."""
    plain = COLOR.sub(lambda color: " " * len(color[0]), text)  # the m of a color is no letter before a number
    for match in _TOKEN.finditer(plain):
        start = match.start()
        if match["word"]:
            for label in _LABELS.finditer(match["word"]):
                yield start + label.start(), Token("label", label[0])
        elif match["number"]:
            yield start, _number(match, plain[max(0, start - MAX_BEFORE) : start])
        else:
            for kind in ("bar", "clock", "hash"):
                if match[kind]:
                    yield start, Token("label" if kind == "hash" else kind, match[0])


def _number(match: re.Match[str], before: str) -> Token:
    if match["unit"] is None:
        if _TWO_PARTS.fullmatch(match[0]) and _VERSION.search(before):
            return Token("clock", match[0])
        if _WHOLE.fullmatch(match[0]) and _NAMED.search(before):
            return Token("label", match[0])
    unit = re.sub("[\u00b5\u03bc]", "u", (match["unit"] or "").strip())
    value = float(match["number"].replace(",", ""))  # commas between thousands
    return Token("number", match[0], value * _SECONDS.get(unit, 1.0), unit)
