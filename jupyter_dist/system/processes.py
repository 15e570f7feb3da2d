"""Processes from /proc: their descendants, their identity, and how to end them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import socket

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_POLL_SECONDS = 0.005
# Reading all of /proc instead costs each of n shims the time of n processes; some kernels do not have these files.
_TELLS_CHILDREN = os.path.exists("/proc/thread-self/children")
# How long processes that remove shared memory may take after all of its users have ended.
CLEANER_SECONDS = 1.0
END_SECONDS = 5.0

# They exit when the last process that uses them has ended, and remove its files from /dev/shm.
_CLEANER_CODE = re.compile(rb"from [\w.]*\bresource_tracker import main; ?main\(")  # multiprocessing, loky
_CLEANER_PROGRAM = b"torch_shm_manager"


class Process(NamedTuple):
    """A process from /proc. Equal `pid` and `started` mean the same process."""

    pid: int
    parent: int
    session: int
    state: str  # a letter; Z: its first thread has ended, and it was not waited for
    started: int  # clock ticks since boot
    num_threads: int

    @property
    def has_ended(self) -> bool:
        """Whether the process only waits to be reaped. While other threads end, it still holds memory and devices."""
        return self.state in "ZX" and self.num_threads <= 1


def read_process(pid: int) -> Process | None:
    """Return the process from /proc; None if it does not exist, or cannot be read."""
    try:
        return _read(pid)
    except OSError:
        return None


def _read(pid: int) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", errors="replace") as file:
            line = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command, in parentheses, may itself contain spaces and parentheses.
    fields = line.rpartition(")")[2].split()
    return Process(pid, int(fields[1]), int(fields[3]), fields[0], int(fields[19]), int(fields[17]))


def peer_uid(sock: socket.socket) -> int:
    """Return the user of the process at the other end of a unix socket."""
    import socket  # noqa: PLC0415 - keepers and shims need none of these, and there are many
    import struct  # noqa: PLC0415

    credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])


def is_own_peer(sock: socket.socket) -> bool:
    """Whether the process at the other end of a unix socket is of this user or root.

    A user who is root in a user namespace has another number here: the user's, or 65534 where it is not mapped.
    """
    return peer_uid(sock) in (0, os.getuid())


def cpu_ticks(pid: int) -> int:
    """Return the processor time that a process has used; 0 if it does not exist."""
    try:
        with open(f"/proc/{pid}/stat", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])


def processes() -> dict[int, Process]:
    """Return all processes in /proc, by pid."""
    found = (read_process(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return {process.pid: process for process in found if process is not None}


def below(root: int) -> Iterator[Process]:
    """Yield the living processes below `root`, children before grandchildren.

    A zombie whose other threads still run has not ended, and keeps its children.
    """
    if not _TELLS_CHILDREN:
        yield from _below_in(processes(), root)
        return
    frontier = _children_of(root)
    for pid in frontier:  # grows during the loop
        frontier.extend(_children_of(pid))
        process = read_process(pid)
        if process is not None and not process.has_ended:
            yield process


def _below_in(table: Mapping[int, Process], root: int) -> Iterator[Process]:
    by_parent: dict[int, list[Process]] = {}
    for process in table.values():
        by_parent.setdefault(process.parent, []).append(process)
    frontier = by_parent.get(root, [])
    for process in frontier:  # grows during the loop
        frontier.extend(by_parent.get(process.pid, ()))
        if not process.has_ended:
            yield process


def descendants(root: int) -> list[int]:
    """Return the pids of the living processes below `root`, children before grandchildren."""
    return [process.pid for process in below(root)]


def children() -> list[int]:
    """Return the direct children of this process's main thread, including those not yet waited for."""
    me = os.getpid()
    if not _TELLS_CHILDREN:
        return [process.pid for process in processes().values() if process.parent == me]
    return _children_of_thread(me, str(me))


def _children_of(pid: int) -> list[int]:
    """Return the direct children of all threads of a process; none if it has ended."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += _children_of_thread(pid, thread)
    return found


def _children_of_thread(pid: int, thread: str) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{thread}/children") as file:
            return [int(child) for child in file.read().split()]
    except OSError:
        return []


def command_line(pid: int) -> list[bytes]:
    """Return the arguments of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
    except OSError:
        return []


