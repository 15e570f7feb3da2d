"""What the API sends about values on ranks, and about tensors and other values that are not the same.

Beside models.py: see there for what is generated from these types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from jupyter_dist.protocol.field import Field, RankSet

if TYPE_CHECKING:
    # Agent and ranks only have the standard library of Python 3.10, which lacks this name; they never use it.
    from typing_extensions import NotRequired


class VariableOnRank(TypedDict):
    """What a variable is on a rank. Read from its type: no code of its class runs."""

    type: str
    kind: Annotated[str, Field("`tensor`, `array`, `module`, `container`, `object`; empty of plain values.")]
    shape: Annotated[str, Field("[2, 3]; the length of a container or text; the number of tensors of a module.")]
    dtype: str
    device: Annotated[str, Field("Without its index if it is the rank's own.")]
    bytes: Annotated[
        int | None,
        Field("Of the storages that it holds, each once: a view holds the whole one. Null of what has no such size."),
    ]
    shares: NotRequired[Annotated[list[str], Field("What else holds a part of this memory; at most 5.")]]
    parts: NotRequired[
        Annotated[dict[str, int], Field("Bytes of `parameters`, `buffers`, `gradients` and `state` among them.")]
    ]
    value: Annotated[
        str,
        Field(
            "Of numbers, texts and tensors of one element; of containers and objects their first values; of modules "
            "`eval`, and how many parameters have no gradients. About 80 characters at most."
        ),
    ]
    content: NotRequired[
        Annotated[
            str, Field("A checksum of all that was looked at inside; two ranks with another one differ. Empty: none.")
        ]
    ]
    unseen: NotRequired[
        Annotated[str, Field("What the checksum does not have: the numbers of tensors, classes that cannot be read.")]
    ]


class TensorDifference(TypedDict):
    """A tensor or another value that is not the same on all ranks."""

    path: Annotated[str, Field("Within the variable, as `layer.weight`; empty for the variable itself.")]
    what: Annotated[
        Literal["values", "shape", "placement", "value", "missing"],
        Field(
            "`values`: numbers of a tensor. `shape`: also its dtype. `placement`: how a DTensor is divided, or a part "
            "that does not fit this division. `value`: a value other than a tensor, see `found`. `missing`: not on "
            "these ranks."
        ),
    ]
    ranks: Annotated[RankSet, Field("The ranks that differ from the reference in the same way.")]
    reference: Annotated[RankSet, Field("The largest set of ranks that have it alike.")]
    shape: list[int]
    dtype: str
    max_abs: Annotated[float | None, Field("The greatest finite difference of an element; null if there is none.")]
    nonfinite: Annotated[bool, Field("Whether a differing element is nan or inf on one of them.")]
    different: Annotated[int, Field("Number of elements that differ, of those compared; 0 if they are further on.")]
    compared: Annotated[int, Field("Number of elements compared, from the first on; 0 beyond the limit of bytes.")]
    elements: Annotated[int, Field("Number of elements of the tensor.")]
    found: Annotated[str, Field("The value on these ranks, as text; empty for tensors that differ in numbers.")]
    expected: Annotated[str, Field("The value on the reference ranks.")]


class NotCompared(TypedDict):
    """A part of a variable of which it is not known whether ranks have it alike."""

    path: Annotated[str, Field("As of a difference.")]
    ranks: RankSet
    why: Annotated[str, Field("A reason, as `it is on the meta device, without numbers`.")]


class ComparisonModel(TypedDict):
    """The differences of a variable between ranks: by checksums of all, by elements of the tensors that differ."""

    name: Annotated[str, Field("As it was asked for.")]
    outcome: Annotated[
        Literal["equal", "differs", "not_compared"],
        Field(
            "`equal`: everything was compared, and is the same. `differs`: something is not. `not_compared`: nothing "
            "that was compared differs, but some was not: see `not_compared`, `left_out`, `busy` and `silent`."
        ),
    ]
    ranks: Annotated[RankSet, Field("Ranks that were compared.")]
    missing: Annotated[RankSet, Field("Ranks that do not have the variable.")]
    busy: Annotated[RankSet, Field("Ranks that run a cell, or whose device is busy: not compared, or not to the end.")]
    silent: RankSet
    tensors: Annotated[int, Field("Number of tensors compared.")]
    sharded: Annotated[int, Field("Tensors among them that are divided over ranks: their parts are meant to differ.")]
    values: Annotated[int, Field("Number of other values compared: numbers, texts, options of a module.")]
    bytes: Annotated[int, Field("Of these tensors, on one rank.")]
    differences: Annotated[list[TensorDifference], Field("At most 500.")]
    not_compared: Annotated[list[NotCompared], Field("At most 100.")]
    left_out: Annotated[int, Field("How many more differences and parts that were not compared there are.")]
