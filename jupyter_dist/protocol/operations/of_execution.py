"""Operations on the executions of a group: running a cell, its outputs, and its end."""

from __future__ import annotations

from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.wire import queries, requests

from .declaration import Answer, Operation

READING = ("unknown_group", "unknown_execution", "agent_unreachable", "timed_out", "incompatible")

EXECUTION_OPERATIONS = (
    Operation(
        name="executions",
        verb="get",
        path="groups/{group}/executions",
        right="read",
        sentence="Return the executions of the group, newest last.",
        answer=Answer(
            "Executions, newest last, with the first line of their code, without outputs",
            models.ExecutionsModel,
            field="executions",
        ),
        errors=("unknown_group",),
    ),
    Operation(
        name="submit",
        verb="post",
        path="groups/{group}/executions",
        right="execute",
        sentence="Queue a cell on ranks, and return its execution.",
        body=requests.RunRequest,
        max_body_bytes=requests.MAX_CODE_BODY_BYTES,
        is_keyed=True,
        is_owned=True,
        answer=Answer("The execution, queued or running", models.ExecutionModel, 202, headers=("Location",)),
        errors=(
            *("unknown_group", "bad_ranks", "group_not_ready", "rank_dead", "incompatible"),
            *("key_reused", "needs_all_ranks", "too_large", "agent_unreachable", "timed_out"),
        ),
    ),
    Operation(
        name="view",
        verb="get",
        path="groups/{group}/executions/{execution_id}",
        right="read",
        sentence="Return an execution and its folded outputs, at once or after it has ended.",
        query=queries.ViewQuery,
        answer=Answer("The execution and its folded outputs", models.ViewModel),
        errors=READING,
    ),
    Operation(
        name="cancel",
        verb="delete",
        path="groups/{group}/executions/{execution_id}",
        right="execute",
        sentence="Cancel a queued execution, interrupt a running one.",
        answer=Answer(
            "It is cancelled if it was queued, or being interrupted if it was running", models.ExecutionModel, 202
        ),
        errors=(*READING, "group_not_ready"),
    ),
    Operation(
        name="answer_input",
        verb="post",
        path="groups/{group}/executions/{execution_id}/input",
        right="execute",
        sentence="Answer the question of an execution's ranks; the first answer to a question counts.",
        body=requests.InputRequest,
        answer=Answer("The ranks that took the answer; the first answer to a question counts", models.InputAnswered),
        errors=(*READING, "group_not_ready", "bad_ranks", "not_asking", "rank_dead"),
    ),
    Operation(
        name="extend",
        verb="post",
        path="groups/{group}/executions/{execution_id}/extend",
        right="execute",
        sentence="Run a running cell, as it was submitted, on more ranks; ranks that have it already are skipped.",
        body=requests.RanksRequest,
        answer=Answer("The execution, with these ranks", models.ExecutionModel, 202),
        errors=(*READING, "group_not_ready", "not_found", "bad_ranks", "rank_dead"),
    ),
)
