"""Settings: how much ranks keep to undo cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from jupyter_dist.protocol.field import OptionField


@dataclass(frozen=True, kw_only=True)
class UndoOptions:
    """How many cells ranks can undo, and the memory for it."""

    undo_cells: Annotated[
        int,
        OptionField(
            "How many cells a rank can undo, of those that were run with keep_undo; the oldest goes first.", minimum=1
        ),
    ] = 20
    undo_bytes: Annotated[
        int,
        OptionField(
            "How much host memory each rank may take to undo cells, in bytes. A cell whose state takes more runs"
            " without, and says so.",
            minimum=0,
        ),
    ] = 2 << 30
