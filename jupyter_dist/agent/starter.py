"""Making rank processes: forked from a warm zygote, or fresh where forking is not safe."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.frames import FrameDecoder, Header, encode_frame
from jupyter_dist.protocol.specs import RankSpec

from .death import Ending

OnExit = Callable[[int, Ending], Awaitable[None]]  # pid, how it ended

_BOOT = str(Path(__file__).with_name("boot.py"))


class Starter(Protocol):
    """Starts rank processes and reports how they end."""

    async def start(self, spec: RankSpec, fds: tuple[int, int, int]) -> int:
        """Start one rank with these ends of its channel and pipes; return its pid."""

    def children(self) -> set[int]:
        """The pids that are this starter's to reap."""

    async def stop(self) -> None:
        """End what it started besides ranks. Idempotent."""


class Zygote:
    """The process that imported torch once and forks a rank in milliseconds."""

    def __init__(self, preload: list[str], on_exit: OnExit) -> None:
        self._preload = preload
        self._on_exit = on_exit
        self._decoder = FrameDecoder()
        self._forks: dict[int, asyncio.Future[int]] = {}
        self._living: set[int] = set()  # ranks
        self.is_lost = False
        self._ids = itertools.count(1)
        self._tasks: set[asyncio.Task[None]] = set()
        self.warm: asyncio.Future[Header] = asyncio.get_running_loop().create_future()
        self._sock, child = socket.socketpair()
        self._process = _spawn("zygote", child)
        self._sock.sendall(encode_frame({"t": "preload", "modules": preload}))
        asyncio.get_running_loop().add_reader(self._sock, self._readable)

    async def start(self, spec: RankSpec, fds: tuple[int, int, int]) -> int:
        """Fork a rank. Raises JupyterDistError `internal` when the zygote is gone or does not answer."""
        number = next(self._ids)
        forked = self._forks[number] = asyncio.get_running_loop().create_future()
        frame = encode_frame({"t": "fork", "id": number, "spec": spec.to_dict()})
        try:
            socket.send_fds(self._sock, [frame], list(fds))
            return await asyncio.wait_for(forked, 10.0)
        except (OSError, asyncio.TimeoutError) as err:
            raise JupyterDistError("internal", "The zygote process does not fork.", "Start the group again.") from err
        finally:
            del self._forks[number]

    def children(self) -> set[int]:
        """Its own process; the ranks are the zygote's children."""
        return {self._process.pid}

    async def stop(self) -> None:
        """End the zygote, and with it (PDEATHSIG) every rank that is left."""
        with contextlib.suppress(ValueError):
            asyncio.get_running_loop().remove_reader(self._sock)
        self._sock.close()
        self._process.kill()
        self._process.wait()
        for task in list(self._tasks):
            await task

    def _readable(self) -> None:
        data = b""
        with contextlib.suppress(OSError):
            data = self._sock.recv(1 << 16)
        if not data:
            asyncio.get_running_loop().remove_reader(self._sock)
            self._lost()
        for header, payload in self._decoder.feed(data):
            self._on_message(header, payload)

    def _on_message(self, header: Header, payload: bytes) -> None:
        if header["t"] == "forked":
            self._living.add(header["pid"])
            forked = self._forks.get(header["id"])
            if forked is not None and not forked.done():
                forked.set_result(header["pid"])
        elif header["t"] == "exited":
            self._tell_exit(header["pid"], Ending(header["code"], header["signal"], header.get("peak_bytes")))
        elif not self.warm.done():
            self.warm.set_result({**header, "traceback": payload.decode("utf-8", "replace")})

    def _lost(self) -> None:
        message = "The zygote process ended."
        self.is_lost = True
        if not self.warm.done():
            self.warm.set_result({"t": "failed", "traceback": message})
        for forked in self._forks.values():
            if not forked.done():
                forked.set_exception(JupyterDistError("internal", message))
        for pid in list(self._living):  # the kernel sends them SIGKILL, and nobody else reaps them
            self._tell_exit(pid, Ending(None, signal.SIGKILL))

    def _tell_exit(self, pid: int, ending: Ending) -> None:
        self._living.discard(pid)
        task = asyncio.ensure_future(self._on_exit(pid, ending))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class FreshProcesses:
    """Every rank a new Python that imports torch itself: slow, but safe after an import started threads."""

    def __init__(self, preload: list[str], on_exit: OnExit) -> None:
        self._preload = preload
        self._on_exit = on_exit
        self._processes: dict[int, tuple[subprocess.Popen[bytes], asyncio.Task[None]]] = {}

    async def start(self, spec: RankSpec, fds: tuple[int, int, int]) -> int:
        """Start a Python for this rank."""
        parent_end, child_end = socket.socketpair()
        with parent_end:
            process = _spawn("rank", child_end, extra_fds=fds)
            spec_frame = {"t": "spec", "spec": spec.to_dict(), "fds": list(fds), "preload": self._preload}
            parent_end.sendall(encode_frame(spec_frame))
        watch = asyncio.create_task(self._watch(process), name=f"rank {spec.rank} exit")
        self._processes[process.pid] = (process, watch)
        return process.pid

    def children(self) -> set[int]:
        """The rank processes."""
        return set(self._processes)

    async def stop(self) -> None:
        """Kill the ranks that are left."""
        for process, watch in list(self._processes.values()):
            process.kill()
            await watch

    async def _watch(self, process: subprocess.Popen[bytes]) -> None:
        await _exited(process.pid)
        _, status, usage = os.wait4(process.pid, 0)  # noqa: ASYNC222 (it has ended)
        process.returncode = code = os.waitstatus_to_exitcode(status)
        del self._processes[process.pid]
        peak_bytes = usage.ru_maxrss * 1024
        ending = Ending(code, None, peak_bytes) if code >= 0 else Ending(None, -code, peak_bytes)
        await self._on_exit(process.pid, ending)


async def _exited(pid: int) -> None:
    """Wait until a child has ended, without a thread and without reaping it."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    fd = os.pidfd_open(pid)
    loop.add_reader(fd, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(fd)
        os.close(fd)


def _spawn(role: str, channel: socket.socket, extra_fds: tuple[int, ...] = ()) -> subprocess.Popen[bytes]:
    environment: dict[str, Any] = {
        **os.environ,
        # OpenBLAS starts a thread at import otherwise, and a process with threads must not fork ranks.
        "OPENBLAS_NUM_THREADS": os.environ.get("OPENBLAS_NUM_THREADS", "1"),
        # Makes torch.cuda.is_available() ask NVML, which leaves CUDA untouched and forking possible.
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
        # An agent that the kernel kills must take this process along (see rank/birth.py).
        "JUPYTER_DIST_AGENT_PID": str(os.getpid()),
    }
    with channel:
        return subprocess.Popen(
            [sys.executable, _BOOT, role, str(channel.fileno())],
            pass_fds=(channel.fileno(), *extra_fds),
            stdin=subprocess.DEVNULL,
            env=environment,
        )
