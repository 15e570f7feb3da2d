"""Starts agents on this machine, so that they outlive the server."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import logging
import os
import re
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import IO

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.secrets import Secrets
from jupyter_dist.protocol.wire.specs import HEAD_VARIABLE
from jupyter_dist.system.code.copies import CodeCopy, machine_places
from jupyter_dist.system.code.sources import own_sources
from jupyter_dist.system.files import disk
from jupyter_dist.system.files.private import is_private
from jupyter_dist.system.inherited import without_credentials

from .directories import GroupDirectory, bad_directory
from .forkservers import ForkedKeeper, ForkServers, NotForkedError
from .spawner import Spawner

log = logging.getLogger(__name__)

Begin = Callable[[str, GroupDirectory, dict[str, str]], Awaitable["subprocess.Popen[bytes] | ForkedKeeper"]]

LAUNCH_SECONDS = 60.0  # a busy machine takes many times the usual second
POLL_SECONDS = 0.01
# Space that an agent needs to start: group.json, its socket, the journal's folder.
LEAST_BYTES = 16 << 10
LEAST_FILES = 8
REAP_SECONDS = 0.5


def client_environment(text: str) -> Secrets:
    """Return the variables that a client sent for a group, as in /proc/PID/environ, without credentials."""
    return Secrets(without_credentials(Secrets.of_environ(text).for_exec()))


def agent_environment(preload: list[str], extra: dict[str, str] | None = None) -> dict[str, str]:
    """Return the server's environment without its credentials, plus the variables of the kernelspec and the agent."""
    own = {"JUPYTER_DIST_PRELOAD": json.dumps(preload), "JUPYTER_DIST_UMASK": _umask()}
    return {**without_credentials(os.environ), **own, **(extra or {})}


def _umask() -> str:
    """Return the umask of this process, for files that cells write; os.umask() would change it."""
    found = re.search(r"^Umask:\s*([0-7]+)$", Path("/proc/self/status").read_text(), re.M)
    return found[1] if found else "077"


