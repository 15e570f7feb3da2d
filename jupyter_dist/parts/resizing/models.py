"""Types of a change of the number of ranks, and of its request."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from jupyter_dist.protocol.field import Field
from jupyter_dist.protocol.models.models import ErrorBody
from jupyter_dist.protocol.ranks import MAX_RANKS
from jupyter_dist.protocol.wire.requests import INDEX, MAX_GROUP_RANKS


class ResizeRequest(TypedDict):
    """The body of POST .../resize."""

    others: NotRequired[
        Annotated[
            Literal["refuse", "keep", "copy"],
            Field(
                "What happens to names that are not alike on all ranks: `refuse` (the default) lists them in "
                "`resized` and keeps the size; `keep`: new ranks lack them, and ranks that leave lose them; `copy`: "
                "new ranks get rank 0's."
            ),
        ]
    ]
    num_ranks: Annotated[int, Field("How many ranks there are to be.", minimum=1, maximum=MAX_GROUP_RANKS)]
    devices: NotRequired[
        Annotated[
            list[int],
            Field(
                "The devices of new ranks, one each; by default the first that the group does not use.",
                schema={"type": "array", "items": INDEX, "maxItems": MAX_RANKS},
            ),
        ]
    ]


class ResizeModel(TypedDict):
    """A change of the number of ranks."""

    at: Annotated[float, Field("When it began.")]
    before: Annotated[int, Field("How many ranks there were.")]
    after: Annotated[int, Field("How many ranks were asked for.")]
    seconds: Annotated[float | None, Field("How long it took; null while it is under way.")]
    error: Annotated[ErrorBody | None, Field("Why the group has its earlier size again.")]
    again: Annotated[list[str], Field("Sentences on what cells must make again, and what could not be copied.")]
    copied: Annotated[list[str], Field("The names that new ranks have copies of.")]
    resharded: Annotated[list[str], Field("The names with DTensors that are divided among the ranks of now.")]
    differ: Annotated[list[str], Field("The names that were not alike on all ranks, or could not be compared.")]
