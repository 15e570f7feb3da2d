"""When an idle group is parked by itself: after a time without use, with a notice before. Pure."""

from __future__ import annotations

from typing import Literal

NOTICE_SECONDS = 60.0


class IdleClock:
    """Counts the seconds since a group was last used."""

    def __init__(self, park_after_seconds: float) -> None:
        self._park_after_seconds = park_after_seconds
        self._used_at: float | None = None
        self._has_notice = False

    @property
    def notice_seconds(self) -> float:
        """Return how long before it is parked users get a notice."""
        return min(NOTICE_SECONDS, self._park_after_seconds / 2)

    def used(self, now: float) -> None:
        """Begin to count again."""
        self._used_at, self._has_notice = now, False

    def due(self, now: float) -> Literal["notice", "park"] | None:
        """Return the step that is due now; a notice only once. A group without a limit is never parked by itself."""
        if self._park_after_seconds <= 0:
            return None
        if self._used_at is None:
            self._used_at = now
        left = self._used_at + self._park_after_seconds - now
        if left <= 0 and self._has_notice:
            self.used(now)  # if it cannot be parked, the next try is as much later
            return "park"
        if left <= self.notice_seconds and not self._has_notice:
            self._has_notice = True
            return "notice"
        return None
