"""What the API sends about cells that ranks have missed.

See protocol/models/models.py for what is generated from these types.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from typing_extensions import NotRequired

from jupyter_dist.protocol.field import Field, RankSet
from jupyter_dist.protocol.states import ExecutionState


class CellRun(TypedDict):
    """The last run of a cell on some ranks, in the processes that they have now."""

    ranks: RankSet
    version: Annotated[int, Field("Of its code, counted from 1 in the order in which they first ran.")]
    execution_id: str
    execution_count: int | None


MissedReason = Literal["replaced", "changed", "skipped"]


class MissedCell(TypedDict):
    """The ranks that have missed a cell, and why."""

    ranks: RankSet
    reason: Annotated[
        MissedReason,
        Field("`replaced`: it ran before their process began. `changed`: they ran an older version. `skipped`: none."),
    ]
    state: NotRequired[
        Annotated[
            ExecutionState,
            Field(
                "How the cell ended on these ranks, `lost` if they died in it; where they were not in it or succeeded, "
                "how it ended as a whole."
            ),
        ]
    ]
    ended_on: NotRequired[Annotated[RankSet, Field("The ranks on which it ended so, if not `ok`.")]]


class DriftCell(TypedDict):
    """A cell, the version that counts, and on which ranks it ran; or an earlier run of it that replaced ranks need."""

    execution_id: Annotated[str, Field("Of the last run that succeeded on a rank, else of the last one.")]
    execution_count: int | None
    notebook: str | None
    cell_id: str | None
    line: Annotated[str, Field("The first line.")]
    state: Annotated[ExecutionState, Field("How that run ended: `ok` if it succeeded on any rank.")]
    seconds: Annotated[float | None, Field("Of its slowest rank.")]
    versions: Annotated[int, Field("How many versions of its code have run.")]
    version: Annotated[int, Field("The version of this run.")]
    runs: list[CellRun]
    missed: list[MissedCell]
    offered: Annotated[
        RankSet,
        Field(
            "To catch up: replaced ranks that have missed it, if it can be sent again and was `ok` or a later cell "
            "needs it."
        ),
    ]
    code: Annotated[str | None, Field("Null unless ranks have missed it; of a call of a client, which has none, too.")]
    uses: Annotated[list[str], Field("The `execution_id` of offered cells before it that set or change what it reads.")]


class DriftModel(TypedDict):
    """Which version of which cell ran on which ranks since the last restart, in the order to run them again."""

    generation: Annotated[int, Field("The generation of the group.")]
    cells: list[DriftCell]
    left_out: Annotated[int, Field("How many missed cells follow these: their code is beyond 4 MiB.")]
    forgotten: Annotated[bool, Field("Whether older cells are no longer known.")]
