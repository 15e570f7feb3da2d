"""Syncs printed text with the agent before Python code starts another process or exits.

The other process writes to the pipes at fd 1 and 2; without this its text could come first. Functions are wrapped
because an audit hook in Python makes every `id()` five times slower.
"""

from __future__ import annotations

import _posixsubprocess
import functools
import multiprocessing
import os
import subprocess
from collections.abc import Callable
from typing import Any

INTERRUPTIBLE = True  # cells run and wait below these functions


def install(before: Callable[[], None]) -> None:
    """Call `before` ahead of every fork, spawn, exec and system(), and of an abrupt exit."""
    os.register_at_fork(before=before)
    for name in ("system", "posix_spawn", "posix_spawnp", "execv", "execve", "_exit", "abort"):
        setattr(os, name, _wrap(getattr(os, name), before))
    # What subprocess and multiprocessing call; it runs no fork handlers.
    fork_exec = _wrap(_posixsubprocess.fork_exec, before)
    _posixsubprocess.fork_exec = fork_exec
    if hasattr(subprocess, "_fork_exec"):  # Python 3.11 and later keep their own reference
        subprocess._fork_exec = fork_exec


def fork_by_default() -> None:
    """Start workers by `fork` unless the user chooses otherwise, as Python did before 3.14.

    Since 3.14 a server process forks them, which does not know what a cell defined: a DataLoader with a data set class
    from the notebook would fail. This only changes the default, so `set_start_method` still works once, as documented.
    """
    default: Any = multiprocessing.get_context.__self__  # type: ignore[attr-defined]
    if multiprocessing.get_start_method(allow_none=True) is None and hasattr(default, "_default_context"):
        default._default_context = multiprocessing.get_context("fork")


def _wrap(function: Callable[..., Any], before: Callable[[], None]) -> Callable[..., Any]:
    @functools.wraps(function)
    def starting(*args: Any, **kwargs: Any) -> Any:
        before()
        return function(*args, **kwargs)

    return starting
