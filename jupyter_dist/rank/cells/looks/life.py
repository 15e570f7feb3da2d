"""Finds activity besides the main thread in a waiting rank: its threads, its event loop, a timer. Side thread.

A rank that waits, or that is idle, gets no further by the code that waits. So before ranks are reported to wait
forever, this module looks for all other code that could call a collective, or end the wait.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import platform
import sys
import sysconfig
from collections.abc import Callable
from types import FrameType, FunctionType, MethodType
from typing import Any

from jupyter_dist.rank.collectives.diagnosis import mainthread, waiting
from jupyter_dist.rank.guard import folders
from jupyter_dist.rank.guard.frames import of_main_thread, of_threads
from jupyter_dist.rank.guard.handlers import Handlers
from jupyter_dist.rank.guard.own import asyncio, os, signal, threading

_PATHS = sysconfig.get_paths()
_LIBRARIES = tuple({_PATHS[name] + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_DISTRIBUTED = os.path.join(mainthread.TORCH, "distributed") + os.sep  # checkpoints are saved in threads there
_STDLIB = _PATHS["stdlib"]
# Functions of threads of the standard library that call the user's functions, and whether they have any to call.
_CALL_BACK: dict[tuple[str, str], Callable[[FrameType], bool]] = {
    ("concurrent/futures/thread.py", "run"): lambda _: True,  # a function in C has no frame
    ("concurrent/futures/process.py", "run"): lambda frame: bool(frame.f_locals["self"].pending_work_items),
    ("multiprocessing/pool.py", "_handle_results"): lambda frame: any(
        getattr(job, "_callback", None) or getattr(job, "_error_callback", None)
        for job in list(frame.f_locals["cache"].values())
    ),
    ("socketserver.py", "serve_forever"): lambda _: True,
}
# nanosleep, clock_nanosleep, wait4 and waitid, by their numbers in /proc/PID/syscall.
_SLEEPS = {"x86_64": (35, 230, 61, 247), "aarch64": (101, 115, 260, 95)}
_OWN_DESCRIPTORS = 1  # the event loop's own


def comes_by_itself(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any] | None, is_idle: bool) -> str | None:
    """Return the first source of activity besides the main thread: "a thread", "a timer", "its event loop"; or None.

    Args:
        loop: the main thread's event loop, which runs what cells have left behind while the rank is idle.
        task: the cell that awaits, which is no sign of other life.
        is_idle: whether no cell runs.
    """
    apart = (threading.main_thread().ident, threading.get_ident())
    threads = dict(vars(threading)["_active"])  # without the lock, which the main thread may hold
    frames = of_threads()
    if any(_may_act(threads.get(ident), frame) for ident, frame in frames.items() if ident not in apart):
        return "a thread"
    if signal.getitimer(signal.ITIMER_REAL)[0] > 0:
        return "a timer"
    if is_idle and any(map(_may_call, map(Handlers.of, range(1, signal.NSIG)))):
        return "the handler of a signal"
    return "its event loop" if is_idle and _is_loop_used(loop, task) else None


def awaits_a_thread(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any] | None) -> bool:
    """Whether the cell awaits, and only a thread can wake it."""
    return task is not None and not task.done() and not _is_loop_used(loop, task)


def sleeps() -> bool:
    """Whether the main thread sleeps for a time, or waits for a process that it has started."""
    frame = of_main_thread()
    if frame is not None and frame.f_code.co_filename.startswith(folders.RANK):
        return False  # our wait for a key of a store, in slices
    return mainthread.main_thread_syscall()[0] in _SLEEPS.get(platform.machine(), ())


def _may_act(thread: threading.Thread | None, frame: FrameType) -> bool:
    """Whether a thread runs code of the user, or will; a thread that waits in a collective does not count."""
    if waiting.is_in_distributed(frame):
        return False
    if issubclass(type(thread), threading.Timer) and _is_users(vars(thread).get("function")):
        return True
    return any(map(_is_alive, _frames(frame)))


def _frames(frame: FrameType | None) -> list[FrameType]:
    found = []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return found


def _is_alive(frame: FrameType) -> bool:
    filename = frame.f_code.co_filename
    if _is_users_file(filename):
        return True
    calls_back = _CALL_BACK.get((os.path.relpath(filename, _STDLIB), frame.f_code.co_name))
    return calls_back is not None and calls_back(frame)


def _may_call(handler: Any) -> bool:
    """Whether the handler of a signal is the user's, and calls anything: many only set a flag."""
    handler = _inner(handler)
    if type(handler) is FunctionType:
        calls = (one.opname for one in dis.get_instructions(handler) if one.opname.startswith("CALL"))
        return _is_users_file(handler.__code__.co_filename) and any(calls)
    module = sys.modules.get(type(handler).__module__)
    return callable(handler) and _is_users_file(getattr(module, "__file__", None) or folders.PACKAGE)


def _inner(function: Any) -> Any:
    """Return the function that a method or a partial function calls."""
    while type(function) in (functools.partial, MethodType):
        function = function.func if type(function) is functools.partial else function.__func__
    return function


def _is_users(function: Any) -> bool:
    """Whether the function of a timer is the user's, or may be: a function in C has no file. Does not run it."""
    function = _inner(function)
    return type(function) is not FunctionType or _is_users_file(function.__code__.co_filename)


def _is_users_file(filename: str) -> bool:
    if filename.startswith(_DISTRIBUTED):
        return True
    is_library = filename.startswith((*_LIBRARIES, folders.PACKAGE, "<frozen"))
    return not is_library and "site-packages" not in filename and "dist-packages" not in filename


def _is_loop_used(loop: Any, task: asyncio.Task[Any] | None) -> bool:
    """Whether the loop has a call, a task or a descriptor to wait for. It may be changed at the same time."""
    with contextlib.suppress(RuntimeError, AttributeError):
        if any(not handle.cancelled() for handle in list(getattr(loop, "_scheduled", ()))):
            return True
        if any(not other.done() and other is not task for other in asyncio.all_tasks(loop)):
            return True
        selector = getattr(loop, "_selector", None)
        return selector is not None and len(selector.get_map() or ()) > _OWN_DESCRIPTORS
    return True
