"""The NVIDIA driver's checkpoint of processes: a program that parks other processes of this user, and resumes them.

    python checkpoint.py park|resume|look PID...

It is a process on its own: the agent stays without CUDA, and a call that hangs is killed with it. A line of JSON is
printed for each step. The driver blocks the calls of a locked process to it, and moves all of its device memory, with
contexts and communicators, to memory of the host. Each step begins with the state that the driver reports, so a step
that was cut short is continued by the next call. The driver needs version 570.
"""

from __future__ import annotations

import ctypes
import json
import sys
import threading
import time
from typing import Any

LIBRARY = "libcuda.so.1"
LOCK_MILLISECONDS = 10_000
STATES = ("running", "locked", "checkpointed", "failed")
_FUNCTIONS = {
    "lock": "cuCheckpointProcessLock",
    "checkpoint": "cuCheckpointProcessCheckpoint",
    "restore": "cuCheckpointProcessRestore",
    "unlock": "cuCheckpointProcessUnlock",
}
# For each state the step to take, until there is none.
_STEPS = {
    "park": {"running": "lock", "locked": "checkpoint"},
    "resume": {"checkpointed": "restore", "locked": "unlock"},
    "look": {},
}
_ENDS = {"park": "checkpointed", "resume": "running"}
_MAX_STEPS = 3
_print_lock = threading.Lock()


class _LockArguments(ctypes.Structure):
    """CUcheckpointLockArgs."""

    _fields_ = (
        ("timeout_milliseconds", ctypes.c_uint),
        ("reserved0", ctypes.c_uint),
        ("reserved1", ctypes.c_uint64 * 7),
    )


class _OtherArguments(ctypes.Structure):
    """CUcheckpointCheckpointArgs, CUcheckpointRestoreArgs and CUcheckpointUnlockArgs, all zero: 64 bytes each."""

    _fields_ = (("reserved", ctypes.c_uint64 * 8),)


class CheckpointDriver:
    """The functions of the driver that are used here; each returns `ok` or the name of the driver's error."""

    def __init__(self, library: Any) -> None:
        """Use a loaded library. Raises AttributeError if it is older than these functions."""
        self._library = library
        for name in (*_FUNCTIONS.values(), "cuCheckpointProcessGetState", "cuInit", "cuGetErrorName"):
            getattr(library, name)

    def begin(self) -> str:
        """Initialize the driver in this process."""
        return self._name(self._library.cuInit(0))

    def state(self, pid: int) -> str:
        """Return the state of a process, or the name of the error: a process without a context has no state."""
        state = ctypes.c_int(-1)
        code = self._library.cuCheckpointProcessGetState(pid, ctypes.byref(state))
        if code != 0:
            return self._name(code)
        return STATES[state.value] if 0 <= state.value < len(STATES) else f"state {state.value}"

    def step(self, step: str, pid: int) -> str:
        """Lock, checkpoint, restore or unlock a process."""
        arguments = _LockArguments(LOCK_MILLISECONDS) if step == "lock" else _OtherArguments()
        return self._name(getattr(self._library, _FUNCTIONS[step])(pid, ctypes.byref(arguments)))

    def _name(self, code: int) -> str:
        if code == 0:
            return "ok"
        text = ctypes.c_char_p()
        self._library.cuGetErrorName(code, ctypes.byref(text))
        return text.value.decode("utf-8", "replace") if text.value else f"error {code}"


def carry_out(driver: CheckpointDriver, what: str, pid: int) -> bool:
    """Park, resume or look at one process, and print each step; return whether it is as wanted then.

    A process that cannot be parked is unlocked again.
    """
    state, done = driver.state(pid), list[str]()
    for _ in range(_MAX_STEPS):
        step = _STEPS[what].get(state)
        if step is None:
            break
        began = time.monotonic()
        outcome = driver.step(step, pid)
        seconds, state = round(time.monotonic() - began, 3), driver.state(pid)
        _print(pid=pid, step=step, outcome=outcome, seconds=seconds, state=state)
        done.append(step)
        if outcome != "ok":
            if what == "park" and state == "locked":
                _print(pid=pid, step="unlock", outcome=driver.step("unlock", pid), state=driver.state(pid))
            return False
    is_right = what == "look" or state == _ENDS[what]
    if not done:
        _print(pid=pid, step="look", outcome="ok" if is_right else state, state=state)
    return is_right


def _print(**fields: Any) -> None:
    with _print_lock:
        sys.stdout.write(f"{json.dumps(fields)}\n")
        sys.stdout.flush()


def main(arguments: list[str]) -> int:
    """Park, resume or look at the processes of the command line, all at a time; return the exit code."""
    what, pids = arguments[0], [int(pid) for pid in arguments[1:]]
    try:
        driver = CheckpointDriver(ctypes.CDLL(LIBRARY))
    except OSError:
        _print(step="load", outcome="this machine has no NVIDIA driver")
        return 2
    except AttributeError:
        _print(step="load", outcome="the NVIDIA driver is older than 570, which has no checkpoint")
        return 2
    outcome = driver.begin()
    if outcome != "ok":
        _print(step="begin", outcome=outcome)
        return 2
    results: dict[int, bool] = {}

    def one(pid: int) -> None:
        results[pid] = carry_out(driver, what, pid)

    threads = [threading.Thread(target=one, args=(pid,)) for pid in pids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return 0 if all(results.get(pid) for pid in pids) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
