"""Ending a hung gloo collective: nothing in torch can, but breaking the sockets it waits on does.

torch's abort, shutdown, destroy and timeouts leave the waiting thread where it is (measured, torch 2.13).
Once a socket is shut down, gloo raises RuntimeError in milliseconds, and all variables are kept; the process
group is then unusable until `rejoin`.

Which sockets: the established TCP connections of this process over loopback that no Python object owns. gloo
and TCPStore open theirs in C++; a user's own connections are Python sockets, and those are left alone.
"""

from __future__ import annotations

import contextlib
import gc
import os
import socket
import time
from pathlib import Path

_ESTABLISHED = "01"
_LOOPBACK = {"tcp": "7F", "tcp6": "0000000000000000FFFF00000100007F"}
# torch spells these places privately; nothing public does the same.
_BROKEN_SIGNS = (
    "third_party/gloo",
    "Connection closed by peer",
    "Connection reset by peer",
    "Too many levels of symbolic links",
    "NCCL communicator was aborted",
)
_STATE_SAMPLES = 5
_SAMPLE_SECONDS = 0.01


def is_of_a_broken_group(error: BaseException) -> bool:
    """Whether a collective raised this because connections or the store are gone."""
    return isinstance(error, RuntimeError) and any(sign in str(error) for sign in _BROKEN_SIGNS)


def main_thread_sleeps() -> bool:
    """Whether the main thread waits in the kernel, again and again: it does not compute."""
    for _ in range(_STATE_SAMPLES):
        # The main thread's number is the process's; threading's native_id is stale after a fork.
        status = Path(f"/proc/self/task/{os.getpid()}/stat").read_text()
        if status.rpartition(")")[2].split()[0] != "S":
            return False
        time.sleep(_SAMPLE_SECONDS)
    return True


def break_collectives() -> int:
    """Shut this process's gloo connections down; return how many there were (side thread)."""
    # All dups first: gloo closes a connection's siblings as soon as one fails.
    dups = [os.dup(fd) for fd in _collective_sockets()]
    for fd in dups:
        with contextlib.suppress(OSError), socket.socket(fileno=fd) as sock:
            sock.shutdown(socket.SHUT_RDWR)
    return len(dups)


def break_store(path: str) -> None:
    """Make every access to a FileStore fail at once: its file becomes a symbolic link to itself.

    Deleting the file would not do: torch waits for it to appear. Both sides of the new process group get a new store.
    """
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    with contextlib.suppress(FileExistsError):  # another rank was first
        os.symlink(path, path)


def _collective_sockets() -> list[int]:
    loopback = _loopback_inodes()
    # type() and not isinstance(): a proxy's __class__ may run anything.
    owned = {entry.fileno() for entry in gc.get_objects() if issubclass(type(entry), socket.socket)}
    found = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            link = os.readlink(f"/proc/self/fd/{name}")
            if link.startswith("socket:[") and link[8:-1] in loopback and int(name) not in owned:
                found.append(int(name))
    return found


def _loopback_inodes() -> set[str]:
    """The socket inodes of established connections with both ends on this machine's loopback."""
    inodes = set()
    for table, prefix in _LOOPBACK.items():
        with contextlib.suppress(OSError):
            for line in Path("/proc/self/net", table).read_text().splitlines()[1:]:
                fields = line.split()
                is_local = all(_is_loopback(end, prefix) for end in fields[1:3])
                if is_local and fields[3] == _ESTABLISHED:
                    inodes.add(fields[9])
    return inodes


def _is_loopback(end: str, prefix: str) -> bool:
    """The kernel prints addresses as little-endian words: 127.x.y.z ends in 7F."""
    address = end.partition(":")[0]
    return address.endswith("7F") if prefix == "7F" else address == prefix
