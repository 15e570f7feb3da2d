"""What clients may ask: to save and restore all ranks of a group, and which saves there are."""

from __future__ import annotations

from typing import Annotated

from jupyter_dist.protocol.field import Field, OptionField
from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.operations.declaration import Answer, Operation, Parameter
from jupyter_dist.protocol.wire.requests import MAX_SAVE_NAME

from .models import (
    DeletedSave,
    LastSave,
    LastSavesModel,
    LastSavesQuery,
    RestoreRequest,
    SavePreview,
    SaveRequest,
    SavesFolderField,
    SavesModel,
    SavesQuery,
    SelfSaving,
    Transfer,
)
from .text import last_saves_text, preview_text, saves_text
from .transfer import SavesOptions

PREVIEW_SECONDS = 30.0
DELETE_SECONDS = 300.0  # of a folder with many chunks on a slow file system

_FOLDER = ("bad_directory", "not_yours")
_TRANSFER = (
    *("unknown_group", "group_not_ready", "rank_dead", "incompatible"),
    *("agent_unreachable", "timed_out"),
)

REPLACE_STATES = {"save": "their variables in a save; cells that ran since can be run again on them"}
REPLACE_OPTIONS = {
    "save": Annotated[
        str,
        Field("For `save`: its name; default: the newest that the group can restore.", maxLength=MAX_SAVE_NAME),
    ],
    "folder": SavesFolderField,
    "any_version": Annotated[bool, Field("Whether to try a save of another version of Python.")],
}
GROUP_OPTIONS = SavesOptions
BEGINNINGS = {
    "restore": Annotated[
        str,
        OptionField(
            start="A save, by its name or as FOLDER/NAME: the group has its number of ranks, and begins with its"
            " variables. A name is looked for in the server's folder, and then among the last saves of groups.",
            metavar="SAVE",
            maxLength=4096,
        ),
    ]
}
PARAMETERS = {"save": Parameter(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", "The name of a save.")}
EXECUTION_FIELDS = {"transfer": Annotated[Transfer, Field("How far it is, if it saves or restores the ranks.")]}
GROUP_FIELDS = {
    "self_saving": Annotated[SelfSaving | None, Field("Null: it is saved on request alone.")],
    "last_save": Annotated[
        LastSave | None,
        Field("The newest save of a group with its name that it can restore, also after its end; or null."),
    ],
}
OPERATIONS = (
    Operation(
        name="save",
        verb="post",
        path="groups/{group}/saves",
        right="execute",
        sentence="Save the variables of all ranks, when no cell runs.",
        details="The answer is an execution on all ranks, which waits for cells as a cell does. It ends with the save.",
        body=SaveRequest,
        is_keyed=True,
        is_owned=True,
        answer=Answer("The execution that saves, queued or running", models.ExecutionModel, 202),
        errors=(*_TRANSFER, *_FOLDER, "name_taken"),
    ),
    Operation(
        name="restore",
        verb="post",
        path="groups/{group}/restore",
        right="execute",
        sentence="Give all ranks the variables of a save, on all ranks or on none.",
        details="The answer is an execution on all ranks, which waits for cells as a cell does.",
        body=RestoreRequest,
        is_keyed=True,
        is_owned=True,
        answer=Answer("The execution that restores, queued or running", models.ExecutionModel, 202),
        errors=(*_TRANSFER, *_FOLDER, "not_found", "damaged", "cannot_restore", "other_version"),
    ),
    Operation(
        name="preview_save",
        verb="get",
        path="groups/{group}/saves/preview",
        right="execute",  # takes the time of ranks
        sentence="Return the names that a save would have now, and the names that cannot be saved.",
        answer=Answer("The names with their sizes, and the names that cannot be saved", SavePreview),
        errors=("unknown_group", "group_not_ready", "rank_dead", "agent_unreachable", "timed_out", "incompatible"),
        answer_seconds=PREVIEW_SECONDS,
        text=preview_text,
    ),
    Operation(
        name="saves",
        verb="get",
        path="groups/{group}/saves",
        right="read",
        sentence="Return the saves in a folder, newest first, and why this group cannot restore some of them.",
        details="Another folder than the server's takes the right to execute.",
        query=SavesQuery,
        execute_fields=("folder",),
        answer=Answer("Saves, newest first", SavesModel, field="saves"),
        errors=("unknown_group", *_FOLDER),
        text=saves_text,
    ),
    Operation(
        name="all_saves",
        command="saves",
        verb="get",
        path="saves",
        right="read",
        sentence="Return the saves in a folder, newest first.",
        details="Another folder than the server's takes the right to execute.",
        query=SavesQuery,
        execute_fields=("folder",),
        answer=Answer("Saves, newest first", SavesModel, field="saves"),
        errors=_FOLDER,
        text=saves_text,
    ),
    Operation(
        name="last_saves",
        command="last-saves",
        verb="get",
        path="last-saves",
        right="read",
        sentence="Return the newest save of each group and number of ranks, also of groups that have ended.",
        query=LastSavesQuery,
        answer=Answer("Saves, newest first", LastSavesModel, field="saves"),
        errors=_FOLDER,
        text=last_saves_text,
    ),
    Operation(
        name="delete_save",
        command="delete-save",
        verb="delete",
        path="saves/{save}",
        right="execute",
        sentence="Delete a save, and the data that no other save of its folder has.",
        query=SavesQuery,
        answer=Answer("What it freed", DeletedSave),
        errors=(*_FOLDER, "not_found"),
        answer_seconds=DELETE_SECONDS,
    ),
)
