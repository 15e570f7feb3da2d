"""What clients send, and what a group shows of the saves that it makes by itself."""

from __future__ import annotations

from typing import Annotated, TypedDict

from typing_extensions import NotRequired

from jupyter_dist.protocol.field import Field
from jupyter_dist.protocol.wire.requests import MAX_SAVE_NAME, SavesFolderField, TransferSeconds


class SaveRequest(TypedDict, total=False):
    """The body of POST .../saves."""

    name: Annotated[
        str,
        Field(
            f"Its name: up to {MAX_SAVE_NAME} letters, digits, `_`, `.` and `-`. A save of this group with the name is "
            "replaced. By default the group's name and the time.",
            maxLength=MAX_SAVE_NAME,
        ),
    ]
    folder: SavesFolderField
    overwrite: Annotated[bool, Field("Whether to replace a save of another group with this name.")]
    timeout_seconds: TransferSeconds


class RestoreRequest(TypedDict):
    """The body of POST .../restore."""

    name: Annotated[str, Field("The name of a save.", maxLength=MAX_SAVE_NAME)]
    folder: NotRequired[SavesFolderField]
    any_version: NotRequired[Annotated[bool, Field("Whether to try it with another version of Python.")]]
    timeout_seconds: NotRequired[TransferSeconds]


class SavesQuery(TypedDict, total=False):
    """Which folder of saves to look into."""

    folder: SavesFolderField


class LastSavesQuery(TypedDict, total=False):
    """Which saves to return."""

    group: Annotated[str, Field("The name of a group; by default all.", maxLength=200)]


class SelfSaving(TypedDict):
    """When a group saves by itself."""

    every_seconds: Annotated[float, Field("If cells have run since the last save; 0: not so.")]
    before_end_seconds: NotRequired[Annotated[float, Field("Before its allocation ends; 0: not then.")]]
    ends_at: NotRequired[Annotated[float | None, Field("When its allocation ends, as far as its agent knows.")]]
    kept: Annotated[int, Field("How many of these saves are kept.")]
    problem: Annotated[str | None, Field("Why the last one failed: no more are made until a save succeeds.")]
