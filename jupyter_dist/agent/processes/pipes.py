"""A rank's stdout and stderr: two pipes, read in bursts."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import select
import socket
from collections.abc import Callable

# C code writes one line at a time; waiting this long gathers a burst into one record.
GATHER_SECONDS = 0.01
READ_BYTES = 1 << 20
PIPE_BYTES = 1 << 20
_F_SETPIPE_SZ = 1031


class RankPipes:
    """The agent's ends. `keep(name, data)` receives what was written to `stdout` and `stderr`."""

    def __init__(self, keep: Callable[[str, bytes], None]) -> None:
        self._keep = keep
        self._read_ends: dict[str, int] = {}  # by stream name
        self._is_paused = False

    def open(self) -> tuple[int, int]:
        """Create both pipes; return the child's ends (stdout, stderr), which the caller closes."""
        ends: list[int] = []
        try:
            for name in ("stdout", "stderr"):
                read_end, write_end = os.pipe2(os.O_CLOEXEC)
                os.set_blocking(read_end, False)
                _widen(read_end)
                self._read_ends[name] = read_end
                ends.append(write_end)
        except OSError:  # no descriptors are left
            for end in ends:
                os.close(end)
            raise
        return ends[0], ends[1]

    def listen(self) -> None:
        """Start passing output to `keep`, or continue."""
        self._is_paused = False
        for name, fd in self._read_ends.items():
            asyncio.get_running_loop().add_reader(fd, self._on_pipe, name, fd)

    def pause(self) -> None:
        """Leave output in the pipes until `listen`."""
        self._is_paused = True
        for fd in self._read_ends.values():
            asyncio.get_running_loop().remove_reader(fd)

    def drain(self) -> None:
        """Pass on what the pipes hold now."""
        for name, fd in self._read_ends.items():
            self._drain(name, fd)

    def close(self) -> None:
        """Close both pipes. Idempotent."""
        for fd in self._read_ends.values():
            with contextlib.suppress(RuntimeError):  # the event loop has stopped: there is no reader to remove
                asyncio.get_running_loop().remove_reader(fd)
            os.close(fd)
        self._read_ends = {}

    def _on_pipe(self, name: str, fd: int) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(fd)
        loop.call_later(GATHER_SECONDS, self._take, name, fd)

    def _take(self, name: str, fd: int) -> None:
        if self._is_paused or self._read_ends.get(name) != fd:
            return
        if self._drain(name, fd):
            asyncio.get_running_loop().add_reader(fd, self._on_pipe, name, fd)

    def _drain(self, name: str, fd: int) -> bool:
        """Pass on what the pipe holds; return False at its end, when it has no writer left."""
        taken = 0
        # Read at most one full pipe: a process that writes faster than we read must not keep us here.
        while taken < PIPE_BYTES:
            try:
                data = os.read(fd, READ_BYTES)
            except BlockingIOError:
                return True
            except OSError:  # whatever it is, the end of the rank is reported
                return False
            if not data:
                return False
            self._keep(name, data)
            taken += len(data)
        return True


def _widen(fd: int) -> None:
    """Enlarge a pipe to a megabyte, so that a burst of C-level output seldom waits for the agent."""
    with contextlib.suppress(OSError):  # the user's pipe quota is used up: the default size works, too
        fcntl.fcntl(fd, _F_SETPIPE_SZ, PIPE_BYTES)


def has_data(sock: socket.socket | None) -> bool:
    """Whether a socket that may be closed has something to read now."""
    if sock is None or sock.fileno() < 0:
        return False
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))
