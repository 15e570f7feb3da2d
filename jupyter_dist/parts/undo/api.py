"""What clients may ask and what a cell shows: which cells can be undone, and what keeping their state has cost."""

from __future__ import annotations

from typing import Annotated

from jupyter_dist.protocol.field import Field
from jupyter_dist.protocol.models.models import ExecutionModel
from jupyter_dist.protocol.operations.declaration import Answer, Operation
from jupyter_dist.protocol.operations.of_group import ASKING

from .models import RedoRequest, UndoableCells, UndoCost, UndoRequest
from .options import UndoOptions
from .text import undoable_text, why_not_kept

RUN_OPTIONS = {
    "keep_undo": Annotated[
        bool,
        Field("Whether ranks keep the state before the cell, so that it can be undone (`undo` of the execution)."),
    ]
}
REPLACE_STATES = {
    "undo": "the other ranks undo the cell in which these died, and give them copies as `copy`",
}
ERROR_CODES = {"cannot_undo": 409}
ENDED_NOTES = (why_not_kept,)
GROUP_OPTIONS = UndoOptions
EXECUTION_FIELDS = {"undo": Annotated[UndoCost, Field("If it was run with `keep_undo`.")]}
OPERATIONS = (
    Operation(
        name="undoable",
        command="undoable",
        verb="get",
        path="groups/{group}/undoable",
        right="read",  # from what the agent knows; asks no rank
        sentence="Return the cells that can be undone now, newest first, with their cost.",
        answer=Answer("The cells that can be undone, newest first", UndoableCells, field="cells"),
        errors=ASKING,
        text=undoable_text,
    ),
    Operation(
        name="undo",
        verb="post",
        path="groups/{group}/undo",
        right="execute",
        sentence="Undo cells that kept undo, on all ranks that ran them; return the execution that does it.",
        details=(
            "It waits its turn as a cell does. Variables get the values of before the cells, in the same objects. "
            "Files, prints, the network and other processes are not undone."
        ),
        body=UndoRequest,
        tool="Give variables the values of before the last cells, which must have run with keep_undo. Files, prints "
        "and the network are not undone.",
        is_keyed=True,
        answer=Answer("The execution that undoes them, queued or running", ExecutionModel, 202),
        errors=(*ASKING, "unknown_execution", "cannot_undo", "rank_dead"),
    ),
    Operation(
        name="redo",
        verb="post",
        path="groups/{group}/redo",
        right="execute",
        sentence="Give variables what undone cells had left in them; return the execution that does it.",
        details=(
            "It waits its turn as a cell does. No code runs. It is possible until a cell runs that changes something, "
            "or that keeps no undo."
        ),
        body=RedoRequest,
        tool="Give variables what the undone cells had left in them, until a cell changes something. No code runs.",
        is_keyed=True,
        answer=Answer("The execution that does it, queued or running", ExecutionModel, 202),
        errors=(*ASKING, "unknown_execution", "cannot_undo", "rank_dead"),
    ),
)
