"""A rank's shim: its parent process, which reports how the rank ended and then ends the processes of the rank.

Like containerd's: a process that the rank starts may leave its parent, its session and its environment, but the
kernel gives every orphan to the nearest ancestor that asks for them. So every process below the shim belongs to this
rank. It costs a fork and two megabytes (docs/decisions/0009-a-shim-per-rank.md).
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence

from jupyter_dist.protocol.wire.specs import RankSpec
from jupyter_dist.system.processes import END_SECONDS, TreeShutdown, adopt_orphans, die_with, read_process, reap
from jupyter_dist.transport.frames import Header, encode_frame

# The processes that the rank had started are counted before its end is reported; this limits that delay.
COUNT_SECONDS = 0.3
POLL_SECONDS = 0.005
MAX_NAMES = 1000


def run(live: Callable[[], int], report_fd: int, fds: Sequence[int], parent: int) -> int:
    """Fork a rank that runs `live` with these descriptors; report its start and its end.

    Returns when no process of the rank is left. When `parent` (zygote or agent) dies, the rank and all processes below
    it end at once. Until then SIGTERM is ignored: engines send it to all processes of a job, and the agent decides.
    """
    adopt_orphans()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the server's terminal is not for ranks
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    die_with(parent, signal.SIGTERM)
    shim = os.getpid()
    rank = os.fork()
    if rank == 0:
        _run_rank(live, report_fd, shim)
    # Not reaped before its end is known, so its pid cannot be reused.
    signal.signal(signal.SIGTERM, lambda *_: None if os.getppid() == parent else os.kill(rank, signal.SIGKILL))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    for fd in fds:
        os.close(fd)
    born = read_process(rank)
    _report(report_fd, {"t": "born", "pid": rank, "started": born.started if born else 0})
    _wait_for_end(rank)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _end_what_is_left(rank, report_fd)
    return 0


def _run_rank(live: Callable[[], int], report_fd: int, shim: int) -> None:
    code = 1
    try:
        die_with(shim)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        os.close(report_fd)
        code = live()
    except BaseException:  # the rank must never return into the shim
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def become_rank(spec: RankSpec, channel: int, stdout: int, stderr: int) -> int:
    """Turn this process into a rank, with its own session, folder and descriptors, and run it; return its exit code."""
    os.setsid()
    os.umask(int(os.environ.pop("JUPYTER_DIST_UMASK", "77"), 8))  # the user's, not the agent's
    _take_descriptors(stdout, stderr)
    try:
        os.chdir(spec.cwd)
    except OSError as err:
        sys.stderr.write(f"The group's folder {spec.cwd} cannot be entered: {err.strerror}.\n")
        return 1
    from jupyter_dist.rank.main import run as run_rank

    return run_rank(spec, channel)


def _take_descriptors(stdout: int, stderr: int) -> None:
    devnull = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((devnull, 0), (stdout, 1), (stderr, 2)):
        os.dup2(source, target)
        if source != target:
            os.close(source)


def _wait_for_end(rank: int) -> None:
    """Wait until the rank is a zombie; reap orphans that end meanwhile."""
    while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)) is not None and ended.si_pid != rank:
        os.waitpid(ended.si_pid, 0)


def _end_what_is_left(rank: int, report_fd: int) -> None:
    began, ending, is_told, is_done = time.monotonic(), TreeShutdown(os.getpid()), False, False
    while not is_done and time.monotonic() - began < END_SECONDS:
        is_done = ending.step()
        if not is_told and (ending.is_counted or time.monotonic() - began > COUNT_SECONDS):
            _, status, usage = os.wait4(rank, 0)
            is_told = True
            _report(report_fd, _exited(rank, status, usage.ru_maxrss * 1024, ending.killed))
        if is_told:
            reap()
        if not is_done:
            time.sleep(POLL_SECONDS)


def _exited(rank: int, status: int, peak_bytes: int, killed: dict[int, str]) -> Header:
    sig = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    code = os.WEXITSTATUS(status) if sig is None else None
    names = list(killed.items())[:MAX_NAMES]
    return {"t": "exited", "pid": rank, "code": code, "signal": sig, "peak_bytes": peak_bytes, "killed": names}


def _report(fd: int, header: Header) -> None:
    with contextlib.suppress(OSError):  # no process is left to report to
        os.write(fd, encode_frame(header))
