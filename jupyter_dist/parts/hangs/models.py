"""Types: why a cell does not end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from jupyter_dist.protocol.field import Field, RankSet
from jupyter_dist.protocol.models.sentences import Words

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class VerdictPart(TypedDict):
    """Some ranks of a verdict, and where they are."""

    ranks: RankSet
    state: Literal["waits", "runs", "idle", "dead", "unknown"]
    place: Annotated[str | None, Field("The user's line that they are at, or the last cell of idle ones.")]
    place_words: NotRequired[list[Words] | None]
    call: Annotated[str | None, Field("The collective that they wait in: its name, process group, number and shape.")]
    call_words: NotRequired[list[Words] | None]


class Verdict(TypedDict):
    """Why a cell does not end: which ranks wait for which others."""

    kind: Annotated[Literal["cannot_end", "waits"], Field("`waits`: it may end.")]
    reason: Annotated[
        Literal["missing", "dead", "order", "mismatch", "shapes", "busy", "still", "cut"],
        Field(
            "`busy`: the others may get there. `still`: nothing has moved for a while, and no rank is missing. "
            "`cut`: so, and nodes cannot connect to each other."
        ),
    ]
    message: str
    message_words: NotRequired[Annotated[list[Words] | None, Field("The message for other languages.")]]
    since: Annotated[float, Field("When this was first seen.")]
    waiting: list[VerdictPart]
    needed: Annotated[list[VerdictPart], Field("The ranks that are waited for.")]
    could_join: NotRequired[
        Annotated[RankSet, Field("The ranks that are waited for, if they are idle and the cell was not sent to them.")]
    ]
    paths: NotRequired[
        Annotated[str, Field("Which nodes cannot connect to each other, at which addresses, and what to do (`cut`).")]
    ]
