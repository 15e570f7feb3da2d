"""The file system of a path: its type and free space."""

from __future__ import annotations

import os
from pathlib import Path

_IN_MEMORY = frozenset({"tmpfs", "ramfs"})


def is_memory(path: Path) -> bool:
    """Whether files there take memory (tmpfs, as /run/user and /dev/shm are)."""
    device = os.stat(path).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        lines = Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
    except OSError:
        return False
    kinds = [line.partition(" - ")[2].split()[0] for line in lines if line.split()[2] == number]
    return any(kind in _IN_MEMORY for kind in kinds)


def total_bytes(path: Path) -> int:
    """Return the size of the file system."""
    found = os.statvfs(path)
    return found.f_blocks * found.f_frsize


def free_bytes(path: Path) -> int:
    """Return the free space for this user."""
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


def free_files(path: Path) -> int | None:
    """Return how many more files this user can create; None if the file system does not limit them."""
    found = os.statvfs(path)
    return found.f_favail if found.f_files else None
