"""Limits the connections and downloads that each user may have open, so that other users can have theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jupyter_dist.protocol.errors import JupyterDistError


class Cap:
    """Counts open connections or downloads by user."""

    def __init__(self, what: str, limit: int, setting: str) -> None:
        self._what = what
        self._limit = limit
        self._setting = setting
        self._open: Counter[str] = Counter()

    @contextmanager
    def one(self, handler: Any) -> Iterator[None]:
        """Count one for the user of the request while the block runs.

        Raises:
            JupyterDistError: `too_many`.
        """
        user = _user(handler)
        if self._open[user] >= self._limit:
            message = f"You have {self._limit} {self._what} open."
            raise JupyterDistError("too_many", message, f"Close some, or raise the limit ({self._setting}).")
        self._open[user] += 1
        try:
            yield
        finally:
            self._open[user] -= 1
            if not self._open[user]:
                del self._open[user]


def _user(handler: Any) -> str:
    # A user who only sends the token gets a new name with each request.
    return "" if handler.token_authenticated else str(handler.current_user.username)