class LocalSpawner(Spawner):
    """Starts an agent for each group directory, as the child of a keeper; the agent imports torch, and waits."""

    def __init__(self, parent: Path, preload: Sequence[str]) -> None:
        super().__init__(parent, preload)
        self._code = CodeCopy(own_sources(), [parent.with_name(f"{parent.name}-code"), *machine_places()])
        self._processes: list[subprocess.Popen[bytes] | ForkedKeeper] = []
        self._forkservers = ForkServers(parent.with_name(f"{parent.name}-fork"), self._code.digest)

    def command(self, arguments: list[str]) -> list[str]:
        """Return the command that becomes a group's first process; a subclass may start it by another program.

        That program must end up as `arguments`, or stay and wait for them: the process is asked whether it lives.
        """
        return arguments

    def share_imports(self, linger_seconds: float, *, keep: bool) -> None:
        """Use forkservers, except where a subclass starts groups by another program."""
        if type(self).command is LocalSpawner.command:
            self._forkservers.linger_seconds, self._forkservers.is_keeping = linger_seconds, keep

    def directories(self) -> list[GroupDirectory]:
        """Return the group directories on disk."""
        if not is_private(self._parent):  # in a shared folder, other users may have replaced it
            return []
        paths = (path for path in self._parent.glob("g-*") if is_private(path))
        return [GroupDirectory(path) for path in sorted(paths)]

    async def launch(self, python: str, env: dict[str, str] | None = None) -> GroupDirectory:
        """Start an agent in that interpreter; return its directory when the agent listens.

        Raises:
            JupyterDistError: `bad_environment` with the end of the agent's log if it died, `timed_out`.
        """
        return await self._launch(python, env, is_urgent=True)

    async def launch_spare(self, python: str, env: dict[str, str] | None = None) -> GroupDirectory:
        """Launch an agent after the forkserver has imported all modules that ranks may need."""
        return await self._launch(python, env, is_urgent=False)

    async def launch_head(self, python: str, env: dict[str, str] | None = None) -> GroupDirectory:
        """Launch an agent that does not import torch."""
        return await self._launched(python, {**(env or {}), HEAD_VARIABLE: "1"}, self._spawn)

    def archive(self) -> bytes:
        """Return the code that groups of this server run."""
        return self._code.archive()

    def forkservers(self) -> list[int]:
        """Return the forkservers of this folder."""
        return self._forkservers.pids()

    def begin(self, python: str, env: dict[str, str]) -> None:
        """Start the forkserver for this environment, if there is none."""
        if self._forkservers.linger_seconds > 0:
            with contextlib.suppress(OSError, JupyterDistError):  # a launch reports it
                self._forkservers.begin([python, str(self._boot_script())], agent_environment(self._preload, env))

    async def _launch(self, python: str, env: dict[str, str] | None, *, is_urgent: bool) -> GroupDirectory:
        if self._forkservers.linger_seconds > 0:
            try:
                return await self._launched(python, env, partial(self._fork, is_urgent))
            except (NotForkedError, JupyterDistError) as err:
                log.warning("jupyter_dist: a group is started without a forkserver: %s", err)
        return await self._launched(python, env, self._spawn)

    async def _launched(self, python: str, env: dict[str, str] | None, begin: Begin) -> GroupDirectory:
        """Return a new directory with an agent that listens; `begin` starts its first process."""
        directory = GroupDirectory.create(self._parent)
        try:
            process = await begin(python, directory, agent_environment(self._preload, env))
            self._processes.append(process)
            await self._wait_for_socket(process, directory, python)
        except BaseException:
            directory.remove()
            raise
        return directory

    def reap_soon(self) -> None:
        """Reap ended children, after the keeper of an agent that just ended has noticed."""
        asyncio.get_running_loop().call_later(REAP_SECONDS, self._reap)

    def _reap(self) -> None:
        self._processes = [process for process in self._processes if process.poll() is None]

    def detach(self) -> None:
        """Leave the agents running when the server ends; init becomes their parent."""
        self._reap()
        for process in self._processes:
            if isinstance(process, ForkedKeeper):
                process.leave()
            else:  # Popen would warn that its process is still running, but that is intended
                process.returncode = 0
        self._forkservers.detach()
        self._processes.clear()
        with contextlib.suppress(OSError):
            self._parent.rmdir()  # fails if groups are left
        self._code.release()

    async def _fork(
        self, is_urgent: bool, python: str, directory: GroupDirectory, environ: dict[str, str]
    ) -> ForkedKeeper:
        boot_script = await asyncio.to_thread(self._boot_script)
        with _log_of(directory) as log_file:
            command = [python, str(boot_script)]
            start = {"directory": str(directory.path), "is_urgent": is_urgent}
            return await self._forkservers.fork(command, environ, start, log_file.fileno())

    async def _spawn(self, python: str, directory: GroupDirectory, environ: dict[str, str]) -> subprocess.Popen[bytes]:
        return await asyncio.to_thread(self._spawn_now, python, directory, environ)

    def _spawn_now(self, python: str, directory: GroupDirectory, environ: dict[str, str]) -> subprocess.Popen[bytes]:
        boot_script = self._boot_script()
        with _log_of(directory) as log_file:
            try:
                return subprocess.Popen(
                    # The keeper needs only the standard library; it starts the agent with the user's site-packages.
                    self.command([python, "-I", "-S", str(boot_script), "keeper", str(directory.path)]),
                    stdin=subprocess.DEVNULL,
                    stdout=log_file,
                    stderr=log_file,
                    cwd="/",
                    env=environ,
                    start_new_session=True,  # it must not get signals from the server's terminal
                    close_fds=True,
                )
            except OSError as err:
                message = say("%1 cannot be started: %2.", python, err.strerror)
                raise JupyterDistError("bad_environment", message, say("Choose another environment.")) from err

    def _boot_script(self) -> Path:
        try:
            return self._code.boot_script()
        except OSError as err:
            message = say("The code that a group runs cannot be written. %1.", err.strerror)
            hint = say("Free some space there, or set JUPYTER_RUNTIME_DIR.")
            raise JupyterDistError("bad_directory", message, hint) from err

    async def _wait_for_socket(
        self, process: subprocess.Popen[bytes] | ForkedKeeper, directory: GroupDirectory, python: str
    ) -> None:
        deadline = time.monotonic() + LAUNCH_SECONDS
        while not directory.socket_path.exists():
            if process.poll() is not None:
                _check_room(directory.path)
                words = directory.log_tail() or say("It printed nothing.")
                message = say(
                    "The group's agent in %1 ended with code %2 before it was ready.", python, process.returncode
                )
                raise JupyterDistError("bad_environment", message, words)
            if time.monotonic() > deadline:
                os.killpg(process.pid, signal.SIGKILL)  # the keeper, and the agent that did not start
                while process.poll() is None:  # noqa: ASYNC110 - a process has no event to wait for
                    await asyncio.sleep(POLL_SECONDS)
                message = say("The group's agent in %1 did not start within %2 s.", python, f"{LAUNCH_SECONDS:g}")
                raise JupyterDistError("timed_out", message, directory.log_tail() or "Try again.")
            await asyncio.sleep(POLL_SECONDS)


def _log_of(directory: GroupDirectory) -> IO[bytes]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.fdopen(os.open(directory.log_path, flags, 0o600), "ab")
    except OSError as err:
        raise bad_directory(directory.path, err) from err


def _check_room(path: Path) -> None:
    """Raise JupyterDistError `bad_directory` if nothing can be written there, because the agent could not report it."""
    try:
        is_full = disk.free_bytes(path) < LEAST_BYTES or disk.free_files(path) in range(LEAST_FILES)
    except OSError as err:
        raise bad_directory(path, err) from err
    if is_full:
        raise bad_directory(path, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
