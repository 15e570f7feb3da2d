"""Types: what a rank knows at a cursor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypedDict

from jupyter_dist.protocol.field import Field
from jupyter_dist.protocol.wire.requests import MAX_ASKED_CHARS

if TYPE_CHECKING:
    # Agent and ranks only have the standard library of Python 3.10, which lacks this name; they never use it.
    from typing_extensions import NotRequired


class CompletionModel(TypedDict):
    """Completions at a cursor, in the format of Jupyter's complete_reply; positions are in characters."""

    matches: list[str]
    cursor_start: int
    cursor_end: int
    types: NotRequired[
        Annotated[
            list[str],
            Field(
                "Of each match: function, class, module, instance, property, keyword; or empty. Left out while the "
                "rank runs a cell."
            ),
        ]
    ]
    signatures: NotRequired[Annotated[list[str], Field("Of each match that is a function or class; or empty.")]]


class Inspection(TypedDict):
    """What is at a cursor, in the format of Jupyter's inspect_reply."""

    found: bool
    data: Annotated[dict[str, str], Field("By MIME type; `text/plain` is what `name?` prints.")]
    busy: Annotated[bool, Field("The rank runs a cell: it can only describe functions, classes and modules.")]


class CompleteRequest(TypedDict):
    """The body of POST .../complete."""

    code: Annotated[str, Field("The cell, at most 1 MiB.", maxLength=MAX_ASKED_CHARS)]
    cursor_pos: NotRequired[
        Annotated[int | None, Field("The cursor, in characters; the end.", minimum=0, maximum=MAX_ASKED_CHARS)]
    ]


class InspectRequest(CompleteRequest):
    """The body of POST .../inspect."""

    detail: NotRequired[
        Annotated[int, Field("0: as `name?`; 1: as `name??`, with the source.", minimum=0, maximum=1, default=0)]
    ]
