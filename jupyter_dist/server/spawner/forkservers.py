"""Forkservers: processes that have imported torch, from which groups are forked (rank/start/forkserver.py).

There is one forkserver for each set of things that a new process inherits; all servers of this user that would pass on
the same set use it. If a forkserver fails, the start waits for its time limit, logs a line, and goes without it.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import json
import logging
import os
import select
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.system.files.private import make_private
from jupyter_dist.system.inherited import inherited, is_of_a_session
from jupyter_dist.system.limits import within
from jupyter_dist.system.processes import cpu_ticks, peer_uid
from jupyter_dist.transport.frames import FrameDecoder, FrameError, Header, encode_frame, pack

from .process import AgentProcess

FOLDER_VARIABLE = "JUPYTER_DIST_FORKSERVERS"  # their folder, instead of one beside the groups of this runtime folder
CONNECT_SECONDS = 2.0
ANSWER_SECONDS = 15.0  # forking takes milliseconds; more on a busy machine
LOOK_SECONDS = 2.0  # after this time the server checks whether the forkserver is stopped or gone
SLOW_SECONDS = 120.0  # while the forkserver computes, as during its import: a second import would only be slower
RETRY_SECONDS = 60.0
POLL_SECONDS = 0.02
BACKLOG = 128
KEY_LENGTH = 12  # short, because paths of sockets have a limit, as with groups

log = logging.getLogger(__name__)


class NotForkedError(Exception):
    """The group must be started without a forkserver; the text is the reason."""


class ForkedKeeper:
    """A keeper that is not a child of this process, held by a pidfd."""

    returncode: int | None = None

    def __init__(self, pid: int, pidfd: int) -> None:
        self.pid = pid
        self._pidfd = pidfd

    def poll(self) -> int | None:
        """Return -1 once the keeper has ended (its exit code is not known here), else None."""
        if self.returncode is None and self._has_ended():
            self.returncode = -1
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, os.WNOHANG)  # where this server is the parent of orphans
            os.close(self._pidfd)
        return self.returncode

    def _has_ended(self) -> bool:
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return bool(poll.poll(0))

    def leave(self) -> None:
        """Close the pidfd; the keeper keeps running."""
        if self.poll() is None:
            os.close(self._pidfd)
            self.returncode = 0


class ForkServers:
    """Finds, starts and keeps the forkservers, and has them fork groups."""

    def __init__(self, folder: Path, digest: str) -> None:
        self._folder = Path(os.environ.get(FOLDER_VARIABLE) or folder)
        self._digest = digest
        self.linger_seconds = 0.0  # 0: forkservers are not used
        self.num_asked = 0
        self.is_keeping = False
        self._held: dict[Path, socket.socket] = {}  # connections that keep forkservers running
        self._started: list[tuple[Path, subprocess.Popen[bytes]]] = []
        self._unusable: dict[Path, tuple[float, str]] = {}  # until when forkservers are not asked, and why

    async def fork(
        self, command: list[str], environ: Mapping[str, str], start: dict[str, Any], log_fd: int
    ) -> ForkedKeeper:
        """Fork keeper, agent and zygote, as if `command` plus a role were started with `environ`.

        `start` has their directory, and whether a caller waits for the group.

        Raises:
            NotForkedError: no forkserver has confirmed the fork in time.
        """
        path = await asyncio.to_thread(self._path, command, environ)
        for _ in range(2):
            answer, keeper = await self._ask(path, command, environ, start, log_fd)
            if keeper is not None:
                return keeper
            if answer["t"] != "stale":
                break
            self.release(path)  # it has ended because packages changed: the next one imports their new versions
        if answer["t"] == "unusable":
            self.release(path)
            self._unusable[path] = time.monotonic() + RETRY_SECONDS, str(answer["reason"])
        raise NotForkedError(str(answer["reason"]))

    def begin(self, command: list[str], environ: Mapping[str, str]) -> None:
        """Start the forkserver for this command if there is none, to import before a group starts. Raises OSError."""
        path = self._path(command, environ)
        with self._lock():
            try:
                _connected(path).close()
            except (FileNotFoundError, ConnectionRefusedError):
                self._start(path, command, environ)

    def pids(self) -> list[int]:
        """Return all forkservers that groups can be forked from, also of other servers."""
        with contextlib.suppress(OSError):
            sockets = [path for path in self._folder.iterdir() if not path.suffix]
            return [pid for pid in map(_pid_of, sockets) if pid is not None]
        return []

    def release(self, path: Path | None = None) -> None:
        """Close the connection to one forkserver, or to all: they stay for their linger time. Idempotent."""
        for each in [path] if path is not None else list(self._held):
            if (held := self._held.pop(each, None)) is not None:
                held.close()
        self.reap()

    def reap(self) -> None:
        """Reap the forkservers that have ended."""
        self._started = [(path, process) for path, process in self._started if process.poll() is None]

    def detach(self) -> None:
        """Leave the forkservers to other servers. Idempotent."""
        self.release()
        for _, process in self._started:
            process.returncode = 0  # it keeps running, and that is intended
        self._started.clear()
        with contextlib.suppress(OSError):
            self._folder.rmdir()  # fails if one is running

    # -- asking ---------------------------------------------------------------------------------------------

    async def _ask(
        self, path: Path, command: list[str], environ: Mapping[str, str], start: dict[str, Any], log_fd: int
    ) -> tuple[Header, ForkedKeeper | None]:
        until, why = self._unusable.get(path, (0.0, ""))
        if time.monotonic() < until:
            raise NotForkedError(why)
        request = {**start, "environ": dict(environ), "linger_seconds": self.linger_seconds}
        frame = encode_frame(*pack({"t": "start"}, request))
        try:
            sock = await asyncio.to_thread(self._send, path, command, environ, frame, log_fd)
        except (OSError, JupyterDistError) as err:
            raise NotForkedError(f"it cannot be reached: {err}") from err
        self.num_asked += 1
        with sock:
            try:
                await _wait_readable(sock, path)
                answer, fds = _answer(sock)
            except (OSError, EOFError, FrameError, asyncio.TimeoutError) as err:
                self._give_up(path)
                raise NotForkedError(f"the one at {path} did not answer ({type(err).__name__})") from err
            if answer["t"] != "started" or not fds:
                return answer, None
            self._keep(path)
            return answer, ForkedKeeper(int(answer["pid"]), fds[0])

    def _send(
        self, path: Path, command: list[str], environ: Mapping[str, str], frame: bytes, log_fd: int
    ) -> socket.socket:
        """Send a frame and a descriptor to the forkserver of that path, which is started if there is none."""
        with self._lock():
            try:
                sock = _connected(path)
            except (FileNotFoundError, ConnectionRefusedError):
                self._start(path, command, environ)
                sock = _connected(path)
        try:
            sent = socket.send_fds(sock, [frame], [log_fd])
            sock.sendall(frame[sent:])
        except BaseException:
            sock.close()
            raise
        return sock

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        """Let a single server look for a forkserver and start it: two servers would both import torch."""
        make_private(self._folder)
        fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
        deadline = time.monotonic() + CONNECT_SECONDS
        try:
            while True:
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(POLL_SECONDS)
            yield
        finally:
            os.close(fd)

    def _start(self, path: Path, command: list[str], environ: Mapping[str, str]) -> None:
        """Start a forkserver: it accepts connections from now on, and answers when it has imported torch."""
        self._remove_dead()
        variables = {name: value for name, value in environ.items() if not is_of_a_session(name)}
        with socket.socket(socket.AF_UNIX) as listener, path.with_suffix(".log").open("wb") as errors:
            listener.bind(str(path))
            listener.listen(BACKLOG)
            process = subprocess.Popen(
                [*command, "forkserver", str(path)],
                stdin=listener.fileno(),
                stdout=errors,
                stderr=errors,
                cwd="/",
                env=variables,
                start_new_session=True,
                close_fds=True,
            )
        self._started.append((path, process))

    def _remove_dead(self) -> None:
        """Remove the files of killed forkservers. Holds the lock."""
        for path in self._folder.iterdir():
            try:
                _connected(path.with_suffix("")).close()
            except (FileNotFoundError, ConnectionRefusedError):
                path.unlink(missing_ok=True)
            except OSError:
                continue

    def _keep(self, path: Path) -> None:
        """Keep a connection, if so configured, so that the forkserver stays as long as this server."""
        if self.is_keeping and path not in self._held:
            with contextlib.suppress(OSError):
                self._held[path] = _connected(path)

    def _give_up(self, path: Path) -> None:
        """Hide the forkserver from servers; it ends when its connections close, or now if this server started it."""
        self.release(path)
        path.unlink(missing_ok=True)
        for process in (process for each, process in self._started if each == path):
            process.kill()

    def _path(self, command: list[str], environ: Mapping[str, str]) -> Path:
        """Return the socket of the forkserver for this command and these variables: its name is a hash of them all."""
        variables = sorted((name, value) for name, value in environ.items() if not is_of_a_session(name))
        parts = [command[0], self._digest, variables, inherited()]
        digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
        return self._folder / digest[:KEY_LENGTH]


def _pid_of(path: Path) -> int | None:
    """Return the process of a forkserver."""
    if (found := AgentProcess.find(path, None, "forkserver")) is None:
        return None
    with found:
        return found.pid


def _connected(path: Path) -> socket.socket:
    """Return a connection to a process of this user. Raises OSError."""
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.settimeout(CONNECT_SECONDS)
        sock.connect(str(path))
        if peer_uid(sock) != os.getuid():
            raise PermissionError(f"{path} is served by another user")
    except BaseException:
        sock.close()
        raise
    return sock


async def _wait_readable(sock: socket.socket, path: Path) -> None:
    """Wait for an answer. Raises TimeoutError; at once if the forkserver is stopped, and cannot answer."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(sock, readable.set)
    try:
        try:
            await within(LOOK_SECONDS, readable.wait())
        except asyncio.TimeoutError:
            await _wait_while_it_computes(readable, path)
    finally:
        loop.remove_reader(sock)


async def _wait_while_it_computes(readable: asyncio.Event, path: Path) -> None:
    """Wait for the limit, and then as long as the forkserver uses processor time. Raises TimeoutError."""
    began, computed = time.monotonic(), -1
    while True:
        before, computed = computed, await asyncio.to_thread(_cpu_ticks, path)
        waited = time.monotonic() - began
        if computed < 0 or waited > SLOW_SECONDS or (waited > ANSWER_SECONDS and computed == before):
            raise asyncio.TimeoutError
        with contextlib.suppress(asyncio.TimeoutError):
            await within(LOOK_SECONDS, readable.wait())
            return


def _cpu_ticks(path: Path) -> int:
    """Return the processor time of the forkserver; -1 if it is gone or stopped, so that it cannot answer."""
    found = AgentProcess.find(path, None, "forkserver")
    if found is None:
        return -1
    with found:
        return -1 if found.is_stopped else cpu_ticks(found.pid)


def _answer(sock: socket.socket) -> tuple[Header, list[int]]:
    """Return the only answer on a connection, with its descriptors."""
    data, fds, _, _ = socket.recv_fds(sock, 1 << 16, 1)
    for header, _ in FrameDecoder().feed(data):
        return header, fds
    raise EOFError
