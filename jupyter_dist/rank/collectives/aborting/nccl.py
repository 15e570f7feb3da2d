"""Ends a hung device collective (NCCL, RCCL) by aborting its communicators; the process group must be re-created then.

An abort ends the kernels that wait on the device. The call that the main thread waits in then returns, with undefined
data, and the pending interrupt raises: so it is done only on ranks whose cell is interrupted, on all of them together.
docs/gpu.md lists where it was tested.
"""

from __future__ import annotations

import threading
from typing import Any

from jupyter_dist.rank.collectives import torch_compat
from jupyter_dist.rank.guard.own import time

ABORT_SECONDS = 1.5  # the side thread must answer a ping within 2 s


class _Attempt(threading.Thread):
    """The abort of one process group.

    Each abort runs in a separate thread, because it hangs if the driver does, and because aborts of two communicators
    that hang on one device wait for each other: one after the other, or grouped as torch does it, none returns (seen on
    an H200).
    """

    def __init__(self, group: Any) -> None:
        super().__init__(name="abort communicators", daemon=True)
        self._group = group
        self.error: Exception | None = None

    def run(self) -> None:
        """Abort, and keep the error."""
        try:
            torch_compat.abort(self._group)
        except Exception as err:  # the outermost level: the caller must receive any error of torch
            self.error = err


_attempts: list[_Attempt] = []


def is_aborting() -> bool:
    """Whether an abort has begun and not ended: the main thread may continue before the abort ends."""
    return any(attempt.is_alive() for attempt in _attempts)


def abort() -> str | None:
    """Abort all communicators of this process (side thread).

    Returns:
        None on success; otherwise the reason, as the end of a sentence.
    """
    global _attempts  # noqa: PLW0603 (the process has one set of communicators)
    if not any(attempt.is_alive() for attempt in _attempts):
        _attempts = [_Attempt(group) for group in torch_compat.device_groups()]
        for attempt in _attempts:
            attempt.start()
    deadline = time.monotonic() + ABORT_SECONDS
    for attempt in _attempts:
        attempt.join(max(0.0, deadline - time.monotonic()))
    if any(attempt.is_alive() for attempt in _attempts):
        return f"the abort has not ended after {ABORT_SECONDS:g} s; the device's driver may hang"
    error = next((attempt.error for attempt in _attempts if attempt.error is not None), None)
    return None if error is None else f"torch raised {type(error).__name__}: {error}"


def forget() -> str | None:
    """Drop all process groups (main thread), after an abort: closing them would wait for collectives that never end.

    Returns:
        None on success; otherwise the reason, as the end of a sentence: nothing is dropped then.
    """
    failure = abort()
    if failure is None:
        torch_compat.drop_process_groups()
    return failure
