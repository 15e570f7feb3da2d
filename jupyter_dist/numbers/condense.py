"""Makes one line of lines of several ranks that differ in numbers only.

The TypeScript counterpart is labextension/src/model/numbers/condense.ts; both run tests/vectors/numbers.json.
How and why: docs/decisions/0025.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from jupyter_dist.protocol.models import ViewItem
from jupyter_dist.protocol.ranks import expand_ranks, format_ranks

from .tokens import COLOR, Token, tokenize, value_of

MAX_EXACT_LINES = 8  # up to so many lines that differ in whole numbers only are easier to read one by one
MAX_RANGES = 2
MAX_FIGURES = 4


@dataclass(frozen=True)
class Line:
    """One line of some ranks, in words (one more than tokens) and tokens."""

    name: str
    ranks: tuple[int, ...]
    text: str
    words: tuple[str, ...]
    tokens: tuple[Token, ...]

    @property
    def template(self) -> list[str]:
        """Return its words, without how they are aligned."""
        return [re.sub(r"\s+", " ", word) for word in self.words]


def condense(items: Iterable[ViewItem]) -> Iterator[tuple[str, str] | ViewItem]:
    """Yield the ranks and the text of each line of a stream, and other items as they are.

    Neighbouring lines of different ranks that differ in numbers only are one line.
    """
    group: list[Line] = []
    ranks: set[int] = set()
    for item in items:
        if "output" not in item or item["output"]["output_type"] != "stream":
            yield from _flush(group)
            group = []
            yield item
            continue
        for line in _lines(item):
            if group and not (_is_alike(group[0], line) and ranks.isdisjoint(line.ranks)):
                yield from _flush(group)
                group = []
            if not group:
                ranks = set()
            group.append(line)
            ranks.update(line.ranks)
    yield from _flush(group)


def _lines(item: ViewItem) -> Iterator[Line]:
    output = item["output"]
    ranks = expand_ranks(item["ranks"])
    for line in "".join(output["text"]).splitlines(keepends=True):
        yield Line(output["name"], ranks, line, *tokenize(line.removesuffix("\n")))


def _is_alike(first: Line, line: Line) -> bool:
    return first.name == line.name and first.template == line.template


def _flush(group: Sequence[Line]) -> Iterator[tuple[str, str]]:
    text = _condensed(group) if len(group) > 1 else None
    if text is not None:
        yield format_ranks(rank for line in group for rank in line.ranks), text
    else:
        yield from ((format_ranks(line.ranks), line.text) for line in group)


def _condensed(group: Sequence[Line]) -> str | None:
    places = list(zip(*(line.tokens for line in group), strict=True))
    varying = [place for place in places if len({token.text for token in place}) > 1]
    if not varying:
        return None
    bar = next((i for i, place in enumerate(places) if place[0].kind == "bar"), 0)
    if bar:
        return _progress(group, places[bar - 1])
    if len(group) <= MAX_EXACT_LINES and not any(token.is_decimal for place in varying for token in place):
        return None
    ranks = [line.ranks for line in group]
    shown = [_spread(ranks, place, len(varying)) if place in varying else place[0].text for place in places]
    words = group[0].words
    return COLOR.sub("", "".join(word + text for word, text in zip(words, (*shown, ""), strict=True)))


def _progress(group: Sequence[Line], percents: Sequence[Token]) -> str:
    order = sorted(range(len(group)), key=lambda i: (percents[i].value, i))
    slowest = order[0]
    fastest = next(i for i in order if percents[i].value == percents[order[-1]].value)
    text = group[slowest].text.removesuffix("\n")
    if percents[slowest].value == percents[fastest].value:
        return text
    ends = (("slowest", slowest), ("fastest", fastest))
    return f"{text} {_between(f'{word}: rank {group[i].ranks[0]}, {percents[i].text}%' for word, i in ends)}"


def _spread(ranks: Sequence[tuple[int, ...]], place: Sequence[Token], num_varying: int) -> str:
    written = sorted((rank, token) for members, token in zip(ranks, place, strict=True) for rank in members)
    finite = [(rank, token) for rank, token in written if token.is_finite]
    mean, deviation = _mean([token for _, token in finite])
    parts = [mean, f"\u00b1{deviation}"] if mean else []
    if finite and (num_varying <= MAX_RANGES or not mean or _has_odd_end(finite)):
        parts.append(_range(finite))
    parts += [f"{token.text} ({rank})" for rank, token in written if not token.is_finite]
    return " ".join(parts)


def _range(finite: Sequence[tuple[int, Token]]) -> str:
    ordered = sorted(finite, key=lambda one: (_order(one[1]), one[0]))
    least = ordered[0]
    most = next(one for one in ordered if _order(one[1]) == _order(ordered[-1][1]))
    if least[1].text == most[1].text:
        return _between([least[1].text])
    # A number that is its rank, as in a greeting, is named once.
    ends = [text if text == str(rank) else f"{text} ({rank})" for rank, text in ((r, t.text) for r, t in (least, most))]
    return _between(ends)


def _between(ends: Iterable[str]) -> str:
    return "\u27e8" + " \u2026 ".join(ends) + "\u27e9"


def _order(token: Token) -> tuple[float, int, str]:
    # Clocks: the longer one is later.
    return (token.value, 0, "") if token.kind == "number" else (0.0, len(token.text), token.text)


def _has_odd_end(finite: Sequence[tuple[int, Token]]) -> bool:
    values = sorted(token.value for _, token in finite)
    if len(values) < 4 or any(map(math.isnan, values)):
        return False
    middle = values[(len(values) - 1) // 2]
    deviation = 1.4826 * sorted(abs(value - middle) for value in values)[(len(values) - 1) // 2]
    far = [value for value in (values[0], values[-1]) if abs(value - middle) > 6 * deviation]
    return bool(far) and (deviation > 0 or values.count(middle) >= 0.75 * len(values))


def _mean(tokens: Sequence[Token]) -> tuple[str, str]:
    """Return the mean and the standard deviation, each empty where they mean nothing."""
    if len(tokens) < 2 or not any(t.is_decimal for t in tokens) or len({t.unit for t in tokens}) > 1:
        return "", ""
    if any(token.kind != "number" for token in tokens):
        return "", ""
    numbers = [value_of(re.sub(r"[^\d.,eE+-].*|\s.*", "", token.text)) for token in tokens]
    mean = sum(numbers) / len(numbers)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in numbers) / len(numbers))
    if deviation == 0:
        return "", ""
    unit = re.search(r"[^\d]*\Z", tokens[0].text.removesuffix("."))
    suffix = unit[0] if unit else ""
    if any(re.search(r"[eE]", token.text) for token in tokens):
        figures = min(max(_magnitude(mean) - _magnitude(deviation), 0), MAX_FIGURES)
        return f"{mean:.{figures}e}{suffix}", f"{deviation:.0e}"
    written = max(len(re.sub(r"[^.]*\.?(\d*).*", r"\1", token.text)) for token in tokens)
    decimals = min(max(-_magnitude(deviation), 0), written + 1)
    return _fixed(mean, decimals) + suffix, _fixed(deviation, decimals)


def _fixed(value: float, decimals: int) -> str:
    # Halves are rounded as JavaScript rounds them.
    return str(Decimal(value).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP))


def _magnitude(value: float) -> int:
    return math.floor(math.log10(abs(value))) if value else 0
