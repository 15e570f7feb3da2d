"""Child processes of a cell: text printed before them comes first, and they receive the cell's definitions.

The other process writes to the pipes at fd 1 and 2; unless text is synced with the agent before it starts, its text
could come first. Functions are wrapped because an audit hook in Python makes every `id()` five times slower.
"""

from __future__ import annotations

import _posixsubprocess
import functools
import multiprocessing
import os
import pickle
import subprocess
import sys
import types
from collections.abc import Callable
from multiprocessing.context import BaseContext, get_spawning_popen
from multiprocessing.pool import Pool
from multiprocessing.queues import Queue, SimpleQueue
from multiprocessing.reduction import ForkingPickler
from types import FrameType
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
    # Called by subprocess and multiprocessing; it runs no fork handlers.
    fork_exec = _wrap(_posixsubprocess.fork_exec, before)
    _posixsubprocess.fork_exec = fork_exec
    if hasattr(subprocess, "_fork_exec"):  # Python 3.11 and later keep their own reference
        subprocess._fork_exec = fork_exec


def fork_by_default() -> None:
    """Start workers by `fork` unless the user chooses otherwise, as Python did before 3.14.

    Since 3.14 a server process forks them, which does not have a cell's definitions: a DataLoader with a data set class
    from the notebook would fail. This only changes the default, so `set_start_method` still works once, as documented.
    """
    default: Any = multiprocessing.get_context.__self__  # type: ignore[attr-defined]
    if multiprocessing.get_start_method(allow_none=True) is None and hasattr(default, "_default_context"):
        default._default_context = multiprocessing.get_context("fork")


def send_by_value() -> None:
    """Send functions and classes of cells to spawned processes by value, with cloudpickle: they cannot import them.

    All else is pickled as usual, by name: a forked process has its own definitions, which it may have changed, and a
    definition in each message would take most of the time.
    """
    pid = os.getpid()
    spawns = _note_spawning_contexts()

    def reduce(_: ForkingPickler, obj: Any) -> Any:
        if not isinstance(obj, type | types.FunctionType) or obj.__module__ != "__main__" or os.getpid() != pid:
            return NotImplemented
        if not _may_go_to_spawned(spawns) or (data := _definition(obj)) is None:
            return NotImplemented
        if _named(obj.__qualname__) is not obj:  # a process that has this name has another object
            return pickle.loads, (data,)
        return eval, (_OWN_OR_SENT, {"name": obj.__qualname__, "data": data})

    ForkingPickler.reducer_override = reduce  # type: ignore[assignment]


# Evaluated in the other process, which may not have this package, but has the name if it was forked after all.
_OWN_OR_SENT = (
    "(lambda own: __import__('pickle').loads(data) if own is None else own)(__import__('functools').reduce("
    "lambda found, part: getattr(found, part, None), name.split('.'), __import__('sys').modules.get('__main__')))"
)


def _note_spawning_contexts() -> set[str]:
    """Return the start methods that do not fork the rank, filled as contexts of them are asked for.

    Before that, no queue and no process of theirs can be there.
    """
    used: set[str] = set()
    get_context = BaseContext.get_context

    @functools.wraps(get_context)
    def noting(self: BaseContext, method: Any = None) -> Any:
        if method in _SPAWNS:
            used.add(method)
        return get_context(self, method)

    BaseContext.get_context = noting  # type: ignore[method-assign]
    return used


_SPAWNS = ("spawn", "forkserver")


def _may_go_to_spawned(used: set[str]) -> bool:
    """Whether the object that is pickled now may be for a process that was not forked from this one."""
    if get_spawning_popen() is not None:
        return True
    if not used:
        return False
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if (lock := _CHANNELS.get(frame.f_code)) is not None:
            # No queue of another context can be given to a spawned process.
            return not getattr(lock(frame.f_locals), "_is_fork_ctx", False)
        frame = frame.f_back
    return True  # a connection, which may lead to any process


# The functions that pickle for a queue, each with a getter of the queue's lock, which has its context (Python 3.11.5).
_PICKLE: tuple[tuple[Any, Callable[[dict[str, Any]], Any]], ...] = (
    (getattr(Queue, "_feed", None), lambda names: names.get("writelock")),
    (getattr(SimpleQueue, "put", None), lambda names: getattr(names.get("self"), "_wlock", None)),
    (getattr(Pool, "_handle_tasks", None), lambda names: getattr(names.get("outqueue"), "_wlock", None)),
)
_CHANNELS = {function.__code__: lock for function, lock in _PICKLE if hasattr(function, "__code__")}


def _named(name: str) -> Any:
    """Return the object in `__main__` with a dotted name."""
    found: Any = sys.modules["__main__"]
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _definition(obj: Any) -> bytes | None:
    """Return the pickled definition; None if it can only be sent by name. Raises where a name is of no use."""
    is_spawning = get_spawning_popen() is not None
    try:
        data = by_value(obj)
    except Exception:  # its globals or attributes cannot be pickled
        if is_spawning:
            raise
        return None
    if data is None and is_spawning:
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
