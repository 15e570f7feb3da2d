"""The lock of a folder: shared while a save or a restore runs, exclusive while chunks are removed."""

from __future__ import annotations

import errno
import fcntl
import os
import time

from .layout import SavesFolder

BUSY_SECONDS = 2.0  # a save that has just ended gives its lock back within that time
POLL_SECONDS = 0.05
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


class FolderLock:
    """A lock that this process has; `close` gives it back, as the end of the process does."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def close(self) -> None:
        """Give the lock back. Idempotent."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def lock_shared(folder: SavesFolder) -> FolderLock:
    """Keep chunks from being removed; wait for the end of a removal.

    On a file system without locks, nothing removes chunks. Raises OSError.
    """
    lock = FolderLock(fd := _open(folder))
    try:
        fcntl.flock(fd, fcntl.LOCK_SH)
    except OSError as err:
        if err.errno not in _NO_LOCKS:
            lock.close()
            raise
    return lock


def lock_alone(folder: SavesFolder) -> FolderLock | None:
    """Return the right to remove chunks; None while a save or a restore runs anywhere. Raises OSError."""
    lock = FolderLock(fd := _open(folder))
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as err:
            if err.errno == errno.EWOULDBLOCK and time.monotonic() < deadline:
                time.sleep(POLL_SECONDS)
                continue
            lock.close()
            if err.errno not in (*_NO_LOCKS, errno.EWOULDBLOCK):
                raise
            return None
        return lock


def _open(folder: SavesFolder) -> int:
    return os.open(folder.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
