"""Types: what is wrong with the training in a cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypedDict

from jupyter_dist.protocol.field import Field
from jupyter_dist.protocol.models.models import CodeLine
from jupyter_dist.protocol.models.sentences import Words

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class Check(TypedDict):
    """An error of training that its ranks have proved. Every number is in `evidence`."""

    kind: Annotated[str, Field("As `same_batch`: docs/how-to/find-what-is-wrong.md has all.")]
    message: Annotated[str, Field("What was seen, on which ranks and where, and what follows from it.")]
    message_words: NotRequired[Annotated[list[Words] | None, Field("The message for other languages.")]]
    ranks: Annotated[str, Field("The ranks that show it.")]
    line: Annotated[CodeLine | None, Field("Null: no line of the user's code is known.")]
    step: Annotated[int | None, Field("Since which step of the cell, from 1 on; null: it is not about steps.")]
    evidence: Annotated[list[str], Field("Values to compare, with their ranks and steps.")]
    evidence_words: NotRequired[Annotated[list[list[Words] | None], Field("Of each value.")]]
    advice: Annotated[str, Field("What to do.")]
    advice_words: NotRequired[list[Words] | None]
    since: Annotated[float, Field("When it was found, in seconds since the epoch.")]


class CellChecks(TypedDict):
    """What is wrong with the training in a cell."""

    checks: Annotated[list[Check], Field("The worst first, at most 4; while the cell runs, those that hold now.")]
    on: Annotated[bool, Field("False: the cells of the group are not checked.")]
