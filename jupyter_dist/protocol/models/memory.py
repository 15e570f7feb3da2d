"""What the API sends about memory: what a cell added, and what holds it on a rank.

Beside models.py: see there for what is generated from these types.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from jupyter_dist.protocol.field import Field


class CellMemory(TypedDict):
    """What a cell did to the memory of a rank; only of a megabyte and more."""

    kind: Annotated[Literal["allocated", "resident"], Field("Of tensors on the rank's device, or of its process.")]
    added_bytes: Annotated[int, Field("Bytes that were allocated and not freed; less than 0 if more were freed.")]
    peak_bytes: Annotated[
        int | None, Field("The most that the rank held meanwhile; null if it had held as much before.")
    ]


class MemoryHolder(TypedDict):
    """Something by which a rank holds memory."""

    name: Annotated[str, Field("`model`, `Out[3]`, or `x in step()` for a variable of a call in the last traceback.")]
    where: Literal["variable", "result", "traceback"]
    also: Annotated[list[str], Field("Other holders that have memory in common with it; at most 5.")]
    type: str
    bytes: Annotated[int, Field("Bytes of all storages that it holds; a view holds its whole storage.")]
    frees_bytes: Annotated[
        int, Field("Bytes that no other holder in the list holds, so that removing this one frees them.")
    ]
    parts: Annotated[dict[str, int], Field("Bytes of `parameters`, `buffers`, `gradients` and `state` among them.")]
