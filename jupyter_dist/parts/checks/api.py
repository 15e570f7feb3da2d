"""What clients may ask: what is wrong with the training in a cell, and whether cells are checked."""

from __future__ import annotations

from typing import Annotated, TypedDict

from jupyter_dist.protocol.field import Field
from jupyter_dist.protocol.models.differences import ComparisonModel
from jupyter_dist.protocol.operations.declaration import Answer, CellNote, Operation, finding_lines
from jupyter_dist.protocol.operations.of_execution import READING
from jupyter_dist.protocol.operations.of_group import COMPARE_SECONDS

from .models import CellChecks, Check
from .options import ChecksOptions


class CheckQuery(TypedDict):
    """Which model to compare."""

    name: Annotated[str, Field("A variable that is a torch.nn.Module.", minLength=1, maxLength=200)]


class ChecksSwitch(TypedDict):
    """Whether cells of a group are checked."""

    on: Annotated[bool, Field("False: ranks observe nothing, from the next step on.")]


def _checks_text(model: CellChecks) -> str:
    """Return lines about CellChecks of docs/api.md."""
    if not model["on"]:
        return "Checks are off in this group."
    lines = finding_lines(model["checks"], "To do")
    return "\n".join(lines) or "Nothing was found that is wrong with the training in it."


def _comparison_text(model: ComparisonModel) -> str:
    from jupyter_dist.client.results.comparing import VariableComparison  # noqa: PLC0415  (a terminal alone shows it)

    return repr(VariableComparison(model))


GROUP_OPTIONS = ChecksOptions
EXECUTION_FIELDS = {
    "checks": Annotated[list[Check], Field("What is wrong with the training in it, while it holds; the worst first.")]
}
CELL_NOTES = (CellNote("checks", "wrong"),)
OPERATIONS = (
    Operation(
        name="checks",
        verb="get",
        path="groups/{group}/executions/{execution_id}/checks",
        right="read",
        sentence="Return the checks of a cell: errors of its training that its ranks have proved.",
        details="Ranks are compared in the first steps of each optimizer, and then in ever fewer.",
        answer=Answer("What is wrong", CellChecks),
        errors=READING,
        is_of_last=True,
        command="checks",
        text=_checks_text,
        tool="Say what is wrong with the training in a cell, though it raises no error: ranks with the same batches, "
        "gradients that are not averaged, replicas that differ, the optimizer of an earlier model, NaN; with the line, "
        "two values as evidence, and what to do. By default of the last cell.",
    ),
    Operation(
        name="check",
        verb="get",
        path="groups/{group}/check",
        right="read",
        sentence="Compare all that a model trains with between ranks, whole and now.",
        details="Parameters, buffers, optimizers, samplers and random states. Ranks that run a cell are not asked.",
        query=CheckQuery,
        answer=Answer("Which parts differ, and what was not compared", ComparisonModel),
        text=_comparison_text,
        errors=("unknown_group", "agent_unreachable", "not_found", "bad_request", "rank_dead", "incompatible"),
        command="check",
        answer_seconds=COMPARE_SECONDS,
    ),
    Operation(
        name="set_checks",
        verb="post",
        path="groups/{group}/checks",
        right="execute",
        sentence="Switch the checks of a group's training on or off.",
        body=ChecksSwitch,
        answer=Answer("Whether they are on", ChecksSwitch),
        errors=("unknown_group", "agent_unreachable", "incompatible"),
        text=lambda model: f"Checks are {'on' if model['on'] else 'off'}.",
    ),
)
