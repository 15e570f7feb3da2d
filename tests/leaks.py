"""What a test must not leave: descriptors, threads, processes, shared memory, directories of groups."""

from __future__ import annotations

import contextlib
import gc
import os
import re
import shutil
import signal
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from waits import pause

from jupyter_dist.server.spawner.directories import GroupDirectory
from jupyter_dist.server.spawner.forkservers import FOLDER_VARIABLE
from jupyter_dist.system.processes import (
    adopt_orphans,
    command_line,
    descendants,
    removes_shared_memory,
)

SETTLE_SECONDS = 30.0  # on a busy machine; what has not ended by then, never will
# torch's have their maker in their name; Python's shared memory and semaphores, and loky's, have not.
_SHARED_MEMORY = re.compile(r"torch_(\d+)_|psm_|sem\.mp-|sem\.loky-|loky-")
# What tests share on purpose (tests/shared.py), with all processes below it; its owner cleans it up.
OUTLIVING: set[int] = set()


def pytest_configure():
    adopt_orphans()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    """Clean up after any failure: no process of this run may outlive it."""
    if not session.config.getoption("numprocesses", None):  # else each worker does it for itself
        end_all(list(children_of(os.getpid())))


def end_all(pids: Iterable[int]) -> None:
    """Kill these, and what they start meanwhile; what removes shared memory ends by itself."""
    for pid in pids:
        kill(pid)
        for below_it in descendants(pid):
            if not removes_shared_memory(below_it):
                kill(below_it)


def kill(pid: int) -> None:
    """Kill it, if it is there."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def children_of(root: int) -> dict[int, str]:
    """The living processes below `root`, with their commands."""
    found = {pid: b" ".join(command_line(pid)).decode(errors="replace")[:200] for pid in descendants(root)}
    return {pid: command for pid, command in found.items() if "multiprocessing.resource_tracker" not in command}


def descriptors() -> dict[int, str]:
    found = {}
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
    # The driver's library keeps those of NVIDIA's devices, once a test has asked it anything.
    others = (f"/proc/{os.getpid()}/fd", "/dev/nvidia")
    return {fd: target for fd, target in found.items() if not target.startswith(others)}


def abandoned_shared_memory() -> set[str]:
    """What torch and Python left in /dev/shm: its creator is gone, or no process has it open."""
    names = {name: _SHARED_MEMORY.match(name) for name in os.listdir("/dev/shm")}
    abandoned = {name for name, found in names.items() if found and found[1] and not Path("/proc", found[1]).exists()}
    anonymous = {name for name, found in names.items() if found and not found[1]}  # the name does not tell whose
    return abandoned | (anonymous - _open_shared_memory() if anonymous else set())


def _open_shared_memory() -> set[str]:
    found = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            maps = Path("/proc", name, "maps").read_text(errors="replace")
            found |= {line.rpartition("/dev/shm/")[2] for line in maps.splitlines() if "/dev/shm/" in line}
            links = (os.readlink(link) for link in Path("/proc", name, "fd").iterdir())
            found |= {link.removeprefix("/dev/shm/") for link in links if link.startswith("/dev/shm/")}
    return found


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
    ended = time.monotonic()
    while (left := _left(*before, directories)) and (waited := time.monotonic() - ended) < SETTLE_SECONDS:
        gc.collect()
        time.sleep(pause(waited))
    if left:
        _end_what_is_left(before[0], directories, abandoned_shared_memory() - before[3])
    assert not left, left


def _left(
    processes: set[int], num_fds: int, threads: set[threading.Thread], segments: set[str], directories: list[Path]
) -> list[str]:
    expected = _expected(processes)
    left = [f"process {pid}: {cmd}" for pid, cmd in children_of(os.getpid()).items() if pid not in expected]
    left += [f"thread {thread.name}" for thread in set(threading.enumerate()) - threads if not thread.daemon]
    left += [f"/dev/shm/{name}" for name in abandoned_shared_memory() - segments]
    left += [str(path) for path in directories if path.exists()]
    fds = descriptors()
    if len(fds) > num_fds:
        left.append(f"{len(fds) - num_fds} descriptors of {fds}")
    return left


def _end_what_is_left(processes: set[int], directories: list[Path], segments: set[str]) -> None:
    """The test has failed; the next one begins on a clean machine."""
    end_all(pid for pid in children_of(os.getpid()) if pid not in _expected(processes))
    for path in directories:
        shutil.rmtree(path, ignore_errors=True)
    for name in segments:
        Path("/dev/shm", name).unlink(missing_ok=True)


def _expected(processes: set[int]) -> set[int]:
    return processes.union(OUTLIVING, forkservers(), *(children_of(root) for root in OUTLIVING))


def forkservers() -> set[int]:
    """Those of the whole run (tests/conftest.py), which end with it; what is forked from them is not below them."""
    folder = os.fsencode(os.environ.get(FOLDER_VARIABLE, "none"))
    commands = {pid: command_line(pid)[-2:] for pid in descendants(os.getpid())}
    return {pid for pid, found in commands.items() if found[:1] == [b"forkserver"] and found[1].startswith(folder)}
