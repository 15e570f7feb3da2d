"""Processes: nothing that a benchmark started outlives it, and what each of them used."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def wait_until(condition: Callable[[], bool], seconds: float, what: str, interval: float = 0.02) -> None:
    """Poll a condition; raises TimeoutError, naming it, when it does not hold in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:g} s")
        time.sleep(interval)


def parents() -> dict[int, int]:
    """The parent of every process that is not a zombie."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                state, parent = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[:2]
                if state != "Z":
                    found[int(name)] = int(parent)
    return found


def descendants(root: int) -> list[int]:
    """Every living process below `root`."""
    table = parents()
    found: list[int] = []
    frontier = {root}
    while frontier:
        frontier = {pid for pid, parent in table.items() if parent in frontier}
        found.extend(frontier)
    return found


def command_line(pid: int) -> str:
    """The words of a process's command; empty when it is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    return ""


def kill(pids: Iterable[int]) -> None:
    """Kill these processes, which are ours, and collect those that are our children."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    _reap()


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


@contextlib.contextmanager
def nothing_left() -> Iterator[None]:
    """Adopt every orphan among our descendants, and at the end kill all there are."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    try:
        yield
    finally:
        with contextlib.suppress(TimeoutError):
            wait_until(_kill_all, 10, "our processes end", 0.05)


def _kill_all() -> bool:
    left = descendants(os.getpid())
    kill(left)
    return not left


def cpu_seconds(roots: Iterable[int]) -> float:
    """CPU used so far by these process trees, those of their children that ended and were collected included."""
    total = 0.0
    for pid in {member for root in roots for member in (root, *descendants(root))}:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            # Its own by the nanosecond: a tick is more than a forked rank needs.
            total += scheduled_seconds(pid) + sum(int(field) for field in fields[13:15]) / _TICKS
    return total


def scheduled_seconds(pid: int) -> float:
    """CPU used so far by the living threads of one process, to the nanosecond."""
    total = 0
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                total += int(Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[0])
    return total / 1e9


def wakeups(pid: int) -> int:
    """How often the threads of a process have begun to wait so far."""
    total = 0
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                status = Path(f"/proc/{pid}/task/{task}/status").read_text()
                total += int(status.split("voluntary_ctxt_switches:")[1].split()[0])
    return total


def resident_bytes(pid: int) -> int:
    """RSS of a process; 0 when it is gone."""
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES
    return 0


def proportional_bytes(pid: int) -> int:
    """PSS of a process; 0 when it is gone."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


class MemoryWatch:
    """The most memory that some processes had while the block ran, in a thread of its own."""

    def __init__(self, pids: dict[str, int], interval: float = 0.05) -> None:
        self._pids = pids
        self._interval = interval
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.before = {name: resident_bytes(pid) for name, pid in pids.items()}
        self.most = dict(self.before)

    def __enter__(self) -> MemoryWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(5)

    @property
    def growth(self) -> dict[str, int]:
        """By how many bytes each grew at most."""
        return {name: self.most[name] - self.before[name] for name in self._pids}

    def _run(self) -> None:
        while not self._stop.wait(self._interval):
            for name, pid in self._pids.items():
                self.most[name] = max(self.most[name], resident_bytes(pid))
