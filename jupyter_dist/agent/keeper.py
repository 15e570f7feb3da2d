"""The keeper: the agent's parent, which only waits, and ends what an agent that was killed has left.

What ranks start may leave its parent, its session and its environment. When agent and zygote die at once, nobody who
knows it is left; but the kernel gives orphans to the nearest living ancestor that asks for them, and that is here.
"""

from __future__ import annotations

import os
import signal
import sys


def main(argument: str) -> int:
    """Run the agent of the group directory `argument` as a child until nothing is left; returns its exit code."""
    boot = os.path.join(os.path.dirname(__file__), "boot.py")
    # A process of its own program, not a fork: the two are told apart by their command lines.
    agent = os.posix_spawn(sys.executable, [sys.executable, boot, "agent", argument], os.environ)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(agent, signal.SIGTERM))
    for signum in (signal.SIGINT, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    from jupyter_dist.system.processes import adopt_orphans, end_below  # noqa: PLC0415 - the agent starts meanwhile

    adopt_orphans()
    # Not reaped before nobody signals it any more: its number could be another's.
    os.waitid(os.P_PID, agent, os.WEXITED | os.WNOWAIT)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _, status = os.waitpid(agent, 0)
    end_below(os.getpid(), reap_known=())
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code
