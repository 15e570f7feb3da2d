"""The messages of the WebSocket: what the server sends and what pages send. See models.py for what they make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from .models import (
    Devices,
    ErrorBody,
    Execution,
    Field,
    Groups,
    LogRecord,
    MemorySample,
    ViewChange,
)
from .specs import MAX_SEQ

if TYPE_CHECKING:
    from typing_extensions import NotRequired

MAX_ID = 80  # characters of a name or id, as in paths


class HelloMessage(TypedDict):
    """The first one."""

    type: Literal["hello"]
    server: Annotated[str, Field("The id of this server process.")]


class GroupsMessage(Groups):
    """All groups: at first, and whenever one of them changed."""

    type: Literal["groups"]


class ExecutionMessage(TypedDict):
    """An execution changed."""

    type: Literal["execution"]
    group: str
    execution: Execution


class ViewMessage(TypedDict):
    """The changes of a view since `since`."""

    type: Literal["view"]
    group: str
    execution_id: str
    since: int
    seq: int
    items: list[ViewChange]
    removed: Annotated[list[int], Field("Ids. Drop these before `items` are applied, in order.")]
    reset: NotRequired[Annotated[bool, Field("Drop what you have first.")]]


class LogMessage(TypedDict):
    """New records of a rank's log."""

    type: Literal["log"]
    group: str
    rank: int
    records: list[LogRecord]
    seq: int
    skipped: Annotated[int, Field("How many records before them were too many to be sent.")]


class MemoryMessage(TypedDict):
    """A memory sample."""

    type: Literal["memory"]
    group: str
    sample: MemorySample


class DevicesMessage(Devices):
    """Devices and host."""

    type: Literal["devices"]


class ErrorMessage(TypedDict):
    """A message could not be obeyed."""

    type: Literal["error"]
    error: ErrorBody
    request: Annotated[dict[str, Any] | None, Field("Its known fields; null when it was no object.")]


# What a subscription may receive, and all that the server sends.
TopicMessage = ExecutionMessage | ViewMessage | LogMessage | MemoryMessage | DevicesMessage | ErrorMessage
ServerMessage = HelloMessage | GroupsMessage | TopicMessage

# -- from a page ----------------------------------------------------------------------------------------

Id = Annotated[str, Field(maxLength=MAX_ID)]


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


# What can be followed; the fields name the subscription.
Topic = ExecutionTopic | LogTopic | MemoryTopic | DevicesTopic


class ClientMessage(TypedDict):
    """What a page sends: that it follows a topic, or follows it no more. The fields of the topic come with it."""

    type: Literal["subscribe", "unsubscribe"]
    topic: Literal["execution", "log", "memory", "devices"]
    group: NotRequired[Id]
    execution: NotRequired[Id]
    rank: NotRequired[int]
    since: NotRequired[
        Annotated[int, Field("The highest `seq` that the page has; 0: nothing.", minimum=0, maximum=MAX_SEQ)]
    ]
