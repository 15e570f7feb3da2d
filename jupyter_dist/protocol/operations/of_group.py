"""Operations on a group as a whole: its state, its end, and its ranks."""

from __future__ import annotations

from jupyter_dist.protocol.models import machine, models
from jupyter_dist.protocol.wire import queries, requests

from .declaration import Answer, Operation

COMPARE_SECONDS = 120.0  # the server stops earlier

# What any question to ranks may be answered with.
ASKING = ("unknown_group", "group_not_ready", "agent_unreachable", "timed_out", "incompatible")


def _renewal(name: str, sentence: str, answer: str, details: str = "", *more_errors: str) -> Operation:
    return Operation(
        name=name,
        verb="post",
        path=f"groups/{{group}}/{name}",
        right="execute",
        sentence=sentence,
        details=details,
        body=requests.EmptyRequest,
        is_keyed=True,
        answer=Answer(answer, models.GroupModel, 202),
        errors=(*ASKING, *more_errors),
    )


GROUP_OPERATIONS = (
    Operation(
        name="status",
        verb="get",
        path="groups/{group}",
        right="read",
        sentence="Return the state of the group, at once or after it has left a state.",
        query=queries.StatusQuery,
        answer=Answer("The group", models.GroupModel),
        errors=("unknown_group",),
    ),
    Operation(
        name="verdicts",
        verb="get",
        path="groups/{group}/verdicts",
        right="read",
        sentence="Return the verdicts on cells that cannot end or are slow, and what happened afterwards.",
        details="Each has its witnesses. A refuted one is a fault of jupyter_dist: please report it with this answer.",
        answer=Answer("The verdicts", models.Verdicts),
        errors=ASKING,
        command="verdicts",
    ),
    Operation(
        name="shutdown",
        verb="delete",
        path="groups/{group}",
        right="execute",
        sentence="End the group; return a sentence about each process that had to be killed.",
        answer=Answer(
            "The group has ended; lists the processes that had to be killed", models.Shutdown, field="killed"
        ),
        errors=("unknown_group", "timed_out"),
    ),
    Operation(
        name="own",
        verb="post",
        path="groups/{group}/owners",
        right="execute",
        sentence="Add an owner to a group that ends with processes: the group lives at least as long as this process.",
        body=requests.OwnerRequest,
        is_keyed=True,
        answer=Answer("The group; a group that outlives all processes is not changed", models.GroupModel),
        errors=ASKING,
    ),
    Operation(
        name="interrupt",
        verb="post",
        path="groups/{group}/interrupt",
        right="execute",
        sentence="Interrupt running cells; the ranks keep their variables.",
        body=requests.RanksRequest,
        answer=Answer("The ranks that were running a cell", models.Interrupted, 202),
        errors=(*ASKING, "bad_ranks"),
    ),
    _renewal(
        "restart",
        "Restart all ranks in new processes; cells wait for them.",
        "The group; its ranks are restarting",
        "",
        "name_taken",
    ),
    Operation(
        name="start_again",
        verb="post",
        path="groups/{group}/start_again",
        right="execute",
        sentence="Start a group that has ended, with the options of its start.",
        details="The new group takes the name of the earlier group. Its launcher submits another job. Values of `env` "
        "are kept in memory alone: they are to be given again when the agent and the server have ended since.",
        body=requests.StartAgainRequest,
        is_keyed=True,
        answer=Answer("The new group; its ranks are starting", models.GroupModel, 201, headers=("Location",)),
        errors=(
            *("unknown_group", "group_not_ready", "bad_request", "bad_devices", "bad_environment", "bad_directory"),
            *("name_taken", "launcher_failed", "start_failed", "agent_unreachable", "timed_out"),
        ),
    ),
    Operation(
        name="replace",
        verb="post",
        path="groups/{group}/replace",
        right="execute",
        sentence="Start new processes for dead ranks; the others keep their variables.",
        details="`replaced` of the group has the outcome, once its state is no longer `restarting`.",
        body=requests.ReplaceRequest,
        is_keyed=True,
        answer=Answer("The group; the new ranks are starting", models.GroupModel, 202),
        errors=(
            *(*ASKING, "ranks_differ", "bad_directory", "not_yours", "not_found", "damaged"),
            *("cannot_restore", "other_version"),
        ),
    ),
    _renewal(
        "reform",
        "Re-create the process group in the same processes, which keep all variables.",
        "The group; its ranks are joining again",
    ),
    Operation(
        name="empty_cache",
        verb="post",
        path="groups/{group}/empty-cache",
        right="execute",
        sentence="Collect garbage and empty the device caches of idle ranks; return the freed bytes by rank.",
        body=requests.RanksRequest,
        answer=Answer("Freed bytes by rank", models.FreedBytes, field="freed_bytes"),
        errors=(*ASKING, "bad_ranks"),
    ),
    Operation(
        name="last_samples",
        verb="get",
        path="groups/{group}/memory",
        right="read",
        sentence="Return the last minutes of memory samples, newest last.",
        details="Samples are only taken while a client follows the memory.",
        answer=Answer("Samples, newest last", machine.SamplesModel, field="samples"),
        errors=("unknown_group",),
    ),
    Operation(
        name="samples",
        verb="get",
        path="groups/{group}/samples",
        right="read",
        sentence="Return a page of the last hour's memory samples, with the places where ranks were seen to wait.",
        details="Samples are only taken while a client follows the memory.",
        query=queries.SamplesQuery,
        answer=Answer("Columns, oldest first", machine.PastSamples),
        errors=("unknown_group",),
    ),
    Operation(
        name="stacks",
        command="stacks",
        verb="get",
        path="groups/{group}/stacks",
        right="read",  # asks the side threads, runs no code of cells
        sentence="Return the Python stacks of all ranks, equal ones once.",
        details="Ranks that do not answer within 2 s are `unknown`.",
        answer=Answer(
            "The stacks of the main threads; ranks with equal ones share an entry", models.Stacks, field="stacks"
        ),
        errors=ASKING,
    ),
    Operation(
        name="history",
        verb="get",
        path="groups/{group}/history",
        right="read",
        sentence="Return the last cells of all clients that ran on this group, oldest first, with their code.",
        details="Cells that a program ran silently, and calls, which are no code of users, are left out.",
        query=queries.HistoryQuery,
        answer=Answer("The last cells that ran, with their code, oldest first", machine.HistoryModel, field="cells"),
        errors=("unknown_group", "agent_unreachable", "timed_out"),
    ),
)
