"""The first steps of a rank process, forked or fresh: its own session, its descriptors, its folder."""

from __future__ import annotations

import ctypes
import os
import signal

from jupyter_dist.protocol.specs import RankSpec

_PR_SET_PDEATHSIG = 1


def become_rank(spec: RankSpec, channel: int, stdout: int, stderr: int) -> int:
    """Turn this process into a rank and run it; returns its exit code."""
    parent = os.getppid()
    os.setsid()
    _die_with(parent)
    _take_descriptors(stdout, stderr)
    os.chdir(spec.cwd)
    from .main import run

    return run(spec, channel)


def die_with_agent(agent_pid: int) -> None:
    """End this process when the agent ends, even by SIGKILL."""
    _die_with(agent_pid)


def _die_with(parent: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before the kernel knew of our wish
        os._exit(1)


def _take_descriptors(stdout: int, stderr: int) -> None:
    devnull = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((devnull, 0), (stdout, 1), (stderr, 2)):
        os.dup2(source, target)
        if source != target:
            os.close(source)
