"""What a profiled cell shows: where the time of each rank went, and which rank the others waited for.

Beside models.py: see there for what is generated from these types.
"""

from __future__ import annotations

from typing import Annotated, TypedDict

from jupyter_dist.protocol.field import Field, RankSet

PROFILE_MIME = "application/vnd.jupyter-dist.profile+json"
TRACES = "traces"  # in the folder of a group: a folder for each profiled cell, with a file for each rank
# For all ranks of a group together: more than Perfetto opens quickly.
MAX_TRACE_EVENTS = 800_000
MAX_RANK_EVENTS = 200_000
# Of one rank, compressed: many times what so many events take.
MAX_RANK_TRACE_BYTES = 16 << 20
UNKNOWN = "?"  # a process group whose ranks nothing names
MAX_COLLECTIVES = 1000  # that a rank reports of each cell


class WaitedFor(TypedDict):
    """A rank that others waited for in collectives."""

    rank: int
    seconds: float


class RankProfile(TypedDict):
    """Where the time of one rank went. The four parts add up to `seconds`."""

    rank: int
    seconds: Annotated[float, Field("Of the cell.")]
    computing: Annotated[float, Field("In torch's operators; of a device, its kernels.")]
    communicating: Annotated[float, Field("In collectives in which all ranks had arrived, while it computed nothing.")]
    waiting: Annotated[float, Field("In collectives before the last rank arrived, while it computed nothing.")]
    other: Annotated[float, Field("In Python, in reading data, asleep.")]
    waits_for: Annotated[list[WaitedFor], Field("The ranks that it waited for, longest first.")]
    last: Annotated[int, Field("In how many collectives it arrived last.")]
    kept_waiting: Annotated[float, Field("How long another rank waited for it, on average, in seconds.")]
    shift_seconds: Annotated[float, Field("Of its clock in the trace, for ranks on several machines.")]


class Profile(TypedDict):
    """The profile of a cell."""

    execution_id: str
    ranks: list[RankProfile]
    collectives: Annotated[int, Field("How many were compared.")]
    stragglers: Annotated[RankSet, Field("Ranks that the others waited for; empty if there are none.")]
    sentences: Annotated[list[str], Field("What stands out, and what is missing.")]
