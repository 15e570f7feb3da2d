"""REST: executions, their views, and what the names of a rank complete."""

from __future__ import annotations

from jupyter_dist.protocol import machine, models, requests
from jupyter_dist.server.http.base import DistHandler
from jupyter_dist.server.http.operations import Answer, Operation, operation
from jupyter_dist.server.http.schemas import INTEGER, MAX_COMPLETE_BYTES, MAX_EXECUTE_BYTES

from .groups import WAIT

DEFAULT_HISTORY = 500
MAX_HISTORY = 2000


class ExecutionsHandler(DistHandler):
    """The executions of a group."""

    @operation(
        Operation(
            "List the executions of a group",
            "read",
            {
                200: Answer(
                    "Executions, newest last, with the first line of their code, without outputs",
                    models.Executions,
                )
            },
            errors=("unknown_group",),
        )
    )
    async def get(self, name: str) -> None:
        """List the executions."""
        self.answer({"executions": self.group(name).executions.listed()})

    @operation(
        Operation(
            "Run a cell",
            "execute",
            {202: Answer("The execution, queued or running", models.Execution, headers=("Location",))},
            body=requests.RunRequest,
            is_keyed=True,
            body_bytes=MAX_EXECUTE_BYTES,
            errors=(
                "unknown_group",
                "bad_ranks",
                "group_not_ready",
                "rank_dead",
                "node_unreachable",
                "incompatible",
                "key_reused",
                "needs_all_ranks",
                "too_large",
                "agent_unreachable",
                "timed_out",
            ),
        )
    )
    async def post(self, name: str) -> None:
        """Queue a cell on the ranks."""
        group = self.group(name)
        execution = await self.run_cell(group, self.body, self.key)
        self.answer(execution, 202, self.url("groups", group.id, "executions", execution["id"]))


class ExecutionHandler(DistHandler):
    """One execution."""

    @operation(
        Operation(
            "Read the view of an execution",
            "read",
            {200: Answer("The execution and its folded outputs", models.View)},
            query={"wait": WAIT},
            errors=("unknown_group", "unknown_execution", "agent_unreachable", "timed_out"),
        )
    )
    async def get(self, name: str, execution_id: str) -> None:
        """Read the view, at once or after the execution has ended."""
        group = self.group(name)
        await group.wait_ended(execution_id, self.query.get("wait", 0))
        view = await group.view(execution_id)
        snapshot = view.snapshot()
        execution = await group.execution(execution_id)
        self.answer({"execution": execution, "seq": snapshot.seq, "items": snapshot.to_list()})

    @operation(
        Operation(
            "Cancel an execution",
            "execute",
            {202: Answer("It is cancelled if it was queued, or being interrupted if it was running", models.Execution)},
            errors=("unknown_group", "unknown_execution", "group_not_ready", "agent_unreachable", "timed_out"),
        )
    )
    async def delete(self, name: str, execution_id: str) -> None:
        """Cancel a queued execution, interrupt a running one."""
        group = self.group(name)
        await group.cancel(execution_id)
        self.answer(await group.execution(execution_id), 202)


class InputHandler(DistHandler):
    """What the ranks of an execution ask for."""

    @operation(
        Operation(
            "Answer what ranks ask for",
            "execute",
            {
                200: Answer(
                    "The ranks that took the answer; the first answer to a question counts", models.InputAnswered
                )
            },
            body=requests.InputRequest,
            errors=(
                "unknown_group",
                "unknown_execution",
                "bad_ranks",
                "not_asking",
                "rank_dead",
                "incompatible",
                "group_not_ready",
                "agent_unreachable",
                "timed_out",
            ),
        )
    )
    async def post(self, name: str, execution_id: str) -> None:
        """Answer."""
        self.answer(await self.group(name).answer_input(execution_id, **self.body))


class CommsHandler(DistHandler):
    """Messages to widgets of one rank."""

    @operation(
        Operation(
            "Send a message to a widget",
            "execute",
            {202: Answer("Taken", models.CommTaken)},
            body=requests.CommRequest,
            body_bytes=MAX_EXECUTE_BYTES,
            errors=(
                *("unknown_group", "unknown_rank", "not_found", "rank_dead", "incompatible", "too_large"),
                *("node_unreachable", "agent_unreachable", "timed_out"),
            ),
        )
    )
    async def post(self, name: str, rank: str) -> None:
        """Pass it on. The answer does not wait for the code that handles it."""
        taken = await self.group(name).send_comm(int(rank), self.body["kind"], self.body["content"])
        self.answer(taken, 202)


