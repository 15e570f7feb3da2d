"""The first steps of a rank process, forked or fresh: its own session, its descriptors, its folder."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path

from jupyter_dist.protocol.specs import RankSpec

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_END_SECONDS = 5.0


def become_rank(spec: RankSpec, channel: int, stdout: int, stderr: int) -> int:
    """Turn this process into a rank and run it; returns its exit code."""
    parent = os.getppid()
    os.setsid()
    _die_with(parent)
    _take_descriptors(stdout, stderr)
    os.chdir(spec.cwd)
    from .main import run

    return run(spec, channel)


def die_with_agent(agent_pid: int, sig: signal.Signals = signal.SIGKILL) -> None:
    """Get this signal when the agent ends, even by SIGKILL."""
    _die_with(agent_pid, sig)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent died."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_descendants() -> None:
    """Kill everything below this process: ranks, and whatever they started."""
    deadline = time.monotonic() + _END_SECONDS
    num_empty = 0
    # Twice: one whose parent dies while /proc is read has no parent in what was read.
    while num_empty < 2 and time.monotonic() < deadline:
        left = _descendants()
        num_empty = 0 if left else num_empty + 1
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.005)


def _descendants() -> list[int]:
    """Also below zombies: a process whose first thread has ended is one, and still has its children."""
    children: dict[int, list[int]] = {}
    zombies = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            fields = Path("/proc", name, "stat").read_text(errors="replace").rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(int(name))
            if fields[0] == "Z":
                zombies.add(int(name))
    found = children.get(os.getpid(), [])
    for pid in found:  # grows while it is read
        found.extend(children.get(pid, ()))
    return [pid for pid in found if pid not in zombies]


def _die_with(parent: int, sig: signal.Signals = signal.SIGKILL) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, sig, 0, 0, 0)
    if os.getppid() != parent:  # it died before the kernel knew of our wish
        os._exit(1)


def _take_descriptors(stdout: int, stderr: int) -> None:
    devnull = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((devnull, 0), (stdout, 1), (stderr, 2)):
        os.dup2(source, target)
        if source != target:
            os.close(source)
