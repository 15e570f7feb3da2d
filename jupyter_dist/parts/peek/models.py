"""Types: the values of names on ranks, read while a cell runs."""

from __future__ import annotations

from typing import Annotated, TypedDict

from jupyter_dist.protocol.field import Field, RankSet
from jupyter_dist.protocol.models.sentences import Words


class PeekedValue(TypedDict):
    """A value, as it was at one moment on some ranks."""

    ranks: Annotated[RankSet, Field("The ranks that have it alike.")]
    name: str
    type: Annotated[str, Field("The name of its class.")]
    shape: Annotated[str, Field("Of a tensor or an array; of a container, how many values it has.")]
    dtype: str
    device: str
    value: Annotated[str, Field("As text: numbers, short texts, and the first numbers of tensors on the CPU.")]
    place: Annotated[str, Field("The running function that has the name, with its line; empty: a variable of cells.")]
    place_words: list[Words] | None


class SilentRank(TypedDict):
    """A rank that did not answer."""

    rank: int
    why: str
    why_words: list[Words] | None


class Peeked(TypedDict):
    """The values of names on ranks."""

    values: list[PeekedValue]
    missing: Annotated[dict[str, RankSet], Field("Names that ranks do not have now.")]
    silent: Annotated[list[SilentRank], Field("Ranks that did not answer, and what keeps them from it.")]
