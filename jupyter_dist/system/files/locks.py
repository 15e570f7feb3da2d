"""Locked files: a process may wait for the lock of a file, and get it when the file has been removed."""

from __future__ import annotations

import os
from pathlib import Path


def is_at(path: Path, fd: int) -> bool:
    """Whether the open file is the one at this path now: it may be removed, and written again. Raises OSError."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(fd))
    except FileNotFoundError:
        return False
