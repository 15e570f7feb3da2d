"""What the API has of saves, the state of all ranks of a group in files: requests and answers."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from typing_extensions import NotRequired

from jupyter_dist.parts.saves.transfer import DEFAULT_TRANSFER_SECONDS, MAX_TRANSFER_SECONDS
from jupyter_dist.protocol.field import Field, RankSet
from jupyter_dist.protocol.models.sentences import Words
from jupyter_dist.protocol.wire.requests import MAX_PATH, MAX_SAVE_NAME

TransferSeconds = Annotated[
    float,
    Field(
        "How long it may take once it has begun; longer, and nothing is changed.",
        minimum=1,
        maximum=MAX_TRANSFER_SECONDS,
        default=DEFAULT_TRANSFER_SECONDS,
    ),
]


SavesFolderField = Annotated[
    str,
    Field(
        "A folder of saves: absolute, or relative to the server's root; default: the server's.",
        maxLength=MAX_PATH,
        is_path=True,
    ),
]


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


class Skipped(TypedDict):
    """A name that cannot be saved."""

    name: str
    ranks: RankSet
    reason: Annotated[str, Field("Why, in a sentence.")]
    execution_count: Annotated[int | None, Field("The cell that made it, as in `[5]`; null if that is not known.")]
    code: Annotated[str | None, Field("The code of that cell, to run it again after a restore.")]


class SaveNote(TypedDict):
    """What is not saved of a name that is."""

    name: str
    ranks: RankSet
    reason: Annotated[str, Field("What, and why, in a sentence.")]


class SaveModel(TypedDict):
    """A save: the variables of all ranks of a group at one moment."""

    name: str
    folder: Annotated[str, Field("Where its files are.")]
    id: Annotated[str, Field("Another one for each time that the name is saved.")]
    group: Annotated[str, Field("The name of the group.")]
    group_id: str
    world_size: int
    accelerator: str
    saved_at: float
    seconds: Annotated[float, Field("How long it took.")]
    num_names: Annotated[int, Field("How many variables it has, on the rank with the most.")]
    total_bytes: Annotated[int, Field("Of the tensors and objects of all ranks.")]
    written_bytes: Annotated[int, Field("Of them, what was not in the folder already.")]
    execution_count: Annotated[int, Field("The number of the last cell before it.")]
    python_version: str
    torch_version: str
    jupyter_dist: Annotated[str, Field("The version of this package.")]
    automatic: NotRequired[Annotated[bool, Field("Whether the group made it by itself: it may delete it, too.")]]
    skipped: Annotated[list[Skipped], Field("Names that could not be saved.")]
    notes: Annotated[list[SaveNote], Field("What was not saved of other names.")]
    problem: NotRequired[
        Annotated[str | None, Field("Why the group that was asked cannot restore it; null if it can.")]
    ]
    problem_words: NotRequired[list[Words] | None]


class LastSave(TypedDict):
    """The newest save of a group's name, as it can be offered: when the group has ended, and before it is started."""

    name: str
    folder: str
    group: Annotated[str, Field("The name of the group.")]
    saved_at: float
    world_size: Annotated[int, Field("How many ranks a group must have to restore it.")]
    python_version: Annotated[str, Field("Of its ranks; another version may not read it.")]
    total_bytes: int


class LastSavesModel(TypedDict):
    """The newest saves, by the names of groups and the numbers of their ranks."""

    saves: Annotated[list[LastSave], Field("Newest first.")]


class SavesModel(TypedDict):
    """The saves in a folder, newest first."""

    folder: str
    saves: list[SaveModel]
    damaged: Annotated[list[str], Field("A sentence for each save that cannot be read, or is not this user's.")]


class DeletedSave(TypedDict):
    """What the deletion of a save freed."""

    name: str
    freed_bytes: Annotated[
        int | None, Field("Null: another group is saving to the folder; the next deletion or save frees it.")
    ]


class SavedName(TypedDict):
    """A name that a save would have."""

    name: str
    ranks: RankSet


class SavePreview(TypedDict):
    """What a save would have now."""

    names: list[SavedName]
    skipped: list[Skipped]
    notes: list[SaveNote]
    total_bytes: Annotated[int, Field("Of all ranks, before equal parts are written once.")]


class Transfer(TypedDict):
    """How far a save or a restore is."""

    action: Literal["save", "restore"]
    name: str
    folder: str
    done_bytes: int
    total_bytes: Annotated[int, Field("Of all ranks; 0 until they have counted.")]
    num_names: NotRequired[
        Annotated[int, Field("Variables that a restore has read, on the rank with the most. Groups of 0.3 lack it.")]
    ]
