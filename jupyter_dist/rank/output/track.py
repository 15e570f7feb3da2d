"""`track(loss=x)`: numbers for the curves of a cell, exactly, as lines of text, which every log and reader has."""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Mapping
from typing import Any

from jupyter_dist.rank.guard.own import time

INTERRUPTIBLE = True  # called by cells

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.@/%-]*(?: [A-Za-z_][A-Za-z0-9_.@/%-]*){0,2}")

MAX_STEPS = 200
_steps: deque[tuple[float, int]] = deque(maxlen=MAX_STEPS)  # the last steps, and when they were tracked (monotonic)


def steps_between(since: float, until: float) -> list[tuple[float, int]]:
    """Return the steps tracked between two moments of the monotonic clock, with their times (any thread)."""
    return [(at, step) for at, step in list(_steps) if since <= at < until]


def track(values: Mapping[str, Any] | None = None, /, *, step: int | None = None, **named: Any) -> None:
    """Add numbers to this cell's curves: `track(loss=loss, lr=0.1, step=i)`, or `track({"val/loss": loss})`.

    Args:
        values: numbers by name, for names that are no Python names.
        step: the step of these numbers; without it, the numbers are counted.
        named: numbers; tensors and arrays of one element, too.

    Raises:
        TypeError: something is no number.
        ValueError: something has several elements, or a name cannot be distinguished from text.
    """
    numbers = {**(values or {}), **named}
    if not numbers:
        raise TypeError("track() takes numbers with names: track(loss=loss, step=step).")
    parts = [] if step is None else [f"step={int(step)}"]
    if step is not None:
        _steps.append((time.monotonic(), int(step)))
    parts += [f"{_checked(name)}={_number(name, value)!r}" for name, value in numbers.items()]
    # One write: a line of another thread does not come in between.
    sys.stdout.write("  ".join(parts) + "\n")


def _checked(name: Any) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"track() cannot use the name {name!r}: names begin with a letter and have no '=' or comma.")
    return name


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError) as err:
        kind = ValueError if hasattr(value, "__len__") and not isinstance(value, str) else TypeError
        raise kind(f"track({name}=...) takes a number, or a tensor of one element: {err}.") from err
