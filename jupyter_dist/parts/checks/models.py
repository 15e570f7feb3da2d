"""Types: what is wrong with the training in a cell."""

from __future__ import annotations

from typing import Annotated, TypedDict

from jupyter_dist.protocol.field import Field
from jupyter_dist.protocol.models.models import CellFindingModel, CodeLine


class Check(CellFindingModel):
    """An error of training that its ranks have proved. Every number is in `evidence`."""

    kind: Annotated[str, Field("As `same_batch`: docs/how-to/find-what-is-wrong.md has all.")]
    line: Annotated[CodeLine | None, Field("Null: no line of the user's code is known.")]
    step: Annotated[int | None, Field("Since which step of the cell, from 1 on; null: it is not about steps.")]


class CellChecks(TypedDict):
    """What is wrong with the training in a cell."""

    checks: Annotated[list[Check], Field("The worst first, at most 4; while the cell runs, those that hold now.")]
    on: Annotated[bool, Field("False: the cells of the group are not checked.")]
