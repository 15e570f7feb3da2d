"""The messages of the WebSocket, of server and pages. See models.py for what is generated from these types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from jupyter_dist.protocol.field import Field
from jupyter_dist.protocol.models.machine import Devices, MemorySample
from jupyter_dist.protocol.models.models import (
    ErrorBody,
    ExecutionModel,
    GroupModel,
    LogRecord,
    RankModel,
    ViewChange,
)

from .requests import MAX_GROUP_RANKS, CommRequest, RunRequest
from .specs import MAX_SEQ

if TYPE_CHECKING:
    from typing_extensions import NotRequired

MAX_ID = 80  # characters of a name or id, as in paths


class HelloMessage(TypedDict):
    """The first message."""

    type: Literal["hello"]
    server: Annotated[str, Field("The id of this server process.")]


class RankChanges(TypedDict):
    """What changed in ranks that have the same fields as before."""

    ranks: Annotated[str, Field("These ranks.")]
    alike: Annotated[dict[str, Any], Field("Fields of Rank with a new value, which these ranks have alike.")]
    columns: Annotated[
        dict[str, list[Any]], Field("Other fields of Rank: a value for each of these ranks, in their order.")
    ]


class GroupChange(TypedDict):
    """What changed in a group."""

    id: str
    fields: Annotated[dict[str, Any], Field("Fields of Group with their new values, without `ranks`.")]
    ranks: Annotated[list[RankModel], Field("Ranks that changed, whole: all of them without `by_field`.")]
    rank_changes: NotRequired[Annotated[RankChanges, Field("The other ranks that changed, with `by_field`.")]]


class ChangesMessage(TypedDict):
    """The changes of all groups."""

    type: Literal["changes"]
    seq: Annotated[int, Field("Counts these messages; the first, 1, has all groups whole.")]
    groups: Annotated[list[GroupModel], Field("Groups that are new, or have another number of ranks.")]
    changes: Annotated[list[GroupChange], Field("Groups that the client has.")]
    order: NotRequired[Annotated[list[str], Field("The ids of all groups, oldest first, if one came or went.")]]


class ExecutionMessage(TypedDict):
    """An execution changed."""

    type: Literal["execution"]
    group: str
    execution: ExecutionModel


class SubmittedMessage(TypedDict):
    """The cell of a `submit` was queued; messages of its execution follow."""

    type: Literal["submitted"]
    key: str
    execution: ExecutionModel


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


class CommState(TypedDict):
    """A comm of a rank as it is now: what a page needs to open it."""

    comm_id: str
    rank: int
    execution_id: Annotated[str | None, Field("The execution whose code opened it.")]
    target_name: NotRequired[str]
    data: Annotated[dict[str, Any], Field("As in Jupyter's `comm_open`; of a widget the state as it is now.")]
    metadata: NotRequired[dict[str, Any]]
    buffers: NotRequired[Annotated[list[str], Field("In base64.")]]
    live: Annotated[bool, Field("Whether its rank lives.")]
    is_kept: Annotated[bool, Field("False: its state was too large to be kept.")]


class CommNews(TypedDict):
    """What happened to a comm: a message of a rank, or the death of one."""

    seq: int
    kind: Annotated[
        Literal["comm_open", "comm_msg", "comm_close", "comm_done", "dead"],
        Field("`comm_done`: the rank has handled the message `msg_id`. `dead`: the rank has died, with all its comms."),
    ]
    rank: int
    comm_id: NotRequired[str]
    execution_id: NotRequired[str | None]
    target_name: NotRequired[str]
    data: NotRequired[dict[str, Any]]
    metadata: NotRequired[dict[str, Any]]
    buffers: NotRequired[Annotated[list[str], Field("In base64.")]]
    parent: NotRequired[Annotated[str | None, Field("The `msg_id` of the message that the code was handling.")]]
    msg_id: NotRequired[str]


class CommsMessage(TypedDict):
    """The comms of a group's ranks: at first all that are open, then what happens to them."""

    type: Literal["comms"]
    group: str
    comms: NotRequired[Annotated[list[CommState], Field("All: forget others. At first, and after a lost connection.")]]
    messages: Annotated[list[CommNews], Field("In order; after `comms`, if there are both.")]


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
    ChangesMessage
    | ExecutionMessage
    | ViewMessage
    | LogMessage
    | CommsMessage
    | MemoryMessage
    | DevicesMessage
    | ErrorMessage
)
ServerMessage = HelloMessage | SubmittedMessage | TopicMessage

# -- from a page ----------------------------------------------------------------------------------------

Id = Annotated[str, Field(maxLength=MAX_ID)]


class GroupsTopic(TypedDict):
    """All groups: first whole, then their changes."""

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


class CommsTopic(TypedDict):
    """The widgets of a group's ranks."""

    topic: Literal["comms"]
    group: Id


class MemoryTopic(TypedDict):
    """A group's memory; samples are taken while it is followed."""

    topic: Literal["memory"]
    group: Id


class DevicesTopic(TypedDict):
    """Devices and host."""

    topic: Literal["devices"]


# The topics; their fields identify the subscription.
Topic = GroupsTopic | ExecutionTopic | LogTopic | CommsTopic | MemoryTopic | DevicesTopic


class ClientMessage(TypedDict):
    """A message of a page that follows or stops following a topic, with the fields of the topic."""

    type: Literal["subscribe", "unsubscribe"]
    topic: Literal["groups", "execution", "log", "comms", "memory", "devices"]
    group: NotRequired[Id]
    execution: NotRequired[Id]
    rank: NotRequired[int]
    since: NotRequired[Annotated[int, Field("The highest `seq` that the page has, or 0.", minimum=0, maximum=MAX_SEQ)]]
    by_field: NotRequired[Annotated[bool, Field("Of `groups`: whether ranks that changed are sent field by field.")]]


class SubmitMessage(TypedDict):
    """A message of a page that runs a cell and follows it: `POST .../executions` and a subscription in one."""

    type: Literal["submit"]
    group: Id
    key: Annotated[
        str,
        Field("The idempotency key, which the answer has, too. The same key by POST is the same cell.", maxLength=200),
    ]
    cell: RunRequest


class CommMessage(CommRequest):
    """A message of a page to a widget on a rank: `POST .../ranks/{rank}/comms`; only an error is answered."""

    type: Literal["comm"]
    group: Id
    rank: Annotated[int, Field("", minimum=0, maximum=MAX_GROUP_RANKS)]
    key: Annotated[str, Field("The answer to an invalid message has it, too.", maxLength=200)]
