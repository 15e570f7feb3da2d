"""Where the main thread waits, by its frames and its system call. Called in the side thread."""

from __future__ import annotations

import platform
import sys

import torch

from jupyter_dist.rank.collectives.interruptible import waits
from jupyter_dist.rank.guard import folders, frames
from jupyter_dist.rank.guard.own import os, read_text, time

from . import flight

TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_DATA_LOADER = os.path.join(TORCH, "utils", "data") + os.sep
# System call numbers: calls that wait for one descriptor, and whether they take it or a pollfd; calls that wait for
# anything except a lock.
_READS, _POLLS, _SLEEPS = {
    "x86_64": ({0, 45}, {7, 271}, {23, 35, 61, 230, 232, 247, 270, 281}),
    "aarch64": ({63, 207}, {73}, {22, 72, 95, 101, 115, 260}),
}.get(platform.machine(), (set(), set(), set()))
_STATE_SAMPLES = 5
_SAMPLE_SECONDS = 0.01
_MOVE_LOOKS = 5
_MOVE_SECONDS = 0.002


def main_thread_sleeps() -> bool:
    """Whether the main thread is found waiting in the kernel repeatedly, so it is not computing."""
    for _ in range(_STATE_SAMPLES):
        if _state() != "S":
            return False
        time.sleep(_SAMPLE_SECONDS)
    return True


def has_ended() -> bool:
    """Whether the main thread has ended, and only other threads of this process run."""
    return _state() == "Z"


def _state() -> str:
    """Return the letter of the main thread's state; empty if it cannot be read, as without a free descriptor."""
    try:
        # The main thread's id is the pid; threading's native_id is stale after a fork.
        return read_text(f"/proc/self/task/{os.getpid()}/stat").rpartition(")")[2].split()[0]
    except OSError:
        return ""


def main_thread_moves() -> bool:
    """Whether the main thread runs Python code, or waits in this package for a request, rather than in one long call.

    In such a call it may hold a lock for as long as a collective hangs: `torch.cuda.empty_cache()` waits for the device
    with the lock of torch's allocator. Another thread that asks for the allocator's counters waits for that lock, with
    the GIL, and the whole process stands still: seen on an H100 (`facts:driver_locks` and `product:busy_driver`).
    """
    before = None
    for _ in range(_MOVE_LOOKS):
        frame = frames.of_main_thread()
        if frame is None or frame.f_code.co_filename.startswith(folders.ON_RANKS):
            return True
        place = id(frame), frame.f_lasti
        del frame
        if before not in (None, place):
            return True
        before = place
        time.sleep(_MOVE_SECONDS)
    return False


def main_thread_syscall() -> tuple[int | None, int]:
    """Return the system call that the main thread waits in, and its first argument; None if unknown."""
    try:
        number, argument = read_text(f"/proc/self/task/{os.getpid()}/syscall").split()[:2]
        return int(number), int(argument, 16)
    except (OSError, ValueError):  # "running"
        return None, 0


def main_thread_fd() -> int | None:
    """Return the descriptor that the main thread waits for in read() or poll()."""
    number, argument = main_thread_syscall()
    if number in _READS:
        return argument
    if number not in _POLLS:
        return None
    try:
        memory = os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:  # the thread may have continued: then this is arbitrary memory
            return int.from_bytes(os.pread(memory, 4, argument), sys.byteorder, signed=True)
        finally:
            os.close(memory)
    except OSError:
        return None


def main_thread_waits_in_torch(backend: str | None = None) -> bool:
    """Whether the main thread waits in torch, and not in a sleep, lock or library, which broken connections do not end.

    Args:
        backend: the backend that a collective in C++, without Python frames, must have; None: any.
    """
    frame = frames.of_main_thread()
    while frame is not None:
        if frame.f_globals is vars(waits) or _is_torchs(frame.f_code.co_filename):
            return True
        frame = frame.f_back
    # A wait in C++ that a cell calls directly, for example Future.wait().
    return flight.outstanding(backend) is not None and main_thread_syscall()[0] not in _READS | _POLLS | _SLEEPS


def _is_torchs(filename: str) -> bool:
    """Whether a file is one of torch's, except for the DataLoader, whose waits are not for ranks."""
    return filename.startswith(TORCH) and not filename.startswith(_DATA_LOADER)
