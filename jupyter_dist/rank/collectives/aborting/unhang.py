"""Ends a hung gloo collective by shutting down the sockets it waits on; torch itself has no way to.

torch's abort, shutdown, destroy and timeouts do not free the waiting thread (measured with torch 2.13). When a socket
is shut down, gloo raises RuntimeError within milliseconds, and all variables are kept; the process group is then
unusable until `rejoin`. gloo_sockets.py finds gloo's sockets; no others are touched.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from jupyter_dist.rank.guard.own import os, socket


def break_connections(connections: Iterable[socket.socket]) -> int:
    """Shut the connections down; return their number (side thread)."""
    # All are duplicates, because gloo closes the other connections as soon as one fails.
    number = 0
    for sock in connections:
        with contextlib.suppress(OSError), sock:
            sock.shutdown(socket.SHUT_RDWR)
            number += 1
    return number


def store_is_broken(path: str) -> bool:
    """Whether `break_store` broke this FileStore, in any rank."""
    try:
        return os.readlink(path) == path
    except OSError:
        return False


def break_store(path: str) -> None:
    """Make every access to a FileStore fail at once: its file becomes a symbolic link to itself.

    Deleting the file is not enough, because torch waits for it to appear. The new process group gets a new store.
    """
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    with contextlib.suppress(FileExistsError):  # another rank was first
        os.symlink(path, path)