class ExtendHandler(DistHandler):
    """More ranks for a running cell."""

    @operation(
        Operation(
            "Run a running cell on more ranks",
            "execute",
            {202: Answer("The execution, with these ranks", models.Execution)},
            body=requests.RanksRequest,
            errors=(
                "unknown_group",
                "unknown_execution",
                "not_found",
                "bad_ranks",
                "group_not_ready",
                "rank_dead",
                "incompatible",
                "agent_unreachable",
                "timed_out",
            ),
        )
    )
    async def post(self, name: str, execution_id: str) -> None:
        """Run its code, as it was submitted, on ranks that do not have it: those that it waits for."""
        group = self.group(name)
        await group.extend(execution_id, self.body.get("ranks", "all"))
        self.answer(await group.execution(execution_id), 202)


class HistoryHandler(DistHandler):
    """The history of a group."""

    @operation(
        Operation(
            "Read the history of a group",
            "read",
            {200: Answer("The last cells that ran, with their code, oldest first", machine.History)},
            query={
                "n": {
                    **INTEGER,
                    "minimum": 1,
                    "maximum": MAX_HISTORY,
                    "description": f"How many cells; {DEFAULT_HISTORY} by default. Together at most 4 MiB of code.",
                }
            },
            errors=("unknown_group", "agent_unreachable", "timed_out"),
        )
    )
    async def get(self, name: str) -> None:
        """Read the cells: not those that a program ran silently, and not calls, which are not code of users."""
        self.answer({"cells": await self.group(name).history(self.query.get("n", DEFAULT_HISTORY))})


class ScriptHandler(DistHandler):
    """The cells of a notebook as a script."""

    @operation(
        Operation(
            "Export the cells that ran on ranks as a script for torchrun",
            "read",  # a POST, because the notebook's cells are sent
            {200: Answer("The script", models.Script)},
            body=requests.ScriptRequest,
            body_bytes=MAX_EXECUTE_BYTES,
            errors=("unknown_group", "not_found", "too_large", "agent_unreachable", "timed_out"),
        )
    )
    async def post(self, name: str) -> None:
        """Write the script."""
        self.answer(await self.group(name).script(self.body.get("notebook"), self.body.get("cells")))


class CompleteHandler(DistHandler):
    """Code completion on one rank."""

    @operation(
        Operation(
            "Complete code with the names of a rank",
            "execute",  # attribute access may run user code
            {200: Answer("The matches, in the format of Jupyter's complete_reply", models.Completion)},
            body=requests.CompleteRequest,
            body_bytes=MAX_COMPLETE_BYTES,
            errors=("unknown_group", "unknown_rank", "group_not_ready", "rank_dead", "agent_unreachable", "timed_out"),
        )
    )
    async def post(self, name: str, rank: str) -> None:
        """Complete attributes while the rank is idle, only variables while it is busy."""
        found = await self.group(name).complete(int(rank), self.body["code"], self.body.get("cursor_pos"))
        self.answer(found)


class DebugHandler(DistHandler):
    """The debuggers of ranks."""

    @operation(
        Operation(
            "Ask the debuggers of ranks",
            "execute",
            {200: Answer("Their replies, in the format of Jupyter's debug_reply", models.DebugReplies)},
            body=requests.DebugRequest,
            body_bytes=MAX_COMPLETE_BYTES,
            errors=(
                *("unknown_group", "bad_ranks", "group_not_ready", "rank_dead", "agent_unreachable"),
                *("timed_out", "incompatible"),
            ),
        )
    )
    async def post(self, name: str) -> None:
        """The first is `initialize`, which imports debugpy. `events` waits for the next events of a rank."""
        self.answer(await self.group(name).debug(self.body.get("ranks", "all"), self.body["message"]))


class InspectHandler(DistHandler):
    """Documentation of a name on one rank."""

    @operation(
        Operation(
            "What a rank knows about the name at the cursor",
            "execute",  # attribute access may run user code
            {200: Answer("Its documentation, in the format of Jupyter's inspect_reply", models.Inspection)},
            body=requests.InspectRequest,
            body_bytes=MAX_COMPLETE_BYTES,
            errors=(
                *("unknown_group", "unknown_rank", "group_not_ready", "rank_dead", "agent_unreachable"),
                *("timed_out", "incompatible"),
            ),
        )
    )
    async def post(self, name: str, rank: str) -> None:
        """Never waits for a cell: a busy rank describes functions, classes and modules, or says that it is busy."""
        body = self.body
        found = await self.group(name).inspect(int(rank), body["code"], body.get("cursor_pos"), body.get("detail", 0))
        self.answer(found)
