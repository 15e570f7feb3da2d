"""Ends a hung device collective (NCCL, RCCL) by aborting its communicators; the process group must be re-created then.

An abort ends the kernels that wait on the device. The call that the main thread waits in then returns, with undefined
data, and the pending interrupt raises. Written against torch's interface; docs/gpu.md says where it was run.
"""

from __future__ import annotations

import threading

from . import torch_compat

ABORT_SECONDS = 1.5  # the side thread must answer a ping within 2 s


class _Attempt(threading.Thread):
    """One abort, in its own thread, because it hangs if the driver does."""

    def __init__(self) -> None:
        super().__init__(name="abort communicators", daemon=True)
        self.error: Exception | None = None

    def run(self) -> None:
        """Abort, and keep the error."""
        try:
            torch_compat.abort_communicators()
        except Exception as err:  # the outermost level: the caller must learn of any error of torch
            self.error = err


_running: _Attempt | None = None


def abort() -> str | None:
    """Abort all communicators of this process (side thread).

    Returns:
        None on success; otherwise the reason, as the end of a sentence.
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
    """Drop the aborted process groups (main thread): closing them would wait for collectives that never complete."""
    torch_compat.drop_process_groups()
