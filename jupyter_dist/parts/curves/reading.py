"""Curves: numbers with a name that recur in what ranks print, such as `step 23 loss 0.087`.

The TypeScript counterpart is labextension/src/parts/curves/model; both run tests/vectors/curves.json.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from jupyter_dist.protocol.models.models import ViewItem
from jupyter_dist.protocol.ranks import WHITE, RankSet

from .tokens import COLOR, Token, tokenize

MIN_VALUES = 3
MAX_LINE = 1000
MAX_NAME = 60

_BETWEEN = re.compile(rf"[{WHITE}=:'\"()\[\]{{}}>-]*\Z")
_TENSOR = re.compile(rf"(?:\A|(?<=[{WHITE}=:(]))tensor\Z")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.@/%-]*(?: [A-Za-z_][A-Za-z0-9_.@/%-]*){0,2}\Z")
_UNIT_BEHIND = re.compile(r"\A[A-Za-z%/]+")
_UNIT_BEFORE = re.compile(rf"[ \t](\([A-Za-z%/]{{1,12}}\))[{WHITE}=:]*\Z")
_STEP = re.compile(r"(?:\A|[ _.])(?:steps?|iter|iterations?|it|batch|i)\Z", re.IGNORECASE | re.ASCII)
_EPOCH = re.compile(r"(?:\A|[ _.])(?:epochs?|episode|round)\Z", re.IGNORECASE | re.ASCII)


@dataclass
class Curve:
    """The numbers of one rank under one name.

    Attributes:
        steps: the step, iteration or epoch of each number; where no printed step rises, the count of numbers before.
        values: the numbers, exactly as printed; in seconds if they have a unit of time.
    """

    steps: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)


@dataclass
class _Raw:
    """The numbers of all ranks under one name, with their steps as printed."""

    by_rank: dict[int, list[tuple[int | None, float]]] = field(default_factory=dict)
    is_measured: bool = False

    def is_curve(self) -> bool:
        return self.is_measured and any(
            len(found) >= MIN_VALUES and _is_measured_again(found) for found in self.by_rank.values()
        )

    def has_steps(self) -> bool:
        return all(_rises([step for step, _ in found]) for found in self.by_rank.values())


def curves_of(items: Iterable[ViewItem]) -> dict[str, dict[int, Curve]]:
    """Return the curves of a view: by name, then by rank."""
    return curves_of_lines(_lines(items))


def curves_of_lines(lines: Iterable[tuple[tuple[int, ...], str]]) -> dict[str, dict[int, Curve]]:
    """Return the curves of complete lines, each with the ranks that wrote it: by name, then by rank."""
    raw: dict[str, _Raw] = {}
    read = lru_cache(maxsize=4096)(named_numbers)  # ranks often write the same line
    for ranks, line in lines:
        step, tokens = read(line)
        for name, token in tokens.items():
            one = raw.setdefault(name, _Raw())
            one.is_measured = one.is_measured or token.is_decimal
            for rank in ranks:
                one.by_rank.setdefault(rank, []).append((step and step[1], token.value))
    return {name: _by_rank(one) for name, one in raw.items() if one.is_curve()}


def csv_lines(curves: dict[str, dict[int, Curve]]) -> Iterator[str]:
    """Yield the lines of a file of comma-separated values; names have no commas."""
    yield "curve,step,rank,value\n"
    for name, by_rank in curves.items():
        for rank, curve in by_rank.items():
            for step, value in zip(curve.steps, curve.values, strict=True):
                yield f"{name},{step},{rank},{value!r}\n"


def named_numbers(line: str) -> tuple[tuple[str, int] | None, dict[str, Token]]:
    """Return the step that a line is about, with its name, and the other numbers that have a name."""
    found: dict[str, Token] = {}
    if len(line) <= MAX_LINE:
        words, tokens = tokenize(COLOR.sub("", line))
        before = ""
        for place, (word, token) in enumerate(zip(words, tokens, strict=False)):
            # Behind a number without a space there is its unit: GiB(13.25%).
            before += word if before or not place else _UNIT_BEHIND.sub("", word, count=1)
            if token.kind == "label":
                before += token.text  # of a name, as in "top5" and "layers.0.attn"
                continue
            name = _name_before(before) if token.kind == "number" else ""
            before = ""
            if name:
                found.setdefault(name, token)
    steps = {name: token for name, token in found.items() if _is_step(name, token)}
    ordered = [(name, int(steps[name].value)) for kind in (_STEP, _EPOCH) for name in steps if kind.search(name)]
    rest = {name: token for name, token in found.items() if name not in steps}
    return (ordered[0] if ordered else None), rest


def _name_before(text: str) -> str:
    unit = _UNIT_BEFORE.search(text[-MAX_NAME:])  # as in "time per iteration (ms): 12.5"
    if unit and (name := _name_before(text[-MAX_NAME:][: unit.start()])):
        return f"{name} {unit[1]}"
    end = _BETWEEN.sub("", _TENSOR.sub("", _BETWEEN.sub("", text[-MAX_NAME:], count=1), count=1), count=1)
    match = _NAME.search(end)
    return match[0] if match else ""


def _is_step(name: str, token: Token) -> bool:
    return bool(_STEP.search(name) or _EPOCH.search(name)) and not token.is_decimal and token.value.is_integer()


def _lines(items: Iterable[ViewItem]) -> Iterator[tuple[tuple[int, ...], str]]:
    """Yield the complete lines of streams."""
    for item in items:
        if "output" in item and item["output"]["output_type"] == "stream":
            ranks = RankSet.from_text(item["ranks"])
            for line in "".join(item["output"]["text"]).split("\n")[:-1]:
                yield ranks, line


def _is_measured_again(found: list[tuple[int | None, float]]) -> bool:
    """Whether numbers change, or are of a step: `using lr 0.001` is the same each time. nan is equal to nothing."""
    return any(step is not None or value != found[0][1] for step, value in found)


def _rises(steps: list[int | None]) -> bool:
    known = [step for step in steps if step is not None]
    return len(known) == len(steps) and all(a < b for a, b in pairwise(known))


def _by_rank(raw: _Raw) -> dict[int, Curve]:
    has_steps = raw.has_steps()
    curves: dict[int, Curve] = {}
    for rank, found in sorted(raw.by_rank.items()):
        steps = [step if has_steps and step is not None else i for i, (step, _) in enumerate(found)]
        curves[rank] = Curve(steps, [value for _, value in found])
    return curves
