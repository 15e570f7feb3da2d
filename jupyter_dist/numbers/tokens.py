"""Splits a line into words and the numbers between them.

The TypeScript counterpart is labextension/src/model/numbers/numbertokens.ts. Their curves are tested with
tests/vectors/curves.json.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

# A number in a word is a whole one: layers.0.attn, layer0.weight, step100.pt and the commit 12e4 have no fraction.
_NOT_IN_WORD = r"(?<![A-Za-z_])(?<![A-Za-z_]\.)"
_FRACTION = r"(?:\d+\.\d+(?!\d|\.[A-Za-z_])|\d+\.(?!\w)|(?<![\w.])\.\d+)(?:[eE][-+]?\d+)?"
_DIGITS = rf"(?:\d{{1,3}}(?:,\d{{3}})+(?!\d)(?:\.\d+)?|{_NOT_IN_WORD}(?:{_FRACTION}|\d+[eE][-+]\d+)|\d+)"
_TOKEN = re.compile(
    r"\x1b\[[0-9;]*m"
    r"|(?P<bar>(?<=%)\|[^|]*\|)"
    r"|(?P<clock>(?<!\w)0x[0-9a-fA-F]+|\d+(?::\d\d)+(?:[.,]\d+)?|\d+(?:[.-]\d+){2,})"
    rf"|(?P<number>(?:(?<![\w.)\]])[-+])?{_DIGITS}|(?<!\w)(?:nan|[-+]?inf)(?!\w))"
    r"(?P<unit>\s?(?:ns|[\u00b5\u03bcu]s|ms|s|min|h)(?![\w/]))?"
)
# Device libraries, matched by the pattern of their names and not by vendor.
_VERSION = re.compile(
    r"\b(?:cud[a-z]+|[a-z]*ccl|rocm|driver|numpy|python|release|torch|version)[\s:=/v-]*\Z", re.IGNORECASE
)
COLOR = re.compile(r"\x1b\[[0-9;]*m")
_TWO_PARTS = re.compile(r"[0-9]+\.[0-9]+")
MAX_BEFORE = 20
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class Token:
    """A part that may differ between similar lines: a number, a clock (or version, address: no mean), a bar."""

    kind: str
    text: str
    value: float = math.nan  # in seconds if it has a unit
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
    for match in _TOKEN.finditer(text):
        if match.lastgroup is not None:
            words.append(text[end : match.start()])
            tokens.append(_token(match, text[: match.start()]))
            end = match.end()
    return (*words, text[end:]), tuple(tokens)


def _token(match: re.Match[str], before: str) -> Token:
    if match["number"] is None:
        return Token("bar" if match["bar"] else "clock", match[0])
    if match["unit"] is None and _TWO_PARTS.fullmatch(match[0]) and _VERSION.search(before[-MAX_BEFORE:]):
        return Token("clock", match[0])
    unit = re.sub("[\u00b5\u03bc]", "u", (match["unit"] or "").strip())
    value = float(match["number"].replace(",", ""))  # commas between thousands
    return Token("number", match[0], value * _SECONDS.get(unit, 1.0), unit)
