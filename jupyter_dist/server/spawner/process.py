"""The process of a group's agent. The kernel shows whether it is alive; a missing answer does not."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from pathlib import Path

from jupyter_dist.system.limits import within
from jupyter_dist.system.processes import command_line, processes, read_process


class AgentProcess:
    """A running agent, keeper or forkserver, held by a pidfd: a process that reuses its pid is never signaled."""

    def __init__(self, pid: int, pidfd: int) -> None:
        self.pid = pid
        self._pidfd = pidfd

    @classmethod
    def find(cls, directory: Path, pid: object, role: str = "agent") -> AgentProcess | None:
        """Return the process with that role in a group's directory; None if there is none.

        The pid in the directory may be missing, damaged or reused: then all processes are searched.
        """
        if isinstance(pid, int) and (found := cls._open(directory, pid, role)) is not None:
            return found
        opened = (cls._open(directory, number, role) for number in processes() if _is(directory, number, role))
        return next((process for process in opened if process is not None), None)

    @classmethod
    def _open(cls, directory: Path, pid: int, role: str) -> AgentProcess | None:
        try:
            pidfd = os.pidfd_open(pid)
        except (OSError, OverflowError, ValueError):
            return None
        # Checked after opening the pidfd: a process that reused the pid would not look like ours.
        if _is(directory, pid, role):
            return cls(pid, pidfd)
        os.close(pidfd)
        return None

    def __enter__(self) -> AgentProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_stopped(self) -> bool:
        """Whether the process is stopped (SIGSTOP, a debugger), so that it cannot answer."""
        found = read_process(self.pid)
        return found is not None and found.state in "tT"

    def signal(self, signum: signal.Signals) -> None:
        """Send a signal; ignored if the process is gone."""
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self._pidfd, signum)

    async def wait(self, seconds: float | None) -> bool:
        """Wait until the process has ended, at most this long (None: no limit); return whether it has."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        # A separate descriptor, because two tasks may wait at once. A pidfd becomes readable when its process ends.
        fd = os.dup(self._pidfd)
        loop.add_reader(fd, ended.set)
        try:
            await within(seconds, ended.wait())
        except asyncio.TimeoutError:
            return False
        finally:
            loop.remove_reader(fd)
            os.close(fd)
        return True

    def ask_to_end(self) -> None:
        """Ask the process to shut down, whatever its version, even if it is stopped."""
        self.signal(signal.SIGTERM)
        self.signal(signal.SIGCONT)

    @property
    def parent(self) -> int | None:
        """Return the pid of the process's parent."""
        found = read_process(self.pid)
        return found.parent if found else None

    def close(self) -> None:
        """Close the pidfd; the process keeps running. Idempotent."""
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1


def _is(directory: Path, pid: int, role: str) -> bool:
    """Whether a process was started as this role in this directory; a zombie has no command line."""
    return command_line(pid)[-2:] == [role.encode(), os.fsencode(directory)]
