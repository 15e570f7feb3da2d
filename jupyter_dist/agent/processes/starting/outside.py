"""Looks from outside at a rank's process that does not answer: by /proc, and by the stacks that it writes at a signal.

Its side thread needs the GIL to answer, which C code may hold for as long as it likes. The signal's handler is
faulthandler's, in C: it writes file, line and function of all threads without the GIL. A signal ends a sleep in C
early, so only a process that does not answer gets one, and one that sleeps only after it has been silent for long.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.wire.places import is_library
from jupyter_dist.protocol.wire.specs import SIDE_THREAD, STACK_FILE, STACK_SIGNAL
from jupyter_dist.system.processes import read_process, signal_if_caught

from . import locks

WATCH_SECONDS = 0.06  # in which faults and switches of its main thread are counted
WRITE_SECONDS, POLL_SECONDS = 0.3, 0.004
LONG_SECONDS = 10.0  # of silence: then a sleep in C is ended to find its line
MAX_BYTES = 256 << 10
MAX_FRAMES = 100
MANY_FAULTS = 20  # pages read from a disk meanwhile
GIL_SWITCHES = 4  # a thread that waits for the GIL wakes up every 5 ms
_EXITING = 0x4  # PF_EXITING
_FRAME = re.compile(r'  File "(.*)", line (\d+),? in (.*)')
_COLLECTS = "  Garbage-collecting"


class _Process(NamedTuple):
    """The main thread of a process, as /proc has it."""

    state: str
    flags: int
    num_faults: int  # pages that were read from a disk
    num_switches: int  # how often it has waited
    waits_in: str  # the kernel's function
    num_side_switches: int  # how often its side thread has waited

    @property
    def sleeps(self) -> bool:
        """Whether a signal would end its system call for good."""
        return any(name in self.waits_in for name in ("nanosleep", "poll", "select", "sigtimedwait", "pause"))


class SeenOutside(NamedTuple):
    """What a process does that does not answer."""

    does: str  # "is stopped, by a signal or a debugger", to follow its name
    frames: list[dict[str, Any]]  # outermost first, as in the answer to `stack`; empty if they are not known


async def look(pid: int, started: int, seconds: float = 0.0, knows_line: bool = False) -> SeenOutside | None:
    """Look at a silent process; None if it has ended, or if nothing keeps it from answering.

    Args:
        pid: the process.
        started: when it has started, so that no other process is signalled.
        seconds: for how long it is known not to answer.
        knows_line: whether its line is known from an earlier look; then it is not signalled where it waits.
    """
    before = _read(pid)
    if before is None:
        return None
    if (does := _without_signal(before)) is not None:
        return SeenOutside(does, [])
    await asyncio.sleep(WATCH_SECONDS)
    now = _read(pid)
    if now is None:
        return None
    if now.num_faults - before.num_faults >= MANY_FAULTS:
        return SeenOutside(say("reads its memory back from a disk"), [])
    if now.num_side_switches - before.num_side_switches < GIL_SWITCHES:
        return None  # it gets no core, or is about to answer
    is_asked = now.state == "R" or (not knows_line and (not now.sleeps or seconds >= LONG_SECONDS))
    threads, collects = await _stacks(pid, started) if is_asked else ([], False)
    main_waits = now.state == "S" and now.num_switches - before.num_switches >= GIL_SWITCHES
    return _seen(pid, now, main_waits, threads, collects)


async def line_if_running(pid: int, started: int) -> list[dict[str, Any]]:
    """Return the frames of a process's main thread, outermost first, if that computes now; none otherwise."""
    found = read_process(pid)
    if found is None or found.state != "R":
        return []
    threads, _ = await _stacks(pid, started)
    return threads[-1] if threads else []


