"""What clients may ask: the variables of ranks, and the differences of one."""

from __future__ import annotations

from typing import Any

from jupyter_dist.protocol.models.differences import ComparisonModel
from jupyter_dist.protocol.operations.declaration import Answer, Operation
from jupyter_dist.protocol.operations.of_group import ASKING, COMPARE_SECONDS
from jupyter_dist.protocol.wire.queries import RanksQuery

from .models import CompareRequest, VariablesModel


def _variables_text(answer: Any) -> str:
    from .client.results import VariableTable  # noqa: PLC0415  (a terminal alone shows it)

    return repr(VariableTable(answer))


OPERATIONS = (
    Operation(
        name="variables",
        command="variables",
        verb="get",
        path="groups/{group}/variables",
        right="read",  # by types alone, runs no code of cells
        sentence="Return the variables of ranks, with their differences; ranks that run a cell are not asked.",
        query=RanksQuery,
        answer=Answer("The variables that cells made, equal ones once", VariablesModel),
        text=_variables_text,
        errors=(*ASKING, "bad_ranks"),
    ),
    Operation(
        name="compare",
        verb="post",
        path="groups/{group}/compare",
        right="execute",  # takes the time of ranks
        sentence="Return where, on which ranks and by how much a variable differs, and what was not compared.",
        details=(
            "Checksums are compared, then the elements of tensors that differ, a megabyte at a time and 64 MiB in all."
        ),
        body=CompareRequest,
        answer=Answer("What differs, and what was not compared", ComparisonModel),
        errors=(*ASKING, "bad_ranks", "not_found", "rank_dead"),
        answer_seconds=COMPARE_SECONDS,
    ),
)
