"""Conditions of this machine that users of a group should know, as long as it runs."""

from __future__ import annotations

import os

from jupyter_dist.protocol.accelerators import ACCELERATORS
from jupyter_dist.protocol.wire.specs import GroupSpec

SHARED_MEMORY = "/dev/shm"  # noqa: S108 - the folder itself
LEAST_SHARED_BYTES = 128 << 20  # Docker's default is 64 MiB
MIB = 1 << 20


def conditions(spec: GroupSpec, shared_bytes: int | None = None) -> list[str]:
    """Return a sentence for each condition.

    Args:
        spec: the group.
        shared_bytes: size of the shared memory; by default the size on this machine.
    """
    found = []
    if spec.shares_devices:
        label = ACCELERATORS[spec.accelerator].label
        found.append(
            f"Several ranks share a {label} device: they take turns on it, and send over the network interface."
        )
    size = _shared_memory() if shared_bytes is None else shared_bytes
    if not spec.is_on_nodes and size is not None and size < LEAST_SHARED_BYTES:
        found.append(
            f"{SHARED_MEMORY} has only {size // MIB} MiB, too little for DataLoader workers and for devices. "
            "In a container, start it with --shm-size=8g or --ipc=host."
        )
    return found


def _shared_memory() -> int | None:
    try:
        stats = os.statvfs(SHARED_MEMORY)
    except OSError:
        return None
    return stats.f_blocks * stats.f_frsize
