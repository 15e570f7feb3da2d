"""Operations on one rank of a group: its names, its widgets, its log and its end."""

from __future__ import annotations

from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.wire import queries, requests

from .declaration import Answer, Operation

COMPLETE_SECONDS = 1.0  # the user is typing; a rank that can answer needs a few milliseconds

_ASKING = ("unknown_group", "unknown_rank", "group_not_ready", "agent_unreachable", "timed_out", "incompatible")

RANK_OPERATIONS = (
    Operation(
        name="kill",
        verb="post",
        path="groups/{group}/ranks/{rank}/kill",
        right="execute",
        sentence="Kill a rank that cannot be interrupted; the others keep their variables. Then `replace` it.",
        body=requests.EmptyRequest,
        is_keyed=True,
        answer=Answer("The group, without that rank", models.GroupModel, 202),
        errors=_ASKING,
    ),
    Operation(
        name="complete",
        verb="post",
        path="groups/{group}/ranks/{rank}/complete",
        right="execute",  # access to attributes may run code of users
        sentence="Complete code at the cursor (in characters; default: the end) on a rank: Jupyter's complete_reply.",
        details="Attributes are completed while the rank is idle, only variables while it is busy.",
        body=requests.CompleteRequest,
        max_body_bytes=requests.MAX_COMPLETE_BODY_BYTES,
        answer=Answer("The matches, in the format of Jupyter's complete_reply", models.CompletionModel),
        errors=(*_ASKING, "rank_dead"),
        answer_seconds=COMPLETE_SECONDS,
    ),
    Operation(
        name="inspect",
        verb="post",
        path="groups/{group}/ranks/{rank}/inspect",
        right="execute",  # access to attributes may run code of users
        sentence="Describe the name at the cursor, as `name?` does on a rank; as `name??` with `detail=1`.",
        details="A rank that runs a cell answers at once: with `busy`, and only for functions, classes and modules.",
        body=requests.InspectRequest,
        max_body_bytes=requests.MAX_COMPLETE_BODY_BYTES,
        answer=Answer("The documentation, in the format of Jupyter's inspect_reply", models.Inspection),
        errors=(*_ASKING, "rank_dead"),
        answer_seconds=COMPLETE_SECONDS,
    ),
    Operation(
        name="send_comm",
        verb="post",
        path="groups/{group}/ranks/{rank}/comms",
        right="execute",  # a callback of a widget runs
        sentence="Send a message to a widget of a rank, which handles it when no cell runs there.",
        details="The answer does not wait for the code that handles the message.",
        body=requests.CommRequest,
        max_body_bytes=requests.MAX_CODE_BODY_BYTES,
        answer=Answer("The message is accepted", models.CommTaken, 202),
        errors=(
            *("unknown_group", "unknown_rank", "not_found", "rank_dead", "incompatible", "too_large"),
            *("node_unreachable", "agent_unreachable", "timed_out"),
        ),
    ),
    Operation(
        name="logs",
        verb="get",
        path="groups/{group}/ranks/{rank}/log",
        right="read",
        sentence="Return the last records of a rank's log, or the last ones before a given record.",
        query=queries.LogQuery,
        answer=Answer("Records, newest last", models.LogPage, field="records"),
        errors=("unknown_group", "unknown_rank", "agent_unreachable", "timed_out"),
    ),
    Operation(
        name="log_file",
        verb="get",
        path="groups/{group}/ranks/{rank}/log/download",
        right="read",
        sentence="Download the full log of a rank.",
        answer=Answer("Plain text", content_type="text/plain", headers=("Content-Disposition",)),
        errors=("unknown_group", "unknown_rank", "too_many"),
        is_capped=True,
    ),
)
