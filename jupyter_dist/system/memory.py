"""Memory of this machine and of this process."""

from __future__ import annotations

import os
from pathlib import Path

# Below this, nothing stays in memory only to make a later start faster.
MIN_FREE_BYTES = 2 << 30


def is_short() -> bool:
    """Whether less than MIN_FREE_BYTES are available."""
    try:
        fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        return int(fields["MemAvailable"].split()[0]) * 1024 <= MIN_FREE_BYTES
    except (OSError, KeyError, ValueError):
        return os.name != "posix"  # unknown: assume that there is enough


def own_bytes() -> int:
    """Return the memory of this process that no other process shares; 0 if the kernel does not report it."""
    return _mapped_bytes("self", "Private_")


def proportional_bytes(pid: int) -> int:
    """Return the memory of a process, where memory that n processes share counts as an n-th; 0 if it has ended."""
    return _mapped_bytes(str(pid), "Pss:")


def _mapped_bytes(process: str, prefix: str) -> int:
    try:
        lines = Path("/proc", process, "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(prefix))
