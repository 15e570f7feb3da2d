"""The keeper: the agent's parent, which only waits, and ends what an agent that was killed has left.

What ranks start may leave its parent, its session and its environment. When agent and zygote die at once, nobody who
knows it is left; but the kernel gives orphans to the nearest living ancestor that asks for them, and that is here.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time

END_SECONDS = 5.0
POLL_SECONDS = 0.005


def main(argument: str) -> int:
    """Run the agent of the group directory `argument` as a child until nothing is left; returns its exit code."""
    boot = os.path.join(os.path.dirname(__file__), "boot.py")
    # A process of its own program, not a fork: the two are told apart by their command lines.
    agent = os.posix_spawn(sys.executable, [sys.executable, boot, "agent", argument], os.environ)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(agent, signal.SIGTERM))
    for signum in (signal.SIGINT, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    from .linux import adopt_orphans  # noqa: PLC0415 - the agent starts meanwhile

    adopt_orphans()
    # Not reaped before nobody signals it any more: its number could be another's.
    os.waitid(os.P_PID, agent, os.WEXITED | os.WNOWAIT)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _, status = os.waitpid(agent, 0)
    _end_what_is_left()
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _end_what_is_left() -> None:
    from .linux import descendants, send_signal  # noqa: PLC0415

    deadline = time.monotonic() + END_SECONDS
    num_empty = 0
    # Twice: one whose parent dies while /proc is read has no parent in what was read.
    while num_empty < 2 and time.monotonic() < deadline:
        left = descendants(os.getpid())
        num_empty = 0 if left else num_empty + 1
        for pid in left:
            send_signal(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if left:
            time.sleep(POLL_SECONDS)
