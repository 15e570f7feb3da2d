"""Limits the disk space of a group's journal, and warns when it gets low."""

from __future__ import annotations

import contextlib
from pathlib import Path

from jupyter_dist.system.files import disk

MIB, GIB = 1 << 20, 1 << 30
# A group always keeps its latest output, even if other groups use up the quota.
LEAST_BYTES = 64 * MIB
WARN_AT = 0.8
LOW_BYTES, LOW_SHARE = GIB, 0.05
LOW_FILES = 200
LOOK_BYTES = 4 * MIB


class Quota:
    """The limits of one group's journal; 0 means a default for the file system.

    Less is kept where files take memory: /run/user is often a tmpfs.
    """

    def __init__(self, directory: Path, group_bytes: int = 0, user_bytes: int = 0) -> None:
        """`directory` is the journal's; journals of the user's other groups are beside it."""
        self._directory = directory
        total, in_memory = disk.total_bytes(directory), disk.is_memory(directory)
        self.group_bytes = group_bytes or max(LEAST_BYTES, min(total // 10, GIB if in_memory else 16 * GIB))
        self.user_bytes = user_bytes or max(LEAST_BYTES, min(total // 4, 2 * GIB if in_memory else 64 * GIB))
        self._low_bytes = min(LOW_BYTES, int(total * LOW_SHARE))
        # How much output to write before the next check.
        self.look_bytes = min(LOOK_BYTES, self.group_bytes // 16, max(self._low_bytes // 2, 1))
        self._where = "memory (a tmpfs)" if in_memory else "disk"

    def allowed(self) -> int:
        """Return how many bytes this journal may have now, given the user's other groups."""
        rest = max(self.user_bytes - self._others_bytes(), min(LEAST_BYTES, self.user_bytes))
        return min(self.group_bytes, rest)

    def warning(self, used: int, allowed: int, is_cut: bool) -> str:
        """Return a warning for this size of the journal; empty while there is space."""
        found = []
        if is_cut:
            found.append(f"The journal has reached its quota of {_size(allowed)}: the oldest output is removed.")
        elif used > WARN_AT * allowed:
            what = f"The journal has used {_size(used)} of its quota of {_size(allowed)}"
            found.append(f"{what}: then the oldest output is removed.")
        with contextlib.suppress(OSError):
            free, files = disk.free_bytes(self._directory), disk.free_files(self._directory)
            if free < self._low_bytes or (files is not None and files < LOW_FILES):
                room = _size(free) if free < self._low_bytes else f"room for {files} files"
                found.append(f"The journal's {self._where} has {room} left: free space, or output will not be kept.")
        return " ".join(found)

    def _others_bytes(self) -> int:
        total = 0
        for path in self._directory.parent.parent.glob("g-*/journal/*.jd"):
            if path.parent != self._directory:
                with contextlib.suppress(OSError):  # has just been removed
                    total += path.lstat().st_size
        return total


def _size(num_bytes: int) -> str:
    if num_bytes >= GIB:
        return f"{num_bytes / GIB:.1f} GiB"
    return f"{num_bytes / MIB:.0f} MiB" if num_bytes >= 10 * MIB else f"{num_bytes / MIB:.1f} MiB"
