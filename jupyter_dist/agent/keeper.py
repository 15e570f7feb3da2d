"""The keeper: the agent's parent, which only waits, and ends what a killed agent leaves running.

A process that a rank starts may leave its parent, its session and its environment. If agent and zygote die at once,
no process is left that knows it; but the kernel gives orphans to the nearest living ancestor that asks for them: this
one.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys

CODE_FOLDER = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def main(argument: str) -> int:
    """Run the agent of the group directory `argument` as a child until nothing is left; returns its exit code."""
    code = _hold_code()
    boot = os.path.join(os.path.dirname(__file__), "boot.py")
    # A new program, not a fork, so that the two can be told apart by their command lines.
    agent = os.posix_spawn(sys.executable, [sys.executable, boot, "agent", argument], os.environ)
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
    if code is not None:
        _leave_code(code)
    exit_code = os.waitstatus_to_exitcode(status)
    return exit_code if exit_code >= 0 else 128 - exit_code


def _hold_code() -> int | None:
    """Protect the copy of our code that this group runs from removal (launcher/code.py); None if it is not a copy."""
    if not os.path.basename(CODE_FOLDER).startswith("code-"):
        return None
    fd = os.open(CODE_FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(fd, fcntl.LOCK_SH)
    return fd


def _leave_code(fd: int) -> None:
    """Remove the copy, if no other group or server of this version uses it."""
    import shutil  # noqa: PLC0415 - only here, at the end

    try:
        fcntl.flock(fd, fcntl.LOCK_UN)  # if two end at once, exactly one must see that it is the last
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(CODE_FOLDER, ignore_errors=True)
        os.rmdir(os.path.dirname(CODE_FOLDER))
    except OSError:
        pass  # still used, or the copy of another version is beside it
