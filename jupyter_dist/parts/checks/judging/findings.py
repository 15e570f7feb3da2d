"""A check before it is shown, and the words that all checks share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jupyter_dist.protocol.ranks import RankSet

from .reports import UserLine

if TYPE_CHECKING:
    from jupyter_dist.parts.checks import models

MAX_EVIDENCE = 6
MAX_LISTED = 3


@dataclass(frozen=True)
class Proof:
    """What is wrong with the training of a cell."""

    kind: models.CheckKind
    ranks: RankSet
    message: str
    evidence: Sequence[str]
    advice: str
    step: int | None = None  # since when
    place: UserLine | None = None

    @property
    def key(self) -> tuple[str, str]:
        """What identifies it from one look to the next."""
        return self.kind, str(self.ranks)

    def model(self, since: float, first_step: int | None) -> models.Check:
        """Return the Check of docs/api.md."""
        place = self.place
        return {
            "kind": self.kind,
            "message": self.message,
            "ranks": str(self.ranks),
            "line": None
            if place is None
            else {"file": place.file, "name": place.name, "line": place.line, "code": place.code},
            "step": first_step,
            "evidence": list(self.evidence)[:MAX_EVIDENCE],
            "advice": self.advice,
            "since": since,
        }


def ranks_of(ranks: Iterable[int]) -> RankSet:
    """Return a set of ranks."""
    return RankSet(ranks)


def name_ranks(ranks: Iterable[int]) -> str:
    """Return ranks for the begin of a sentence: Rank 5, Ranks 0-3."""
    found = RankSet(ranks)
    return f"Rank{'s' if len(found) > 1 else ''} {found}"


def at_place(place: UserLine | None) -> str:
    """Return where it happens, to follow a sentence's begin: " (line 3 of cell [7])"; empty if it is not known."""
    return "" if place is None else f" (line {place.line} of {place.name})"


def steps(first: int, last: int) -> str:
    """Return steps in words: step 3, steps 1-5."""
    return f"step {first}" if first == last else f"steps {first}-{last}"


def number(value: float) -> str:
    """Return a number so that a reader can compare it."""
    return "not finite" if not math.isfinite(value) else f"{value:.6g}"


def several(count: int, noun: str) -> str:
    """Return how many: 1 parameter, 3 parameters."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listed(names: Sequence[str], count: int | None = None) -> str:
    """Return some names in words: `a`, `b` and 5 more."""
    count = len(names) if count is None else count
    shown = [f"`{name}`" for name in names[:MAX_LISTED]]
    rest = count - len(shown)
    if rest > 0:
        return f"{', '.join(shown)} and {rest} more"
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]])) if shown else "none"


def times(count: int) -> str:
    """Return how often: twice, 4 times."""
    return "twice" if count == 2 else f"{count} times"
