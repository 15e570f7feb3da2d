"""Agents that are forked from a forkserver of this test process, as the server's are (docs/decisions/0013-forkserver.md)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from waits import until

from jupyter_dist.server.spawner.forkservers import ForkedKeeper, ForkServers, NotForkedError
from jupyter_dist.system.processes import below, read_process

LINGER_SECONDS = 3600.0  # it ends with the test run (leaks.py)
_FORKSERVERS: dict[int, ForkServers] = {}


class ForkedAgent:
    """An agent whose keeper was killed, which makes it a child of this process: what tests need of Popen."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float) -> int:
        deadline = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("agent", timeout)
            time.sleep(0.01)
        return code

    def send_signal(self, signum: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, signum)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def fork_agent(boot: list[str], directory: Path, log_fd: int) -> ForkedAgent | None:
    """Return an agent whose zygote has torch already; None if no forkserver made one."""
    # Its own: what it forks must come to this process, not to the server that happened to start it.
    environ = {**os.environ, "JUPYTER_DIST_TESTS_OF": str(os.getpid())}
    with contextlib.suppress(NotForkedError):
        start = {"directory": str(directory), "is_urgent": False}
        return _without_keeper(_run(_forkservers().fork(boot, environ, start, log_fd)))
    return None


def _forkservers() -> ForkServers:
    """Those of this process; they keep no descriptor open."""
    if os.getpid() not in _FORKSERVERS:
        _FORKSERVERS[os.getpid()] = ForkServers(Path(os.devnull), "tests")  # conftest.py says where
        _FORKSERVERS[os.getpid()].linger_seconds = LINGER_SECONDS
    return _FORKSERVERS[os.getpid()]


def _run(forking: Coroutine[Any, Any, ForkedKeeper]) -> ForkedKeeper:
    """Run it beside whatever loop this thread has."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(forking)
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


def _without_keeper(keeper: ForkedKeeper) -> ForkedAgent:
    """Kill it as soon as it has an agent: what an agent does alone is what the tests see."""
    agent = until(lambda: [process for process in below(keeper.pid) if process.parent == keeper.pid])[0].pid
    os.kill(keeper.pid, signal.SIGKILL)
    until(lambda: keeper.poll() is not None)
    found = read_process(agent)
    assert found is not None, "the agent ended with its keeper"
    assert found.parent == os.getpid(), "tests must be the process that gets orphans (leaks.py)"
    return ForkedAgent(agent)
