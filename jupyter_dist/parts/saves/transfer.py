"""Messages between the processes of a group about a save or a restore. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, cast

from jupyter_dist.protocol.wire.specs import Spec

if TYPE_CHECKING:
    from typing_extensions import Required


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
