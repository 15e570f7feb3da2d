"""The options of a group about saves, and messages between its processes about one. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, cast

from jupyter_dist.protocol.field import OptionField
from jupyter_dist.protocol.wire.specs import MAX_GRACE_SECONDS, Spec

if TYPE_CHECKING:
    from typing_extensions import Required

DEFAULT_TRANSFER_SECONDS = 3600
MAX_TRANSFER_SECONDS = 24 * 3600


@dataclass(frozen=True)
class TransferSpec(Spec):
    """What an execution on all ranks is to save or restore."""

    action: str  # save or restore
    folder: str
    name: str
    timeout_seconds: float
    overwrite: bool = False  # replace a save of another group
    max_bytes: int = 0  # of the folder; 0: no limit
    is_automatic: bool = False  # the group has made it by itself
    any_version: bool = False  # restore what another version of Python has saved


class TransferNews(TypedDict, total=False):
    """From a rank that saves or restores: how far it is, or that it is prepared and waits for the decision.

    In bytes: `total` is the size of its variables, `done` the part that it has handled, `written` the new part.
    """

    state: Required[str]  # progress or prepared
    total: Required[int]
    done: Required[int]
    written: Required[int]
    report: dict[str, str | int]  # of a rank that is prepared


class TransferDecision(TypedDict):
    """To a rank that is prepared: keep the prepared values, or drop them."""

    execution_id: str
    keep: bool
    reason: str  # why it is dropped
    interrupted: bool  # by the user


def news_of(content: Mapping[str, Any]) -> TransferNews:
    """Return the news in a message of a rank. Raises ValueError."""
    counts = [content.get(name) for name in ("total", "done", "written")]
    report = content.get("report", {})
    is_sound = (
        set(content) <= {"state", "total", "done", "written", "report"}
        and content.get("state") in ("progress", "prepared")
        and all(type(count) is int and count >= 0 for count in counts)
        and isinstance(report, dict)
        and all(isinstance(value, str | int) for value in report.values())
    )
    if not is_sound:
        message = "not news of a save or a restore"
        raise ValueError(message)
    return cast("TransferNews", content)


@dataclass(frozen=True, kw_only=True)
class SavesOptions:
    """The saves that a group makes by itself, and the folder of saves."""

    saves_folder: Annotated[
        str,
        OptionField(
            "Where groups are saved, if the user names no folder: only the user may write there. Empty: a folder in"
            " Jupyter's data folder. Groups on several machines need one that all of them share."
        ),
    ] = ""
    save_every_seconds: Annotated[
        float,
        OptionField(
            "How often a group saves all variables by itself, in seconds, if cells have run since. 0: never.",
            start="Save the group by itself so often, if cells have run since; 0: never. By default the server's "
            "setting.",
            label="Save every (s)",
            minimum=0,
            maximum=MAX_GRACE_SECONDS,
        ),
    ] = 0.0
    save_before_end_seconds: Annotated[
        float,
        OptionField(
            "How long before the time limit of its allocation a group saves all variables by itself, in seconds; cells"
            " that run then are interrupted. 0: never.",
            start="Save the group by itself so long before its allocation ends, and interrupt cells for that; 0: "
            "never. By default the server's setting.",
            label="Save before end (s)",
            minimum=0,
            maximum=MAX_GRACE_SECONDS,
        ),
    ] = 0.0
    saves_kept: Annotated[
        int,
        OptionField(
            "How many of the saves that a group makes by itself are kept. Saves on request are not deleted.",
            start="How many of these saves are kept; other saves are not deleted.",
            label="Saves kept",
            minimum=1,
            maximum=100,
        ),
    ] = 2
    saves_bytes: Annotated[
        int,
        OptionField(
            "How large a folder of saves may become, in bytes; a save that would exceed it fails. 0: no limit.",
            minimum=0,
        ),
    ] = 0
    saves_days: Annotated[
        float,
        OptionField(
            "After how many days a save in saves_folder is deleted, when the next one is made. 0: never.", minimum=0
        ),
    ] = 0.0
