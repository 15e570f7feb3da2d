"""Processes that a cell starts: printed text comes first, and they get what the cell defined.

The other process writes to the pipes at fd 1 and 2; unless text is synced with the agent before it starts, its text
could come first. Functions are wrapped because an audit hook in Python makes every `id()` five times slower.
"""

from __future__ import annotations

import _posixsubprocess
import functools
import multiprocessing
import os
import subprocess
import types
from collections.abc import Callable
from multiprocessing.context import get_spawning_popen
from multiprocessing.reduction import ForkingPickler
from typing import Any

from jupyter_dist.objects.pickling import by_value
from jupyter_dist.protocol.errors import JupyterDistError

INTERRUPTIBLE = True  # cells run and wait below these functions


def install(before: Callable[[], None], begin_fork: Callable[[], None], end_fork: Callable[[], None]) -> None:
    """Call `before` ahead of every spawn, exec and system(), and of an abrupt exit; the others around each fork."""
    # Ours is called first before a fork, and last after it.
    os.register_at_fork(before=begin_fork, after_in_parent=end_fork)
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


def send_by_value() -> None:
    """Let spawned processes have functions and classes of cells, which they cannot import: by value, with cloudpickle.

    A process that has the name itself, because it was forked or has run the script, uses its own, as with plain pickle.
    """
    pid = os.getpid()

    def reduce(_: ForkingPickler, obj: Any) -> Any:
        is_of_cell = isinstance(obj, type | types.FunctionType) and obj.__module__ == "__main__"
        if not is_of_cell or os.getpid() != pid or (data := _definition(obj)) is None:
            return NotImplemented
        return eval, (_OWN_OR_SENT, {"name": obj.__qualname__, "data": data})

    ForkingPickler.reducer_override = reduce  # type: ignore[assignment]


# Evaluated in the other process, which may not have this package.
_OWN_OR_SENT = "getattr(__import__('sys').modules.get('__main__'), name, None) or __import__('pickle').loads(data)"


def _definition(obj: Any) -> bytes | None:
    """Return the pickled definition; None if it can only be sent by name. Raises where a name is of no use."""
    data = by_value(obj)
    if data is None and get_spawning_popen() is not None:
        message = f"A cell defines '{obj.__qualname__}', and a spawned process cannot import it from there."
        hint = "Define it in a module, start the process with 'fork', or pip install cloudpickle."
        raise JupyterDistError("cannot_send", message, hint)
    return data


def _wrap(function: Callable[..., Any], before: Callable[[], None]) -> Callable[..., Any]:
    @functools.wraps(function)
    def starting(*args: Any, **kwargs: Any) -> Any:
        before()
        return function(*args, **kwargs)

    return starting
