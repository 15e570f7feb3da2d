"""The copy of our code that this process runs (server/spawner/code.py): its last user removes it."""

from __future__ import annotations

import fcntl
import os

FOLDER = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
ONLY_OF_SERVER = frozenset({"server", "labextension", "server-config"})  # packages that no copy has: groups import none
BOOT = os.path.join(FOLDER, "jupyter_dist", "agent", "boot.py")


def hold() -> int | None:
    """Protect the copy from removal; return what `leave` takes, or None if this code is not a copy. Raises OSError."""
    if not os.path.basename(FOLDER).startswith("code-"):
        return None
    fd = os.open(FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(fd, fcntl.LOCK_SH)
    return fd


def leave(fd: int | None) -> None:
    """Remove the copy, if no other group or server of this version uses it."""
    if fd is None:
        return
    import shutil  # noqa: PLC0415 - only here, at the end

    try:
        fcntl.flock(fd, fcntl.LOCK_UN)  # if two end at once, exactly one must see that it is the last
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(FOLDER, ignore_errors=True)
        os.rmdir(os.path.dirname(FOLDER))
    except OSError:
        pass  # still used, or the copy of another version is beside it
