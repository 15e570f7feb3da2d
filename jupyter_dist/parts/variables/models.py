"""The variables of ranks, and what holds their memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypedDict

from jupyter_dist.protocol.field import Field, RankSet
from jupyter_dist.protocol.models.differences import VariableOnRank
from jupyter_dist.protocol.models.memory import MemoryHolder
from jupyter_dist.protocol.wire.requests import Expression

if TYPE_CHECKING:
    # Agent and ranks only have the standard library of Python 3.10, which lacks this name; they never use it.
    from typing_extensions import NotRequired

MAX_NAME_CHARS = 200


class HeldMemory(TypedDict):
    """What holds the memory of a rank."""

    rank: int
    bytes: Annotated[int, Field("Of all tensors, arrays and large texts that something holds, each storage once.")]
    devices: Annotated[dict[str, int], Field("The same by device.")]
    resident_bytes: Annotated[int, Field("Of the process.")]
    allocated_bytes: Annotated[int | None, Field("Of tensors on the device; null on CPU.")]
    reserved_bytes: Annotated[int | None, Field("The allocated bytes, and what torch keeps for later tensors.")]
    peak_bytes: Annotated[int | None, Field("The most that was allocated.")]
    holders: Annotated[list[MemoryHolder], Field("The largest first; at most 100.")]
    left_out: Annotated[int, Field("How many holders are not listed.")]
    is_whole: Annotated[bool, Field("Whether everything was looked at; lists of many objects are not.")]


class VariableRow(VariableOnRank):
    """What a variable is on ranks that have it alike."""

    ranks: RankSet


class Variable(TypedDict):
    """A name, and the variable behind it on the ranks."""

    name: str
    rows: list[VariableRow]
    missing: Annotated[RankSet, Field("Ranks without this variable.")]


class VariablesModel(TypedDict):
    """The variables that cells made on ranks."""

    ranks: Annotated[RankSet, Field("Ranks that answered.")]
    busy: Annotated[RankSet, Field("Ranks that run a cell; they are not asked.")]
    silent: Annotated[RankSet, Field("Ranks that are dead, starting, or did not answer.")]
    left_out: Annotated[int, Field("How many names of a rank are not listed.")]
    variables: list[Variable]
    memory: Annotated[list[HeldMemory], Field("By rank.")]


class CompareRequest(TypedDict):
    """The body of POST .../compare."""

    name: Annotated[
        str,
        Field(
            "A variable, or a part of it by attributes and items: `model`, `model.layer.weight`, `states[0]`, "
            "`model.state_dict()`. Nothing is computed.",
            minLength=1,
            maxLength=MAX_NAME_CHARS,
        ),
    ]
    ranks: NotRequired[Expression]
