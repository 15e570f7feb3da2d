"""The keeper: the agent's parent, which only waits, and ends what a killed agent leaves running.

A process that a rank starts may leave its parent, its session and its environment. If agent and zygote die at once,
no process is left that could find it; but the kernel gives orphans to the nearest living ancestor that asks for them:
the keeper.
"""

from __future__ import annotations

import os
import signal
import sys

from jupyter_dist.system.code import running


def main(argument: str) -> int:
    """Run the agent of the group directory `argument` as a child until nothing is left; returns its exit code."""
    if forked := os.environ.pop("JUPYTER_DIST_FORKED_AGENT", ""):  # by the forkserver, which did all this
        agent, code = (int(number) if number else None for number in forked.split(","))
    else:
        code = running.hold()
        boot = os.path.join(os.path.dirname(__file__), "boot.py")
        # A new program, not a fork, so that the two have different command lines.
        agent = os.posix_spawn(sys.executable, [sys.executable, boot, "agent", argument], os.environ)
    assert agent is not None
    signal.signal(signal.SIGTERM, lambda *_: os.kill(agent, signal.SIGTERM))
    for signum in (signal.SIGINT, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    from jupyter_dist.system.processes import adopt_orphans, end_below  # noqa: PLC0415 - the agent starts meanwhile

    adopt_orphans()
    # Reaped last: until then its pid cannot be reused, so signals cannot hit another process.
    os.waitid(os.P_PID, agent, os.WEXITED | os.WNOWAIT)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _, status = os.waitpid(agent, 0)
    end_below(os.getpid(), reap_known=())
    running.leave(code)
    exit_code = os.waitstatus_to_exitcode(status)
    return exit_code if exit_code >= 0 else 128 - exit_code
