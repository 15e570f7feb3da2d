"""Which processes use the private server: each holds a shared lock on one file, which the kernel releases at its end.

Record locks (fcntl), because a forked child does not inherit them: a worker that outlives its program does not count.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import socket
import threading
from pathlib import Path

from jupyter_core.paths import jupyter_runtime_dir

from jupyter_dist.system.files.private import make_folder
from jupyter_dist.system.processes import read_process


def own_process() -> dict[str, int]:
    """Return an identity of this process that stays unique after its number is reused."""
    me = read_process(os.getpid())
    return {"pid": os.getpid(), "started": me.started if me is not None else 0}


def lock_path(purpose: str) -> Path:
    """Return a file of this user, machine and Jupyter runtime folder, which several machines may share."""
    parts = [socket.gethostname(), str(os.getuid())]
    for name in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        try:
            parts.append(os.readlink(name) if name.endswith("pid") else Path(name).read_text())
        except OSError:  # not Linux
            continue
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
    return Path(jupyter_runtime_dir(), f"jupyter_dist-{purpose}-{digest}.lock")


def open_lock(purpose: str) -> int:
    """Open the lock file, and create it if needed. Raises OSError."""
    path = lock_path(purpose)
    make_folder(path.parent)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


class Attendance:
    """This process's lock, shared by all of its clients."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held: dict[Path, tuple[int, int, int]] = {}  # process, descriptor, number of clients

    def join(self) -> Path:
        """Count as a client of the private server from now on; return the argument of `leave`. Raises OSError."""
        path = lock_path("clients")
        with self._guard:
            pid, fd, count = self._held.get(path, (0, -1, 0))
            if pid != os.getpid():  # a forked child has the descriptor, but not the lock
                fd, count = open_lock("clients"), 0
                fcntl.lockf(fd, fcntl.LOCK_SH)
            self._held[path] = os.getpid(), fd, count + 1
        return path

    def leave(self, path: Path) -> None:
        """Stop counting as a client after as many calls as of `join`."""
        with self._guard:
            pid, fd, count = self._held.pop(path, (0, -1, 0))
            if pid != os.getpid():
                return
            if count > 1:
                self._held[path] = pid, fd, count - 1
            else:
                os.close(fd)  # closing any descriptor of a file releases the process's locks on it


attendance = Attendance()
