"""A check before it is shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jupyter_dist.agent.watch.findings import CellFinding
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.ranks import RankSet, name_ranks
from jupyter_dist.transport.rows import CodePlace

from .words import WORDS, at_place

if TYPE_CHECKING:
    from jupyter_dist.parts.checks import models

MAX_ROWS = 4


@dataclass(frozen=True)
class Proof(CellFinding):
    """What is wrong with the training of a cell."""

    kind: str
    ranks: RankSet
    message: str
    evidence: Sequence[str]
    advice: str
    step: int | None  # since when
    place: CodePlace | None

    def model(self, since: float, first_step: int | None) -> models.Check:
        """Return the Check of docs/api.md."""
        line = None if self.place is None else self.place.model()
        return {**self.told(since), "kind": self.kind, "line": line, "step": first_step}


def prove(
    name: str,
    ranks: Iterable[int],
    values: Iterable[Any] = (),
    rows: Iterable[Sequence[Any]] = (),
    where: tuple[int | None, CodePlace | None] = (None, None),
) -> Proof:
    """Return a proof in the words of a kind, with values for its message from `%3` on, and rows for its evidence.

    `where` are the step since which it is wrong, and the line.
    """
    message, evidence, advice = WORDS[name]
    who = name_ranks(ranks, begins=message.startswith("%1"))
    told = [say(evidence, *row) for row in list(rows)[:MAX_ROWS]]
    said = say(message, who, at_place(where[1]), *values)
    return Proof(name.partition("/")[0], RankSet(ranks), said, told, say(advice), *where)
