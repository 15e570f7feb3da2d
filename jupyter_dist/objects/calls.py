"""Calls a function on a rank, with arguments and results in files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .files import load, save


def bring(path: str) -> None:
    """Define the notebook's classes that this rank does not have."""
    load(path)


def call(function: Callable[..., Any] | None, given_path: str, value_paths: Sequence[str]) -> None:
    """Call the function, or the one sent with its arguments, and save its result."""
    given = load(given_path)
    value = (function or given["function"])(*given["args"], **given["kwargs"])
    save({"value": value}, value_paths)
