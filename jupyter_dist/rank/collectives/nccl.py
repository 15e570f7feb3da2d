"""Ending a hung collective of devices (NCCL, RCCL): communicators are aborted, the process group must be re-created.

An abort ends the kernels that wait on the device; what the main thread waits for then returns, with undefined
data, and the interrupt that is already pending raises. Written against torch's interface; docs/gpu.md says where
it ran.
"""

from __future__ import annotations

import threading

from . import torch_compat

ABORT_SECONDS = 1.5  # the side thread must answer a ping within 2 s


class _Attempt(threading.Thread):
    """One abort, in a thread of its own: it can hang where a driver does."""

    def __init__(self) -> None:
        super().__init__(name="abort communicators", daemon=True)
        self.error: Exception | None = None

    def run(self) -> None:
        """Abort; keep what went wrong."""
        try:
            torch_compat.abort_communicators()
        except Exception as err:  # the edge: whatever torch raises, the caller must hear of it
            self.error = err


_running: _Attempt | None = None


def abort() -> str | None:
    """Abort all communicators of this process (side thread).

    Returns:
        None when that was done; else why not, as the end of a sentence.
    """
    global _running  # noqa: PLW0603 (the process has one set of communicators)
    if _running is None or not _running.is_alive():
        _running = _Attempt()
        _running.start()
    _running.join(ABORT_SECONDS)
    if _running.is_alive():
        return f"the abort has not ended after {ABORT_SECONDS:g} s; the device's driver may hang"
    error = _running.error
    return None if error is None else f"torch raised {type(error).__name__}: {error}"


def forget() -> None:
    """Drop the aborted process groups (main thread): closing them in order would wait for what never completes."""
    torch_compat.drop_process_groups()
