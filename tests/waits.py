"""How long a test waits: for a state, never for a time.

A test that asserts how soon something happens fails on a machine that is busy. What the product promises to do within
a second is measured by `make bench` (benchmarks/figures/faults.py); a test checks that it happens.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

# Many times what a busy machine needs; only a fault waits this long. Cells that must be ended sleep longer than this.
PATIENCE = 90.0
# For a cell, a command or a block of a page that may start a group: a server, its import of torch and the ranks are
# waited for one after the other.
PATIENCE_WITH_A_START = 3 * PATIENCE

# Code of a cell that no signal ends either, but that of the process.
HOLDS_THE_INTERPRETER = """import ctypes
lock, held = ctypes.PyDLL(None).pthread_mutex_lock, ctypes.create_string_buffer(64)
lock(held)
lock(held)"""

T = TypeVar("T")


def until(is_so: Callable[[], T], explain: Callable[[], object] = lambda: "it never came to be") -> T:
    """Wait until `is_so` returns something true, and return that; else fail with what `explain` returns."""
    began = time.monotonic()
    while not (found := is_so()):
        assert time.monotonic() < began + PATIENCE, explain()
        time.sleep(pause(time.monotonic() - began))
    return found


async def until_async(
    is_so: Callable[[], T | Awaitable[T]], explain: Callable[[], object] = lambda: "it never came to be"
) -> T:
    """`until` in a coroutine; `is_so` may be one, too."""
    began = time.monotonic()
    while True:
        found = is_so()
        if inspect.isawaitable(found):
            found = await found
        if found:
            return found
        assert time.monotonic() < began + PATIENCE, explain()
        await asyncio.sleep(pause(time.monotonic() - began))


def pause(waited: float) -> float:
    """Return how long to wait before asking again: what is asked needs the cores, too."""
    return min(max(0.02, waited / 10), 0.25)


@contextlib.contextmanager
def running(command: list[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A process whose standard output is read as text. It is killed after PATIENCE, so that no read waits longer."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
    limit = threading.Timer(PATIENCE, process.kill)
    limit.daemon = True
    limit.start()
    try:
        yield process
    finally:
        limit.cancel()
        end(process)


def end(process: subprocess.Popen[Any]) -> None:
    """Kill it and close its pipes. What it has started may hold them forever: nobody reads them to their end."""
    process.kill()  # no effect if it has ended
    process.wait(PATIENCE)
    for pipe in filter(None, (process.stdin, process.stdout, process.stderr)):
        with contextlib.suppress(OSError):  # what was not yet written to it
            pipe.close()


def read_until(process: subprocess.Popen[str], is_it: Callable[[str], bool]) -> str:
    """Read lines until one of them is it; return that."""
    read = []
    for line in iter(process.stdout.readline, ""):
        if is_it(line):
            return line
        read.append(line)
    raise AssertionError(f"the process ended and said only {read}")