def name_of(pid: int) -> str:
    """Return the name of a process as ps shows it; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return ""


def is_exiting(pid: int) -> bool:
    """Whether a process has released its memory: an exiting process does so before it becomes a zombie."""
    usage = usage_of(pid)
    return usage is None or usage[0] == 0


def usage_of(pid: int) -> tuple[int, float] | None:
    """Return the memory of a process in bytes and its CPU time in seconds; None if it has ended."""
    try:
        resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return resident, (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND


def is_same(pid: int, started: int) -> bool:
    """Whether the process with this pid still runs and started at this time.

    A process that cannot be read, because this process has no descriptors left, counts as running.
    """
    try:
        process = _read(pid)
    except OSError:
        return os.path.exists(f"/proc/{pid}")
    return process is not None and process.started == started and not process.has_ended


# -- this process ---------------------------------------------------------------------------------------------


def adopt_orphans() -> None:
    """Make this process the parent of every descendant whose own parent died."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with(parent: int, sig: signal.Signals = signal.SIGKILL) -> None:
    """Make the kernel send this process a signal when its parent ends, even by SIGKILL."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, sig, 0, 0, 0)
    if os.getppid() != parent:  # the parent exited before PR_SET_PDEATHSIG took effect
        os._exit(1)


def show_as(arguments: list[str]) -> None:
    """Have ps show these arguments, if they take no more space than the original arguments."""
    fields = Path("/proc/self/stat").read_text(errors="replace").rpartition(")")[2].split()
    start, end = int(fields[45]), int(fields[46])  # arg_start and arg_end
    text = b"".join(os.fsencode(argument) + b"\0" for argument in arguments)
    if 0 < len(text) <= end - start:
        ctypes.memmove(start, text.ljust(end - start, b"\0"), end - start)


def reap(known: Collection[int] = ()) -> None:
    """Reap adopted orphans; `known` children are reaped by their owners."""
    for pid in set(children()) - set(known):
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


# -- ending ---------------------------------------------------------------------------------------------------


def signal_same(pid: int, started: int, sig: int) -> bool:
    """Signal the process with this pid if it started at this time; return whether it did."""
    try:
        fd = os.pidfd_open(pid)  # a later process with this pid is another one
    except OSError:
        return False
    try:
        if not is_same(pid, started):
            return False
        signal.pidfd_send_signal(fd, sig)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def signal_if_caught(pid: int, started: int, sig: int) -> bool:
    """Signal the process if it is that one and has a handler of this signal, which would end it otherwise."""
    try:
        caught = Path(f"/proc/{pid}/status").read_text(errors="replace").split("SigCgt:")[1].split()[0]
    except (OSError, IndexError):
        return False
    return bool(int(caught, 16) >> (sig - 1) & 1) and signal_same(pid, started, sig)


def removes_shared_memory(pid: int) -> bool:
    """Whether a process exists only to remove its users' files from /dev/shm (Python's resource tracker)."""
    arguments = command_line(pid)
    if not arguments:
        return False
    is_tracker = b"-c" in arguments and any(_CLEANER_CODE.match(argument) for argument in arguments)
    return is_tracker or os.path.basename(arguments[0]) == _CLEANER_PROGRAM


class TreeShutdown:
    """Ends all processes below a process: cleaners after a delay, all others at once.

    Call `step` until it returns True. The caller, as the parent, reaps them.
    """

    def __init__(self, root: int, spare: Collection[int] = (), cleaner_seconds: float = CLEANER_SECONDS) -> None:
        self.killed: dict[int, str] = {}  # names, by pid
        self._root = root
        self._spare = spare
        self._cleaners_until = time.monotonic() + cleaner_seconds
        self._num_empty = self._num_without_victims = 0

    def step(self) -> bool:
        """Kill all; return True if there were none twice in a row, because reading /proc can miss orphans."""
        left = [process for process in below(self._root) if process.pid not in self._spare]
        patient = time.monotonic() < self._cleaners_until
        victims = [
            each for each in left if each.pid in self.killed or not (patient and removes_shared_memory(each.pid))
        ]
        for pid, started in ((each.pid, each.started) for each in victims):
            if not is_exiting(pid):  # else it ends by itself: a rank's shim does so after its last report
                self.killed.setdefault(pid, name_of(pid))
            signal_same(pid, started, signal.SIGKILL)
        self._num_empty = 0 if left else self._num_empty + 1
        self._num_without_victims = 0 if victims else self._num_without_victims + 1
        return self._num_empty >= 2

    @property
    def is_counted(self) -> bool:
        """Whether all processes except the cleaners have ended."""
        return self._num_without_victims >= 2


def end_orphans(known: Collection[int]) -> None:
    """Kill adopted orphans and all processes below them; `known` are own children. Cleaners exit by themselves."""
    for orphan in map(read_process, set(children()) - set(known)):
        for process in () if orphan is None else (orphan, *below(orphan.pid)):
            if not removes_shared_memory(process.pid):
                signal_same(process.pid, process.started, signal.SIGKILL)


def end_below(root: int, spare: Collection[int] = (), reap_known: Collection[int] | None = None) -> dict[int, str]:
    """End all processes below `root` except `spare`; return the names of the killed ones, by pid.

    Blocks until none is left, at most END_SECONDS. Adopted orphans are reaped meanwhile, except for the `reap_known`
    children; None: this process is not their parent.
    """
    deadline = time.monotonic() + END_SECONDS
    ending = TreeShutdown(root, spare)
    while not ending.step() and time.monotonic() < deadline:
        if reap_known is not None:
            reap(reap_known)
        time.sleep(_POLL_SECONDS)
    if reap_known is not None:
        reap(reap_known)
    return ending.killed
