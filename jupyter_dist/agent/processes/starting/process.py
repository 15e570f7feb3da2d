"""A rank's process on this machine, and what starts one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from jupyter_dist.agent.processes.death import Ending
from jupyter_dist.protocol import accelerators
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.wire.specs import INTERRUPT_SIGNAL, RankSpec
from jupyter_dist.system.inherited import without_threads
from jupyter_dist.system.limits import within
from jupyter_dist.system.processes import CLEANER_SECONDS, signal_if_caught, signal_same, usage_of
from jupyter_dist.transport.frames import Header

from . import outside
from .outside import SeenOutside

SETTLE_SECONDS = CLEANER_SECONDS + 1.0

_BOOT = str(Path(__file__).parents[2] / "boot.py")


@dataclass(frozen=True)
class ProcessHandle:
    """Identifies a rank's process, here one of this machine. Equal fields mean the same process."""

    pid: int
    started: int  # see system/processes.py
    node: int | None = None  # the node whose agent started the process; None: this agent started it

    def kill(self) -> None:
        """Kill the process, but no other process that reuses its pid."""
        signal_same(self.pid, self.started, signal.SIGKILL)

    def interrupt(self) -> None:
        """Interrupt the process's cell by a signal: its side thread, which interrupts it otherwise, cannot run."""
        signal_if_caught(self.pid, self.started, INTERRUPT_SIGNAL)

    async def look(self, seconds: float, knows_line: bool) -> SeenOutside | None:
        """Look from outside at the process, which does not answer; see outside.look."""
        return await outside.look(self.pid, self.started, seconds, knows_line)

    async def line_if_running(self) -> list[dict[str, Any]]:
        """Return the frames of its main thread if that computes now, none otherwise; see outside.line_if_running."""
        return await outside.line_if_running(self.pid, self.started)

    async def usage(self) -> tuple[int, float] | None:
        """Return the process's memory in bytes and CPU time in seconds; None if it has ended or cannot be asked."""
        return usage_of(self.pid)


OnExit = Callable[[ProcessHandle, Ending], Coroutine[Any, Any, None]]


class RankDescriptors(NamedTuple):
    """The rank's ends of its channel and pipes."""

    channel: int
    stdout: int
    stderr: int


@contextlib.contextmanager
def open_descriptors(open_them: Callable[[], RankDescriptors]) -> Iterator[RankDescriptors]:
    """Open descriptors for a process that starts in this context, and close them at its end.

    Raises:
        JupyterDistError: `start_failed`, if no descriptors are left.
    """
    try:
        fds = open_them()
    except OSError as err:
        raise not_started(str(err.strerror)) from err
    try:
        yield fds
    finally:
        for fd in fds:
            with contextlib.suppress(OSError):
                os.close(fd)


class ProcessStarter(Protocol):
    """Starts rank processes here, each as the child of a shim (rank/start/shim.py), and reports how they end."""

    @property
    def is_lost(self) -> bool:
        """Whether the starter has ended, and with it the ranks that it had started."""

    async def start(self, spec: RankSpec, fds: RankDescriptors) -> ProcessHandle:
        """Start a rank, which gets copies of the descriptors.

        Raises:
            JupyterDistError: `start_failed`, with the system's error.
        """

    def children(self) -> set[int]:
        """Return the pids that the starter reaps itself."""

    async def settle(self) -> None:
        """Wait for the processes that ended ranks had started, at most SETTLE_SECONDS."""

    async def stop(self) -> None:
        """End the processes that the starter started besides ranks. Idempotent."""


def not_started(reason: str) -> JupyterDistError:
    """Return the error for a process that could not be started."""
    hint = say("Start the group again; if that fails, too, check the limit on processes (ulimit -u) and agent.log.")
    return JupyterDistError("start_failed", say("A rank's process could not be started: %1.", reason), hint)


def ending_of(header: Header) -> Ending:
    """Return the Ending in a shim's `exited` message."""
    killed = tuple((int(pid), str(name)) for pid, name in header.get("killed", ()))
    return Ending(
        header["code"],
        header["signal"],
        header.get("peak_bytes"),
        header.get("because"),
        bool(header.get("out_of_memory")),
        killed,
    )


async def wait_until(condition: Callable[[], bool], changed: asyncio.Event) -> None:
    """Wait until the condition is true, at most SETTLE_SECONDS; `changed` is set whenever that may be."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while not condition() and (left := deadline - time.monotonic()) > 0:
        changed.clear()
        with contextlib.suppress(asyncio.TimeoutError):
            await within(left, changed.wait())


def spawn(role: str, channel: socket.socket, extra_fds: tuple[int, ...] = ()) -> subprocess.Popen[bytes]:
    """Start boot.py in this role, with one end of a channel."""
    environment: dict[str, Any] = {
        **os.environ,
        **without_threads(os.environ),
        **accelerators.for_zygote(),
        # This process must die with an agent that is killed (see rank/start/shim.py).
        "JUPYTER_DIST_AGENT_PID": str(os.getpid()),
    }
    with channel:
        return subprocess.Popen(
            [sys.executable, _BOOT, role, str(channel.fileno())],
            pass_fds=(channel.fileno(), *extra_fds),
            stdin=subprocess.DEVNULL,
            env=environment,
        )
