"""Whether a server belongs to this user: its runtime file may be stale, and its pid or port reused by another user.

Decided from /proc. Servers in a container or behind JupyterHub are visible, because their kernels are in the same
container. Where /proc does not show the network (some sandboxes), only the process is checked.
"""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path
from typing import Any, NamedTuple

from jupyter_dist.system.processes import peer_uid

LISTEN = "0A"
PROC = Path("/proc")
CONNECT_SECONDS = 1.0


class Listener(NamedTuple):
    """A listening socket."""

    port: int
    uid: int
    inode: str


def is_ours(info: dict[str, Any]) -> bool:
    """Whether the process that a runtime file names belongs to this user, and listens at the address in the file."""
    pid = info.get("pid")
    if type(pid) is not int or _uid_of(pid) != os.getuid():
        return False
    if sock := info.get("sock"):
        return _peer_uid(str(sock)) == os.getuid()
    port = info.get("port")
    return type(port) is int and is_our_port(port, pid)


def is_our_port(port: int, pid: int | None = None) -> bool:
    """Whether only this user (only that process, if given) listens on the port, on any address."""
    listeners = _listeners()
    if not listeners:
        return True  # the network is not visible
    here = [listener for listener in listeners if listener.port == port]
    if not here or any(listener.uid != os.getuid() for listener in here):
        return False
    inodes = _socket_inodes(pid) if pid is not None else None
    return inodes is None or any(listener.inode in inodes for listener in here)


def _listeners() -> list[Listener]:
    found = []
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            for line in (PROC / "self" / "net" / name).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTEN:
                    port = int(fields[1].rpartition(":")[2], 16)
                    found.append(Listener(port, int(fields[7]), fields[9]))
    return found


def _socket_inodes(pid: int) -> set[str] | None:
    """Return the sockets of a process; None if they are not visible."""
    found: set[str] = set()
    try:
        for entry in os.scandir(PROC / str(pid) / "fd"):
            with contextlib.suppress(OSError):
                found.add(os.readlink(entry.path).removeprefix("socket:[").removesuffix("]"))
    except OSError:
        return None
    return found


def _peer_uid(path: str) -> int | None:
    """Return the user who listens on a unix socket."""
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(CONNECT_SECONDS)
            probe.connect(path)
            return peer_uid(probe)
    except OSError:
        return None


def _uid_of(pid: int) -> int | None:
    """Return the user of a process; None if it does not exist, or is hidden because it is another user's."""
    try:
        status = (PROC / str(pid) / "status").read_text()
        return int(status.split("\nUid:", 1)[1].split()[0])
    except (OSError, ValueError, IndexError):
        return None
