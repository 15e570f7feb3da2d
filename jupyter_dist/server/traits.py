"""Trait types of our settings that traitlets does not have."""

from __future__ import annotations

import math
from typing import Any

from traitlets import Float, TraitError

MAX_SECONDS = 1e8  # three years; clocks of the system overflow beyond some time


class Seconds(Float[Any, Any]):
    """A duration. `inf` cannot be sent to other processes, and `nan` would pass the comparison with a minimum."""

    def validate(self, obj: Any, value: Any) -> Any:
        """Return the number; raise TraitError with what to write instead."""
        value = super().validate(obj, value)
        if not math.isfinite(value) or value > MAX_SECONDS:
            raise TraitError(f"{self.name} must be a number of seconds, at most {MAX_SECONDS:.0f}, not {value}.")
        return value
