"""Types of a parked group, and of the request that parks it."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from jupyter_dist.protocol.field import Field
from jupyter_dist.protocol.wire.requests import MAX_PATH


class ParkRequest(TypedDict, total=False):
    """The body of POST .../park."""

    to: Annotated[
        Literal["host", "file"],
        Field(
            "Where tensors go: `host`, the memory of the machine, or `file`, files in `folder`, which also frees the "
            "memory of a group on CPU.",
            schema={"type": "string", "enum": ["host", "file"], "default": "host"},
        ),
    ]
    folder: Annotated[
        str,
        Field(
            "For `file`: an absolute path on the machine of the ranks; by default the group's folder.",
            maxLength=MAX_PATH,
        ),
    ]


class ParkedState(TypedDict):
    """Where the memory of a parked group is."""

    since: Annotated[float, Field("When it was parked.")]
    seconds: Annotated[float, Field("How long parking took.")]
    place: Annotated[Literal["host", "file"], Field("Where its tensors are.")]
    by: Annotated[
        list[Literal["storages", "driver"]],
        Field(
            "`storages`: the storages of tensors were moved. `driver`: the driver's checkpoint took the rest of the "
            "devices' memory, contexts included."
        ),
    ]
    held_bytes: Annotated[int, Field("The bytes that are held there for all ranks.")]
    left_bytes: Annotated[int, Field("The bytes that stay where they were, because they cannot be moved.")]
    left: Annotated[list[str], Field("A sentence for each kind of memory that stays where it was.")]
    resuming_since: Annotated[float | None, Field("When it began to resume; null while it is parked.")]
