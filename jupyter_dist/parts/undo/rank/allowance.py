"""How much time undo may take before and after cells: about 5 % of the time that cells have taken."""

from __future__ import annotations

from typing import Any

FREE = 0.25  # seconds of the processor that a look may take in any cell
_AT_FIRST, _MOST, _SHARE = 2.0, 60.0, 0.05


class Allowance:
    """Earned by cells that run, spent by looks at many objects. What was too much is tried again when there is more."""

    def __init__(self) -> None:
        self._seconds = _AT_FIRST
        self._too_large: dict[str, tuple[int, float]] = {}  # by name: the object, and the seconds that it cost in vain

    def limit(self) -> float:
        """Return how many seconds a look may take now."""
        return FREE + self._seconds

    def earn(self, seconds: float) -> None:
        """Add the share of a cell that ran for some seconds."""
        self._seconds = min(_MOST, self._seconds + _SHARE * seconds)

    def spend(self, seconds: float) -> None:
        """Take off what a look has taken."""
        self._seconds = max(0.0, self._seconds - max(0.0, seconds - FREE))

    def failed(self, name: str, value: Any, seconds: float) -> None:
        """Remember the name whose objects were too many."""
        self._too_large[name] = (id(value), seconds)

    def refuses(self, name: str, value: Any) -> bool:
        """Whether a look at a name would only fail again."""
        known = self._too_large.get(name)
        if known is None:
            return False
        if known[0] == id(value) and self.limit() < 2 * known[1]:
            return True
        del self._too_large[name]
        return False
