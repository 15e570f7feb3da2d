"""Calls the user's code from ours. Below this frame an interrupt may be raised, as in a cell (cells/interrupt.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

CALLS_USER_CODE = True


def call(function: Callable[..., Any], *args: Any) -> Any:
    """Call a user's function; return its result, or raise its exception."""
    return function(*args)
