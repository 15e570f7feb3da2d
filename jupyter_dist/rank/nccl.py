"""Ending a hung NCCL collective: its communicators are aborted, and the process group must be formed anew.

An abort ends the kernels that wait on the device; what the main thread waits for then returns, with undefined
data, and the interrupt that is already pending raises. Written against torch's interface; docs/gpu.md says where
it ran.
"""

from __future__ import annotations

import threading

import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

ABORT_SECONDS = 1.5  # the side thread must answer a ping within 2 s


def abort() -> bool:
    """Abort all communicators of this process (side thread); return whether that ended in time.

    It can hang where a driver does, so another thread does it and the side thread goes on answering.
    """
    thread = threading.Thread(target=_abort_all, name="abort NCCL", daemon=True)
    thread.start()
    thread.join(ABORT_SECONDS)
    return not thread.is_alive()


def forget() -> None:
    """Drop the aborted process groups (main thread): closing them in order would wait for what never completes."""
    c10d._abort_process_group()


def _abort_all() -> None:
    world = dist.group.WORLD
    if world is None:
        return
    backend = _nccl_of(world)
    # One after the other they would wait for each other: torch's own _abort_process_group does the same.
    if backend is not None:
        backend._group_start()
    groups = c10d._world.pg_names
    for group in sorted(groups, key=groups.__getitem__, reverse=True):
        group.abort()
    if backend is not None:
        backend._group_end()


def _nccl_of(group: dist.ProcessGroup) -> c10d.ProcessGroupNCCL | None:
    if not dist.is_nccl_available():
        return None
    backend = group._get_backend(c10d.torch.device("cuda"))
    return backend if isinstance(backend, c10d.ProcessGroupNCCL) else None
