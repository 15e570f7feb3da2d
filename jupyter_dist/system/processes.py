"""Processes as /proc shows them: who is below whom, is that still the same one, and how they are ended."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_POLL_SECONDS = 0.005
# How long those that remove shared memory may take after everything that used it has ended.
CLEANER_SECONDS = 1.0
END_SECONDS = 5.0

# They end by themselves when the last process that uses them has ended, and remove what it left in /dev/shm.
_CLEANER_CODE = re.compile(rb"from [\w.]*\bresource_tracker import main; ?main\(")  # multiprocessing, loky
_CLEANER_PROGRAM = b"torch_shm_manager"


class Process(NamedTuple):
    """One line of /proc. Two with the same `pid` and `started` are the same process."""

    pid: int
    parent: int
    session: int
    state: str  # a letter; Z: it has ended and was not waited for
    started: int  # clock ticks since the machine came up


def read_process(pid: int) -> Process | None:
    """Return what /proc says of it; None when there is none."""
    try:
        line = Path("/proc", str(pid), "stat").read_text(errors="replace")
    except OSError:
        return None
    # The command, in brackets, may hold spaces and brackets itself.
    fields = line.rpartition(")")[2].split()
    return Process(pid, int(fields[1]), int(fields[3]), fields[0], int(fields[19]))


def processes() -> dict[int, Process]:
    """Every process that /proc shows, by pid."""
    found = (read_process(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return {process.pid: process for process in found if process is not None}


def below(root: int, table: Mapping[int, Process]) -> Iterator[Process]:
    """Yield the living processes below `root`, children before grandchildren.

    A zombie whose other threads still run has its children yet: it is looked below, but it is none itself.
    """
    children: dict[int, list[Process]] = {}
    for process in table.values():
        children.setdefault(process.parent, []).append(process)
    frontier = children.get(root, [])
    for process in frontier:  # grows while it is read
        frontier.extend(children.get(process.pid, ()))
        if process.state not in "ZX":
            yield process


def descendants(root: int) -> list[int]:
    """Return the pids of the living processes below `root`, children before grandchildren."""
    return [process.pid for process in below(root, processes())]


def children() -> list[int]:
    """The direct children of this process, those that were not waited for among them."""
    me = os.getpid()
    try:
        # One small read, where the kernel offers it.
        return [int(pid) for pid in Path(f"/proc/{me}/task/{me}/children").read_text().split()]
    except FileNotFoundError:
        return [process.pid for process in processes().values() if process.parent == me]


def command_line(pid: int) -> list[bytes]:
    """The arguments it was started with; empty when it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
    except OSError:
        return []


def name_of(pid: int) -> str:
    """The name that ps shows; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return ""


def usage_of(pid: int) -> tuple[int, float] | None:
    """Return the memory it holds, in bytes, and the processor time it used, in seconds; None when it is gone."""
    try:
        resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return resident, (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND


def is_same(pid: int, started: int) -> bool:
    """Whether the process of that number still is the one that started then, and has not ended."""
    process = read_process(pid)
    return process is not None and process.started == started and process.state not in "ZX"


# -- this process ---------------------------------------------------------------------------------------------


def adopt_orphans() -> None:
    """Make this process the parent of every descendant whose own parent died."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with(parent: int, sig: signal.Signals = signal.SIGKILL) -> None:
    """Have the kernel send this process a signal when its parent ends, even by SIGKILL."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, sig, 0, 0, 0)
    if os.getppid() != parent:  # it died before the kernel knew of our wish
        os._exit(1)


def reap(known: Collection[int] = ()) -> None:
    """Collect the exit status of adopted orphans; `known` children are collected by their owners."""
    for pid in set(children()) - set(known):
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


# -- ending ---------------------------------------------------------------------------------------------------


def send_signal(pid: int, sig: signal.Signals) -> None:
    """Signal a process of ours; one that is gone already is fine."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, sig)


def signal_same(pid: int, started: int, sig: signal.Signals) -> bool:
    """Signal a process only if it still is the one that started then; whether it was."""
    try:
        fd = os.pidfd_open(pid)  # whatever has the number later is another one
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


def removes_shared_memory(pid: int) -> bool:
    """Whether it only waits for its users' end, to remove what they left in /dev/shm (Python's resource tracker)."""
    arguments = command_line(pid)
    if not arguments:
        return False
    is_tracker = b"-c" in arguments and any(_CLEANER_CODE.match(argument) for argument in arguments)
    return is_tracker or os.path.basename(arguments[0]) == _CLEANER_PROGRAM


class Ending:
    """Ends what is below some process: all but its cleaners at once, these when they had their time.

    Call `step` until it is True. What is to be reaped is the caller's, who is its parent.
    """

    def __init__(self, root: int, spare: Collection[int] = (), cleaner_seconds: float = CLEANER_SECONDS) -> None:
        self.killed: dict[int, str] = {}  # names, by pid
        self._root = root
        self._spare = spare
        self._cleaners_until = time.monotonic() + cleaner_seconds
        self._num_empty = self._num_without_victims = 0

    def step(self) -> bool:
        """Kill what is there now; whether nothing was, twice: who loses its parent while /proc is read is not seen."""
        left = [process.pid for process in below(self._root, processes()) if process.pid not in self._spare]
        patient = time.monotonic() < self._cleaners_until
        victims = [pid for pid in left if pid in self.killed or not (patient and removes_shared_memory(pid))]
        for pid in victims:
            self.killed.setdefault(pid, name_of(pid))
            send_signal(pid, signal.SIGKILL)
        self._num_empty = 0 if left else self._num_empty + 1
        self._num_without_victims = 0 if victims else self._num_without_victims + 1
        return self._num_empty >= 2

    @property
    def is_counted(self) -> bool:
        """Whether all but the cleaners have ended."""
        return self._num_without_victims >= 2


def end_orphans(known: Collection[int]) -> None:
    """Kill whom this process adopted, with all below them; `known` are its own children. Cleaners end by themselves."""
    orphans = set(children()) - set(known)
    if not orphans:
        return
    table = processes()
    for orphan in orphans:
        for pid in (orphan, *(process.pid for process in below(orphan, table))):
            if not removes_shared_memory(pid):
                send_signal(pid, signal.SIGKILL)


def end_below(root: int, spare: Collection[int] = (), reap_known: Collection[int] | None = None) -> dict[int, str]:
    """End everything below `root` but those to spare; return the names of what was killed, by pid.

    Blocks until nothing is left, at most END_SECONDS. Orphans that this process adopted are reaped meanwhile, but
    for the `reap_known` children; None: it is no parent of theirs.
    """
    deadline = time.monotonic() + END_SECONDS
    ending = Ending(root, spare)
    while not ending.step() and time.monotonic() < deadline:
        if reap_known is not None:
            reap(reap_known)
        time.sleep(_POLL_SECONDS)
    if reap_known is not None:
        reap(reap_known)
    return ending.killed
