"""The findings of parts about a cell before they are shown. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jupyter_dist.protocol.models.sentences import words_of
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.transport.rows import CodePlace

if TYPE_CHECKING:
    from jupyter_dist.protocol.models.models import CellFindingModel


class CellFinding:
    """Base of a finding: a dataclass with these fields and more."""

    kind: str
    ranks: RankSet
    message: str
    evidence: Sequence[str]
    advice: str
    place: CodePlace | None

    @property
    def key(self) -> tuple[str, str]:
        """What identifies it from one look to the next."""
        return self.kind, str(self.ranks)

    def told(self, since: float) -> CellFindingModel:
        """Return the fields that all findings have in docs/api.md."""
        return {
            "ranks": str(self.ranks),
            "message": self.message,
            "message_words": words_of(self.message),
            "evidence": list(self.evidence),
            "evidence_words": [words_of(sentence) for sentence in self.evidence],
            "advice": self.advice,
            "advice_words": words_of(self.advice),
            "since": since,
        }
