"""The query arguments of operations, with their limits: each becomes an argument of the clients' methods."""

from __future__ import annotations

from typing import Annotated, TypedDict

from jupyter_dist.protocol.field import Field

from .requests import Expression
from .specs import MAX_SEQ

MAX_WAIT_SECONDS = 300
MAX_SAMPLES = 1200
DEFAULT_SAMPLES = 600
MAX_HISTORY = 2000
DEFAULT_HISTORY = 500
MAX_TAIL_BYTES = 8 << 20
DEFAULT_TAIL_BYTES = 256 << 10

Wait = Annotated[float, Field(f"Seconds, 0 to {MAX_WAIT_SECONDS}.", minimum=0, maximum=MAX_WAIT_SECONDS, default=0)]


class StatusQuery(TypedDict, total=False):
    """How long to wait for a change of a group."""

    wait: Wait
    not_state: Annotated[str, Field("Answer once the group has left this state.", maxLength=20)]


class ViewQuery(TypedDict, total=False):
    """How long to wait for the end of an execution."""

    wait: Wait


class RanksQuery(TypedDict, total=False):
    """Which ranks to ask."""

    ranks: Expression


class SamplesQuery(TypedDict, total=False):
    """Which samples to return."""

    since: Annotated[float, Field("Seconds since the epoch: only later samples.", minimum=0, maximum=1e11, default=0)]
    seconds: Annotated[float, Field("Only the last seconds, by the server's clock.", minimum=0, maximum=1e9)]
    limit: Annotated[
        int, Field(f"How many, 1 to {MAX_SAMPLES}.", minimum=1, maximum=MAX_SAMPLES, default=DEFAULT_SAMPLES)
    ]


class HistoryQuery(TypedDict, total=False):
    """How many cells to return."""

    number: Annotated[
        int,
        Field(
            "How many cells. Together at most 4 MiB of code.", minimum=1, maximum=MAX_HISTORY, default=DEFAULT_HISTORY
        ),
    ]


class LogQuery(TypedDict, total=False):
    """Which part of a log to return."""

    tail_bytes: Annotated[
        int,
        Field(
            f"Bytes of records, up to {MAX_TAIL_BYTES}.", minimum=1, maximum=MAX_TAIL_BYTES, default=DEFAULT_TAIL_BYTES
        ),
    ]
    before: Annotated[int, Field("Only records before this one.", minimum=1, maximum=MAX_SEQ)]
