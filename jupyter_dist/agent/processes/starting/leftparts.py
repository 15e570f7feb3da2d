"""What a rank of this machine leaves of its parts of DTensors: memory files of its undo, which the agent holds open."""

from __future__ import annotations

import errno
import json
import os
import stat
import struct
import weakref
import zlib
from typing import Any

_HEADER = struct.Struct("!QI")  # as the rank writes it: rank/state/parts.py
_MAX_LIST_BYTES = 64 << 20


class LeftParts:
    """The memory files of one rank: the list of its parts, and their bytes."""

    def __init__(self, pid: int, files: list[int]) -> None:
        """Open the files of a living rank, which may send any number. Raises OSError."""
        self._fds = []
        for file in files:
            self._fds.append(fd := os.open(f"/proc/{pid}/fd/{file}", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
            weakref.finalize(self, os.close, fd)
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    @property
    def paths(self) -> tuple[str, str]:
        """Return where a rank of this machine can read the list and the bytes."""
        one, other = (f"/proc/{os.getpid()}/fd/{fd}" for fd in self._fds)
        return one, other

    def ways(self, execution_id: str, world_size: int) -> set[str]:
        """Return the ways to the parts that were kept for an execution; none, if another one came after it."""
        try:
            length, checksum = _HEADER.unpack(os.pread(self._fds[0], _HEADER.size, 0))
            content = os.pread(self._fds[0], min(length, _MAX_LIST_BYTES), _HEADER.size)
            found: dict[str, Any] = json.loads(content) if zlib.crc32(content) == checksum else {}
        except (OSError, ValueError, struct.error):
            return set()
        is_of_it = (found.get("execution_id"), found.get("world_size")) == (execution_id, world_size)
        return set(found["parts"]) if is_of_it else set()


def left_by(pid: int | None, files: Any) -> LeftParts | None:
    """Return the parts that a rank keeps, if it is on this machine and has sent its descriptors in the right form."""
    is_valid = isinstance(files, list) and len(files) == 2 and all(type(file) is int for file in files)
    if pid is None or not is_valid:
        return None
    try:
        return LeftParts(pid, files)
    except OSError:  # it has just ended, or there are no descriptors
        return None
