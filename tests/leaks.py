"""What a test may not leave behind: descriptors, threads, processes, shared memory, directories of groups."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_dist.launcher.directories import GroupDirectory

SETTLE_SECONDS = 30.0  # on a busy machine; what has not ended by then, never will
_PR_SET_CHILD_SUBREAPER = 36
# What tests share on purpose (tests/shared.py), with all below it: whoever lends it looks after it.
OUTLIVING: set[int] = set()


def adopt_orphans() -> None:
    """Whatever a process of a test leaves behind becomes a child of the test run, and is seen."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children_of(root: int) -> dict[int, str]:
    """The living processes below `root`, with their commands."""
    parents: dict[int, int] = {}
    ended = set()  # but their children may not know it yet
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            fields = Path("/proc", name, "stat").read_text(errors="replace").rpartition(")")[2].split()
            parents[int(name)] = int(fields[1])
            if fields[0] in "ZX":
                ended.add(int(name))
    found, frontier = {}, {root}
    while frontier:
        frontier = {pid for pid, parent in parents.items() if parent in frontier}
        found.update({pid: _command(pid) for pid in frontier - ended})
    return {pid: command for pid, command in found.items() if "multiprocessing.resource_tracker" not in command}


def descriptors() -> dict[int, str]:
    found = {}
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
    return {fd: target for fd, target in found.items() if target != f"/proc/{os.getpid()}/fd"}


def abandoned_shared_memory() -> set[str]:
    """Segments of torch and Python whose makers are gone."""
    abandoned = set()
    for name in os.listdir("/dev/shm"):
        maker = re.match(r"torch_(\d+)_", name)
        if maker and not Path("/proc", maker[1]).exists():
            abandoned.add(name)
    return abandoned


@contextlib.contextmanager
def nothing_left() -> Iterator[None]:
    """Everything that begins within has ended at most SETTLE_SECONDS after its end."""
    adopt_orphans()
    directories: list[Path] = []
    create = GroupDirectory.create

    def recorded(parent: Path) -> GroupDirectory:
        directory = create(parent)
        directories.append(directory.path)
        return directory

    before = (set(children_of(os.getpid())), len(descriptors()), set(threading.enumerate()), abandoned_shared_memory())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GroupDirectory, "create", recorded)
        yield
    deadline = time.monotonic() + SETTLE_SECONDS
    while (left := _left(*before, directories)) and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.02)
    assert not left, left


def _left(
    processes: set[int], num_fds: int, threads: set[threading.Thread], segments: set[str], directories: list[Path]
) -> list[str]:
    expected = processes.union(OUTLIVING, *(children_of(root) for root in OUTLIVING))
    left = [f"process {pid}: {cmd}" for pid, cmd in children_of(os.getpid()).items() if pid not in expected]
    left += [f"thread {thread.name}" for thread in set(threading.enumerate()) - threads if not thread.daemon]
    left += [f"/dev/shm/{name}" for name in abandoned_shared_memory() - segments]
    left += [str(path) for path in directories if path.exists()]
    fds = descriptors()
    if len(fds) > num_fds:
        left.append(f"{len(fds) - num_fds} descriptors of {fds}")
    return left


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200]
    except OSError:
        return "?"
