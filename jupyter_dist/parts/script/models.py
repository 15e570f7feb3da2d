"""A script of the cells of a notebook, and what is asked for it."""

from __future__ import annotations

from typing import Annotated, TypedDict

from jupyter_dist.protocol.field import Field
from jupyter_dist.protocol.wire.requests import MAX_CODE_BYTES, MAX_PATH


class Script(TypedDict):
    """The cells of a notebook that ran on ranks, as a script for torchrun."""

    script: str
    cells: Annotated[int, Field("How many cells it runs.")]
    notebook: Annotated[str | None, Field("The notebook's path.")]
    notes: Annotated[list[str], Field("Sentences about what is left out; they stand in the script, too.")]


class ScriptRequest(TypedDict, total=False):
    """The body of POST .../script."""

    notebook: Annotated[
        str | None,
        Field("The path of the notebook, or its last parts; by default the only one.", maxLength=MAX_PATH),
    ]
    cells: Annotated[
        str | None,
        Field(
            "The notebook's code cells as JSON, [{id, source}]: cells that did not run on ranks become comments.",
            maxLength=MAX_CODE_BYTES,
        ),
    ]
