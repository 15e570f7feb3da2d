"""The option: whether the cells of a group are checked, from its begin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from jupyter_dist.protocol.field import OptionField


@dataclass(frozen=True, kw_only=True)
class ChecksOptions:
    """Whether training is checked."""

    checks: Annotated[
        bool,
        OptionField(
            "Whether the training in the cells of new groups is checked: ranks compare batches, gradients and"
            " parameters in some steps, within 0.5 % of the time.",
            start="Whether the training in cells is checked. By default the server's setting.",
            label="Check training",
        ),
    ] = True
