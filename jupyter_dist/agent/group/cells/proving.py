"""Keeps each verdict with its witnesses, and compares it with what happened afterwards.

A cell that "cannot end" and ends by itself was a wrong verdict, unless a user acted meanwhile: an interrupt, another
cell that ran, more ranks for the cell, or a rank that died. A cause that the next looks at the cell do not find,
while it keeps running, was none. Users see the counts, and can report the witnesses.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jupyter_dist.agent.group.cells.execution import AgentExecution
from jupyter_dist.protocol.models.sentences import words_of

if TYPE_CHECKING:
    from jupyter_dist.protocol.models import models

MAX_KEPT = 50
MAX_WITNESSES = 64
SOON_LOOKS = 3  # a cause that is gone after so many looks at its cell is refuted
FINAL_BY_ITSELF = ("ok", "error")


@dataclass
class ShownVerdict:
    """A verdict while it is shown, and its outcome."""

    execution: AgentExecution
    kind: str
    message: str
    witnesses: Sequence[str]
    subject: str = ""  # a cause: its kind and its ranks, also when its numbers change
    topic: str = ""  # what has found the cause; empty: it is a hang
    num_looks: int = 0  # at the cell until it was shown
    shown_at: float = field(default_factory=time.time)
    num_ranks: int = field(init=False)
    outcome: models.VerdictOutcome = "open"
    is_touched: bool = False  # a user acted meanwhile

    def __post_init__(self) -> None:
        self.witnesses = self.witnesses[:MAX_WITNESSES]
        self.num_ranks = len(self.execution.spec.ranks)  # others may join

    def model(self) -> models.VerdictRecord:
        """Return the VerdictRecord of docs/api.md."""
        return {
            "execution_id": self.execution.id,
            "kind": self.kind,
            "message": self.message,
            "message_words": words_of(self.message),
            "shown_at": self.shown_at,
            "outcome": self.outcome,
            "witnesses": list(self.witnesses),
            "witnesses_words": [words_of(sentence) for sentence in self.witnesses],
        }


class Proving:
    """The last verdicts of a group, and how many were refuted."""

    def __init__(self) -> None:
        self._kept: deque[ShownVerdict] = deque(maxlen=MAX_KEPT)
        self.num_shown = 0
        self.num_refuted = 0

    # -- hangs ----------------------------------------------------------------------------------------

    def hang_shown(self, execution: AgentExecution, message: str, witnesses: Iterable[str]) -> None:
        """Keep a verdict that a cell cannot end."""
        self._withdraw(execution, is_refuted=False)
        self._keep(ShownVerdict(execution, "cannot_end", message, list(witnesses)))

    def hang_gone(self, execution: AgentExecution) -> None:
        """Handle the end of a wait, or of the cell."""
        self._withdraw(execution, is_refuted=execution.state in ("running", *FINAL_BY_ITSELF))

    def acted(self, besides: AgentExecution | None = None) -> None:
        """Handle an act of a user, after which anything may happen to cells other than this one."""
        for shown in self._open():
            if shown.execution is not besides:
                shown.is_touched = True

    def _withdraw(self, execution: AgentExecution, is_refuted: bool) -> None:
        for shown in self._open("cannot_end"):
            if shown.execution is execution:
                statuses = {status for status, _ in execution.statuses.values()}
                was_left = statuses <= {"running", *FINAL_BY_ITSELF} and len(execution.spec.ranks) == shown.num_ranks
                self._close(shown, is_refuted and was_left and not shown.is_touched)

    # -- causes ---------------------------------------------------------------------------------------

    def causes_shown(
        self,
        execution: AgentExecution,
        causes: Sequence[Mapping[str, Any]],
        num_looks: int,
        witnesses: Sequence[str] = (),
        topic: str = "slow",
    ) -> None:
        """Keep the new causes with their evidence and these witnesses, and judge the causes that have gone.

        Args:
            execution: the cell.
            causes: what makes it slow now.
            num_looks: how often its ranks were asked. A busy machine looks later, but does not look more often.
            witnesses: what is known of each rank.
            topic: what finds these causes; the causes of other topics stay.
        """
        present = {_subject(cause): cause for cause in causes}
        for shown in self._open():
            if shown.execution is execution and shown.topic == topic and shown.subject not in present:
                is_soon = num_looks - shown.num_looks <= SOON_LOOKS
                self._close(shown, is_soon and execution.state == "running")
        known = {shown.subject for shown in self._open() if shown.execution is execution}
        for subject in present.keys() - known:
            cause = present[subject]
            kept = [*cause["evidence"], *witnesses]
            self._keep(ShownVerdict(execution, cause["kind"], cause["message"], kept, subject, topic, num_looks))

    # -- both -----------------------------------------------------------------------------------------

    def model(self) -> models.Verdicts:
        """Return the Verdicts of docs/api.md."""
        records = [shown.model() for shown in self._kept]
        return {"shown": self.num_shown, "refuted": self.num_refuted, "verdicts": records}

    def _keep(self, shown: ShownVerdict) -> None:
        self.num_shown += 1
        self._kept.append(shown)

    def _close(self, shown: ShownVerdict, is_refuted: bool) -> None:
        shown.outcome = "refuted" if is_refuted else "not_refuted"
        self.num_refuted += is_refuted

    def _open(self, kind: str | None = None) -> list[ShownVerdict]:
        return [shown for shown in self._kept if shown.outcome == "open" and kind in (None, shown.kind)]


def _subject(cause: Mapping[str, Any]) -> str:
    return f"{cause['kind']} {cause['ranks']}"