def _seen(
    pid: int, now: _Process, main_waits: bool, threads: list[list[dict[str, Any]]], collects: bool
) -> SeenOutside:
    main = threads[-1] if threads else []
    does: str
    if collects:
        does = say("collects garbage, which holds the GIL")
    elif main_waits:  # for the GIL, too
        others = [one for one in threads[:-1] if any(not is_library(frame["file"]) for frame in one)]
        main = others[0] if len(others) == 1 else []
        does = say("has another thread that holds the GIL")
    elif now.state == "R":
        does = say("holds the GIL in C code that computes")
    elif "futex" in now.waits_in:
        if locks.waits_for_allocator(pid):
            does = say("holds the GIL in C code that waits for a lock of the memory allocator")
        else:
            does = say("holds the GIL in C code that waits for a lock")
    elif now.sleeps:
        does = say("holds the GIL in C code that sleeps")
    else:
        does = _waiting(say("holds the GIL in C code that waits"), now)
    own = [frame for frame in main if not is_library(frame["file"])]
    in_function = own and not own[-1]["function"].startswith("<")
    return SeenOutside(say("%1, in %2", does, own[-1]["function"]) if in_function else does, main)


def _without_signal(process: _Process) -> str | None:
    """Describe a process that would not handle a signal; None otherwise."""
    if process.flags & _EXITING or process.state == "Z":
        return say("is ending")
    if process.state in "Tt":
        return say("is stopped, by a signal or a debugger")
    if process.state == "D":
        return _waiting(say("waits in the kernel for a disk, a network file system or memory"), process)
    return None


def _waiting(does: str, process: _Process) -> str:
    """Add the kernel's function to what a process does."""
    return say("%1 (%2)", does, process.waits_in) if process.waits_in else does


def _read(pid: int) -> _Process | None:
    try:
        fields = _text(f"/proc/{pid}/task/{pid}/stat").rpartition(")")[2].split()
        waits_in = ""
        with contextlib.suppress(OSError):
            waits_in = _text(f"/proc/{pid}/wchan").strip("0\n")
        switches = _num_switches(pid, pid), sum(_num_switches(pid, thread) for thread in _side_threads(pid))
        return _Process(fields[0], int(fields[6]), int(fields[9]), switches[0], waits_in, switches[1])
    except (OSError, IndexError):
        return None


def _num_switches(pid: int, thread: int) -> int:
    with contextlib.suppress(OSError, IndexError):
        status = _text(f"/proc/{pid}/task/{thread}/status")
        return int(status.split("\nvoluntary_ctxt_switches:")[1].split()[0])
    return 0


def _side_threads(pid: int) -> Iterator[int]:
    for thread in map(int, os.listdir(f"/proc/{pid}/task")):
        with contextlib.suppress(OSError):
            if _text(f"/proc/{pid}/task/{thread}/comm").strip() == SIDE_THREAD:
                yield thread


def _text(path: str) -> str:
    return Path(path).read_text(errors="replace")


async def _stacks(pid: int, started: int) -> tuple[list[list[dict[str, Any]]], bool]:
    """Return the frames of all threads, the main thread's last, and whether the garbage collector runs."""
    path = next(_stack_files(pid), None)
    if path is None:
        return [], False
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return [], False
    try:
        os.ftruncate(file, 0)
        if not signal_if_caught(pid, started, STACK_SIGNAL):
            return [], False
        return _parsed(await _written(file))
    finally:
        os.close(file)


def _stack_files(pid: int) -> Iterator[str]:
    folder = f"/proc/{pid}/fd"
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            with contextlib.suppress(OSError):
                if os.readlink(f"{folder}/{name}").startswith(f"/memfd:{STACK_FILE}"):
                    yield f"{folder}/{name}"


async def _written(file: int) -> str:
    """Read the output of the handler, when it grows no more; empty if the handler does not run."""
    loop = asyncio.get_running_loop()
    size, until = 0, loop.time() + WRITE_SECONDS
    while loop.time() < until:
        await asyncio.sleep(POLL_SECONDS)
        before, size = size, os.fstat(file).st_size
        if size and size == before:
            break
    return os.pread(file, MAX_BYTES, 0).decode(errors="replace")


def _parsed(text: str) -> tuple[list[list[dict[str, Any]]], bool]:
    threads: list[list[dict[str, Any]]] = []
    for line in text.splitlines():
        if line.startswith(("Thread ", "Current thread ")):
            threads.append([])
        elif threads and (found := _FRAME.fullmatch(line)) is not None and len(threads[-1]) < MAX_FRAMES:
            frame = {"file": found[1], "line": int(found[2]), "function": found[3], "code": ""}
            threads[-1].insert(0, frame)
    return threads, _COLLECTS in text
