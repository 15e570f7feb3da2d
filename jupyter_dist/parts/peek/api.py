"""What clients may ask: the values of names, while a cell runs."""

from __future__ import annotations

from typing import Annotated, TypedDict

from jupyter_dist.protocol.field import Field
from jupyter_dist.protocol.operations.declaration import Answer, Operation
from jupyter_dist.protocol.wire.requests import Expression

from .models import Peeked
from .text import peeked_text


class PeekQuery(TypedDict, total=False):
    """Which names to read, and on which ranks."""

    names: Annotated[
        str,
        Field(
            "Names such as `loss`, `model.weight` or `state['lr']`, with commas between them; empty: the names of the "
            "function that runs.",
            maxLength=2000,
        ),
    ]
    ranks: Expression


OPERATIONS = (
    Operation(
        name="peek_values",
        verb="get",
        path="groups/{group}/values",
        right="read",  # by types alone, runs no code of cells
        sentence="Return the values of names on ranks, also while these run a cell.",
        details="Local names come before names of cells. Of devices only shapes are read; no code of the user runs.",
        query=PeekQuery,
        answer=Answer("The values, equal ones once", Peeked),
        errors=("unknown_group", "agent_unreachable", "bad_ranks", "incompatible"),
        command="peek",
        text=peeked_text,
        tool="Read variables on ranks while their cell runs: numbers, short texts, shapes, and values of tensors on "
        "the CPU; also local names of the function that runs. The cell goes on meanwhile.",
    ),
)
