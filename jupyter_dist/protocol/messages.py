"""The messages of the WebSocket, of server and pages. See models.py for what is generated from these types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from .models import (
    Devices,
    ErrorBody,
    Execution,
    Field,
    Group,
    Groups,
    LogRecord,
    MemorySample,
    Rank,
    ViewChange,
)
from .requests import RunRequest
from .specs import MAX_SEQ

if TYPE_CHECKING:
    from typing_extensions import NotRequired

MAX_ID = 80  # characters of a name or id, as in paths


class HelloMessage(TypedDict):
    """The first message."""

    type: Literal["hello"]
    server: Annotated[str, Field("The id of this server process.")]
    accepts: NotRequired[
        Annotated[
            list[Literal["submit", "groups"]],
            Field("What it accepts besides the topics of version 0.1: messages of these types, these topics."),
        ]
    ]


class GroupsMessage(Groups):
    """All groups: after connecting, and whenever one has changed."""

    type: Literal["groups"]


class GroupChange(TypedDict):
    """What changed in a group."""

    id: str
    fields: Annotated[dict[str, Any], Field("Fields of Group with their new values, without `ranks`.")]
    ranks: Annotated[list[Rank], Field("The ranks that changed, whole.")]


class ChangesMessage(TypedDict):
    """The changes of all groups, for those who have subscribed to `groups`."""

    type: Literal["changes"]
    seq: Annotated[int, Field("Counts these messages; the first, 1, has all groups whole.")]
    groups: Annotated[list[Group], Field("Groups that are new, or have another number of ranks.")]
    changes: Annotated[list[GroupChange], Field("Groups that the client has.")]
    order: NotRequired[Annotated[list[str], Field("The ids of all groups, oldest first, if one came or went.")]]


class ExecutionMessage(TypedDict):
    """An execution changed."""

    type: Literal["execution"]
    group: str
    execution: Execution


class SubmittedMessage(TypedDict):
    """The cell of a `submit` was queued; messages of its execution follow."""

    type: Literal["submitted"]
    key: str
    execution: Execution


class ViewMessage(TypedDict):
    """The changes of a view since `since`."""

    type: Literal["view"]
    group: str
    execution_id: str
    since: int
    seq: int
    items: list[ViewChange]
    removed: Annotated[list[int], Field("Ids of items to drop before `items` are applied, in order.")]
    reset: NotRequired[Annotated[bool, Field("Drop what you have first.")]]


class LogMessage(TypedDict):
    """New records of a rank's log."""

    type: Literal["log"]
    group: str
    rank: int
    records: list[LogRecord]
    seq: int
    skipped: Annotated[int, Field("How many records before them were skipped because there were too many.")]


class MemoryMessage(TypedDict):
    """A memory sample."""

    type: Literal["memory"]
    group: str
    sample: MemorySample


class DevicesMessage(Devices):
    """Devices and host."""

    type: Literal["devices"]


class ErrorMessage(TypedDict):
    """The error for an invalid message."""

    type: Literal["error"]
    error: ErrorBody
    request: Annotated[dict[str, Any] | None, Field("Its known fields; null if it was not an object.")]


# The messages of subscriptions, and all messages of the server.
TopicMessage = (
    ChangesMessage | ExecutionMessage | ViewMessage | LogMessage | MemoryMessage | DevicesMessage | ErrorMessage
)
ServerMessage = HelloMessage | GroupsMessage | SubmittedMessage | TopicMessage

# -- from a page ----------------------------------------------------------------------------------------

Id = Annotated[str, Field(maxLength=MAX_ID)]


class GroupsTopic(TypedDict):
    """All groups: from then on their changes, and no longer all of them at each change."""

    topic: Literal["groups"]


class ExecutionTopic(TypedDict):
    """An execution and its view."""

    topic: Literal["execution"]
    group: Id
    execution: Id


class LogTopic(TypedDict):
    """A rank's log."""

    topic: Literal["log"]
    group: Id
    rank: int


class MemoryTopic(TypedDict):
    """A group's memory; samples are taken while it is followed."""

    topic: Literal["memory"]
    group: Id


class DevicesTopic(TypedDict):
    """Devices and host."""

    topic: Literal["devices"]


# The topics; their fields identify the subscription.
Topic = GroupsTopic | ExecutionTopic | LogTopic | MemoryTopic | DevicesTopic


class ClientMessage(TypedDict):
    """A message of a page that follows or stops following a topic, with the fields of the topic."""

    type: Literal["subscribe", "unsubscribe"]
    topic: Annotated[
        Literal["execution", "log", "memory", "devices", "groups"],
        Field("`groups` is followed from the start, whole; who subscribes to it is sent its changes."),
    ]
    group: NotRequired[Id]
    execution: NotRequired[Id]
    rank: NotRequired[int]
    since: NotRequired[Annotated[int, Field("The highest `seq` that the page has, or 0.", minimum=0, maximum=MAX_SEQ)]]


class SubmitMessage(TypedDict):
    """A message of a page that runs a cell and follows it: `POST .../executions` and a subscription in one."""

    type: Literal["submit"]
    group: Id
    key: Annotated[
        str,
        Field("The idempotency key, which the answer has, too. The same key by POST is the same cell.", maxLength=200),
    ]
    cell: RunRequest
