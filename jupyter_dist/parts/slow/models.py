"""Types: why a cell is slow, and where its time goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from jupyter_dist.protocol.field import Field, RankSet
from jupyter_dist.protocol.models.models import CellFindingModel, CodeLine
from jupyter_dist.protocol.models.sentences import Words

if TYPE_CHECKING:
    from typing_extensions import NotRequired

SlowKind = Literal[
    "straggler",
    "occasional",
    "uneven",
    "input",
    "saving",
    "printing",
    "compiling",
    "blocked",
    "collector",
    "memory",
    "growing",
    "contention",
    "communication",
    "small_collectives",
    "accumulation",
    "unused_parameters",
    "device_sync",
    "fragmentation",
    "objects",
    "line",
]


class SlowCause(CellFindingModel):
    """Why a cell is slow, in one sentence."""

    kind: Annotated[
        SlowKind,
        Field(
            "`straggler`: ranks come last to the collectives of each step. `occasional`: the others wait for a rank "
            "now and then, and long. `uneven`: another rank is last each time. `input`: for the next batch. `blocked`: "
            "in the kernel, for a file or a time. `collector`: Python's garbage collector. `memory`: it grows with "
            "each step. `growing`: each step takes longer. `contention`: other programs use the processor. "
            "`accumulation`: gradients are averaged more often than the optimizer steps. "
            "`unused_parameters`: DistributedDataParallel looks for them. `device_sync`: ranks wait for values of "
            "devices that idle meanwhile. `fragmentation`: torch frees its cache of device memory again and again. "
            "`objects`: objects are pickled for other ranks. `line`: no fault, but the line that takes the most of a "
            "step."
        ),
    ]
    share: Annotated[float, Field("Which part of the time it costs, from 0 to 1.")]
    place: Annotated[CodeLine | None, Field("The line that takes the time; null if none stands out.")]


class RankPace(TypedDict):
    """Where the time of a rank went, as parts of it from 0 to 1."""

    rank: int
    compute: float
    communicate: Annotated[float, Field("In collectives whose ranks had all arrived.")]
    wait: Annotated[float, Field("In collectives, for ranks that came later.")]
    input: Annotated[float, Field("For data: in a DataLoader.")]
    waits_for: Annotated[int | None, Field("The rank that it waited for longest.")]


class LineShare(TypedDict):
    """A line of the user's code, and which part of the time of the ranks it took."""

    ranks: RankSet
    line: CodeLine
    share: float


class StepTimes(TypedDict):
    """The steps of a loop, found by the recurring sequence of its collectives, or named by `track(step=...)`."""

    seconds: Annotated[float, Field("How long a step takes now.")]
    collectives: Annotated[int | None, Field("In a step; null if `track(step=...)` names the steps.")]
    trend: Annotated[list[float], Field("The seconds of a step in the course of the cell, oldest first; at most 60.")]
    times: Annotated[list[float], Field("When each of the trend was measured.")]


class Pace(TypedDict):
    """Where the time of a cell goes."""

    execution_id: str
    seconds: Annotated[float, Field("For how long it was watched.")]
    causes: Annotated[list[SlowCause], Field("Why it is slow now, or was at its end; the costliest first, at most 3.")]
    ranks: Annotated[
        list[RankPace], Field("At most 64; of more ranks, the ranks with the shortest and the longest waits.")
    ]
    lines: Annotated[list[LineShare], Field("The lines that took most of the time; at most 10.")]
    steps: Annotated[StepTimes | None, Field("Null if no steps were found.")]
    unknown: Annotated[list[str], Field("What could not be measured, and why, a sentence each.")]
    unknown_words: NotRequired[Annotated[list[list[Words] | None], Field("Of each of these sentences.")]]
