"""The command line tools of engines: run with a time limit, or started so that they outlive the server."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.system.processes import read_process

POLL_SECONDS = 0.02
KILL_SECONDS = 5.0


class ToolError(Exception):
    """A tool is missing, or did not answer in time; the text is a sentence."""


@dataclass(frozen=True)
class ToolResult:
    """The exit code and output of a tool."""

    code: int
    out: str
    err: str

    @property
    def problem(self) -> str:
        """Return its error messages in one line, without the tool's name before each."""
        lines = (line.partition("error: ")[2] or line for line in self.err.splitlines())
        return " ".join(line.strip().rstrip(".") + "." for line in lines if line.strip()) or say(
            "Exit code %1.", self.code
        )


async def run(
    command: Sequence[str], env: Mapping[str, str], seconds: float, cwd: str = "/", given: str | None = None
) -> ToolResult:
    """Run a tool; `given` is its standard input.

    Raises:
        ToolError: the tool is missing, or took longer than `seconds` and was killed.
    """
    return await asyncio.to_thread(_run, list(command), dict(env), seconds, cwd, given)


def _run(command: list[str], env: dict[str, str], seconds: float, cwd: str, given: str | None) -> ToolResult:
    try:
        done = subprocess.run(
            command,
            env=env,
            cwd=cwd,
            input=(given or "").encode(),
            capture_output=True,
            timeout=seconds,
            check=False,
            start_new_session=True,  # no signals of the server's terminal
        )
    except FileNotFoundError as err:
        raise ToolError(say("'%1' is not installed on the server's machine.", os.path.basename(command[0]))) from err
    except subprocess.TimeoutExpired as err:
        raise ToolError(say("'%1' did not answer within %2 s.", os.path.basename(command[0]), f"{seconds:g}")) from err
    except OSError as err:
        raise ToolError(say("'%1' cannot be run: %2.", os.path.basename(command[0]), err.strerror or err)) from err
    return ToolResult(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))


@dataclass(frozen=True)
class Detached:
    """A process in a separate session, which outlives the server. `pid` and `started` together identify the process."""

    pid: int
    started: int

    @property
    def runs(self) -> bool:
        """Whether the process runs. Reaps an ended child of this process."""
        found = read_process(self.pid)
        if found is None or found.started != self.started:
            return False
        if found.has_ended:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, os.WNOHANG)
            return False
        return True

    def signal(self, signum: signal.Signals) -> None:
        """Signal the process and all processes of its process group; ignored if it has ended."""
        if self.runs:  # a group keeps its number as long as its leader is not reaped
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signum)

    async def wait(self, seconds: float) -> None:
        """Wait until the process has ended, at most this long."""
        deadline = time.monotonic() + seconds
        while self.runs and time.monotonic() < deadline:  # noqa: ASYNC110 - a process has no event to wait for
            await asyncio.sleep(POLL_SECONDS)

    async def end(self, grace_seconds: float) -> None:
        """Ask the process to end, and kill it after this time."""
        for signum, seconds in ((signal.SIGTERM, grace_seconds), (signal.SIGKILL, KILL_SECONDS)):
            self.signal(signum)
            await self.wait(seconds)


def start_detached(command: Sequence[str], env: Mapping[str, str], cwd: str, log_fd: int) -> Detached:
    """Start a process that outlives this one; its output goes to the log. Raises ToolError."""
    try:
        process = subprocess.Popen(
            list(command),
            env=dict(env),
            cwd=cwd if Path(cwd).is_dir() else "/",
            stdin=subprocess.DEVNULL,
            stdout=log_fd,
            stderr=log_fd,
            start_new_session=True,
        )
    except OSError as err:
        raise ToolError(say("'%1' cannot be started: %2.", os.path.basename(command[0]), err.strerror or err)) from err
    found = read_process(process.pid)
    process.returncode = 0  # else Popen would warn that it is still running; `runs` reaps it
    assert found is not None, "a child that is not reaped is in /proc"
    return Detached(process.pid, found.started)
