"""Types of cells that can be undone, and of the requests that undo them."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict

from jupyter_dist.protocol.field import Field, RankSet

MAX_UNDO_CELLS = 1000
_EXECUTIONS = {"type": "array", "items": {"type": "string", "maxLength": 100}, "maxItems": MAX_UNDO_CELLS}


class UndoCost(TypedDict):
    """What was kept before a cell, so that it can be undone."""

    bytes: Annotated[int, Field("Copied before the cell, on all of its ranks together.")]
    milliseconds: Annotated[float, Field("How long the slowest rank took for it, before the cell.")]
    not_kept: Annotated[list[str], Field("What undo leaves as it is, a sentence for each object.")]
    reason: NotRequired[Annotated[str | None, Field("Why the cell cannot be undone, if its state was not kept.")]]
    changed: NotRequired[
        Annotated[bool, Field("Whether the cell changed something that an undo takes back, besides its own result.")]
    ]


class UndoableCell(TypedDict):
    """A cell that can be undone now."""

    execution_id: str
    execution_count: int | None
    ranks: RankSet
    cell_id: str | None
    notebook: str | None
    line: str
    cost: UndoCost


class UndoableCells(TypedDict):
    """The cells that can be undone now, newest first; a cell is undone with the cells before it in this list."""

    cells: list[UndoableCell]
    undone: NotRequired[
        Annotated[
            list[UndoableCell],
            Field("The undone cells that can be done again, in this order, until a cell changes something."),
        ]
    ]
    lost: NotRequired[
        Annotated[
            list[UndoableCell],
            Field("The cell in which ranks died and those after it: a replacement with the state `undo` undoes them."),
        ]
    ]


class UndoRequest(TypedDict, total=False):
    """The body of POST .../undo."""

    count: Annotated[int, Field("How many of the last kept cells; default: 1.", minimum=1, maximum=MAX_UNDO_CELLS)]
    executions: Annotated[
        list[str],
        Field("Instead: these executions, which must be the last kept ones on their ranks.", schema=_EXECUTIONS),
    ]


class RedoRequest(TypedDict, total=False):
    """The body of POST .../redo."""

    count: Annotated[int, Field("How many undone cells; default: 1.", minimum=1, maximum=MAX_UNDO_CELLS)]
    executions: Annotated[
        list[str],
        Field("Instead: these executions, which must be the next undone ones on their ranks.", schema=_EXECUTIONS),
    ]
