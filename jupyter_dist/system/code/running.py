"""The copy of the package that this process runs (copies.py makes it): its last user removes it.

Copies are locked by a file in them: a network file system may lock folders on each machine apart.
"""

from __future__ import annotations

import fcntl
import os

FOLDER = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
BOOT = os.path.join(FOLDER, "jupyter_dist", "agent", "boot.py")
PREFIX = "copy-"
UNREADY = "new-"  # of a folder that is being written, or removed
LOCK = "lock"


def hold() -> int | None:
    """Protect the copy from removal; return what `leave` takes, or None if this code is not a copy. Raises OSError."""
    if not os.path.basename(FOLDER).startswith(PREFIX):
        return None
    fd = os.open(os.path.join(FOLDER, LOCK), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    fcntl.flock(fd, fcntl.LOCK_SH)
    return fd


def leave(fd: int | None) -> None:
    """Remove the copy, if no other process of this version uses it."""
    if fd is None:
        return
    import shutil  # noqa: PLC0415 - only here, at the end

    parent, name = os.path.split(FOLDER)
    unready = os.path.join(parent, UNREADY + name)
    try:
        fcntl.flock(fd, fcntl.LOCK_UN)  # if two end at once, exactly one must see that it is the last
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.rename(FOLDER, unready)  # a copy is there as a whole, or not at all
        shutil.rmtree(unready, ignore_errors=True)
        os.rmdir(parent)
    except OSError:
        pass  # still used, or the copy of another version is beside it
