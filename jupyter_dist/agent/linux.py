"""What the agent asks of the Linux kernel: die with the parent, adopt orphans, find and end what is left."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import signal
from collections.abc import Collection
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_F_SETPIPE_SZ = 1031
PIPE_BYTES = 1 << 20


def adopt_orphans() -> None:
    """Make this process the parent of every descendant whose own parent died."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def widen_pipe(fd: int) -> None:
    """Give a pipe a megabyte, so that a burst of C-level output seldom waits for the agent."""
    with contextlib.suppress(OSError):  # the user's pipe quota is spent: the default size also works
        fcntl.fcntl(fd, _F_SETPIPE_SZ, PIPE_BYTES)


def processes() -> dict[int, tuple[int, int, str]]:
    """Return {pid: (parent pid, session id, state letter)} of every process that /proc shows."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                # The command, in brackets, may hold spaces and brackets itself.
                fields = Path("/proc", name, "stat").read_text(errors="replace").rpartition(")")[2].split()
                found[int(name)] = (int(fields[1]), int(fields[3]), fields[0])
    return found


def descendants(root: int) -> list[int]:
    """Return the pids below `root`, children before grandchildren."""
    table = processes()
    found, frontier = [], {root}
    while frontier:
        frontier = {pid for pid, (parent, _, _) in table.items() if parent in frontier}
        found.extend(sorted(frontier))
    # A zombie whose other threads still run has its children yet: it is looked below, but it is none itself.
    return [pid for pid in found if table[pid][2] != "Z"]


def kill_sessions(leaders: Collection[int]) -> None:
    """Kill every process of the sessions that these ranks lead; /proc, which may be long, is read once."""
    for pid, (_, session, state) in processes().items():
        if session in leaders and state != "Z":
            send_signal(pid, signal.SIGKILL)


def sweep(root: int, spare: Collection[int]) -> list[str]:
    """Kill every process below `root` but those to spare; return sentences that name them."""
    killed: dict[int, str] = {}
    for _ in range(2):  # one whose parent dies while /proc is read has no parent in what was read
        for pid in set(descendants(root)) - set(spare) - set(killed):
            name = ""
            with contextlib.suppress(OSError):
                name = Path("/proc", str(pid), "comm").read_text(errors="replace").strip()
            send_signal(pid, signal.SIGKILL)
            killed[pid] = f"Process {pid} ({name}), which a rank had started, was killed."
    return list(killed.values())


def send_signal(pid: int, sig: signal.Signals) -> None:
    """Signal a process of ours; one that is gone already is fine."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, sig)


def reap(known: set[int]) -> None:
    """Collect the exit status of adopted orphans; `known` children are collected by their owners."""
    for pid in set(_children()) - known:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def _children() -> list[int]:
    me = os.getpid()
    try:
        # One small read, where the kernel offers it; this is asked every second.
        return [int(pid) for pid in Path(f"/proc/{me}/task/{me}/children").read_text().split()]
    except FileNotFoundError:
        return [pid for pid, (parent, _, _) in processes().items() if parent == me]
