"""Operations on one rank of a group: its widgets, its log and its end."""

from __future__ import annotations

from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.wire import queries, requests

from .declaration import Answer, Operation

ASKING = ("unknown_group", "unknown_rank", "group_not_ready", "agent_unreachable", "timed_out", "incompatible")

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
        errors=ASKING,
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
