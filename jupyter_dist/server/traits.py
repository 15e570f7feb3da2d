"""The traits of settings, made of their rows, with a type that traitlets does not have."""

from __future__ import annotations

import math
from typing import Any, Literal, get_args, get_origin

from traitlets import Bool, Dict, Enum, Float, Int, List, TraitError, TraitType, Unicode

from jupyter_dist.protocol.field import OptionRow

MAX_SECONDS = 1e8  # three years; clocks of the system overflow beyond some time


class Seconds(Float[Any, Any]):
    """A duration. `inf` cannot be sent to other processes, and `nan` would pass the comparison with a minimum."""

    def validate(self, obj: Any, value: Any) -> Any:
        """Return the number; raise TraitError with what to write instead."""
        value = super().validate(obj, value)
        if not math.isfinite(value) or value > MAX_SECONDS:
            raise TraitError(f"{self.name} must be a number of seconds, at most {MAX_SECONDS:.0f}, not {value}.")
        return value


def setting_trait(row: OptionRow) -> TraitType[Any, Any]:
    """Return the trait of a setting. Numbers with a fraction are durations, with the limit of Seconds."""
    limits, text = row.option.keywords, row.option.setting
    if get_origin(row.type) is Literal:
        trait: TraitType[Any, Any] = Enum(list(get_args(row.type)), default_value=row.default, help=text)
    elif get_origin(row.type) is tuple:
        trait = List(Unicode(), help=text)
    elif row.type is float:
        trait = Seconds(row.default, min=limits.get("minimum"), help=text)
    elif row.type is int:
        trait = Int(row.default, min=limits.get("minimum"), max=limits.get("maximum"), help=text)
    elif row.type in (bool, str):
        trait = {bool: Bool, str: Unicode}[row.type](row.default, help=text)
    else:
        trait = Dict(help=text)
    return trait.tag(config=True)
