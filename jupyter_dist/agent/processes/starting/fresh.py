"""Starts ranks as fresh Python processes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess

from jupyter_dist.agent.processes.death import SHIM_KILLED, Ending
from jupyter_dist.protocol.wire.specs import RankSpec
from jupyter_dist.system.limits import within
from jupyter_dist.transport.frames import encode_frame, pack
from jupyter_dist.transport.stream import FrameStream
from jupyter_dist.transport.tasks import start_task

from .process import (
    SETTLE_SECONDS,
    OnExit,
    ProcessHandle,
    RankDescriptors,
    ending_of,
    not_started,
    spawn,
    wait_until,
)


class FreshProcesses:
    """Starts every rank as a new Python that imports torch itself: slow, but safe after an import started threads."""

    def __init__(self, preload: list[str], on_exit: OnExit) -> None:
        self.is_lost = False  # each rank has its own
        self._preload = preload
        self._on_exit = on_exit
        self._shims: dict[int, tuple[subprocess.Popen[bytes], asyncio.Task[None]]] = {}
        self._living: set[int] = set()  # ranks
        self._ended_shims = asyncio.Event()

    async def start(self, spec: RankSpec, fds: RankDescriptors) -> ProcessHandle:
        """Start a Python that reads the spec and then forks into the rank and its shim."""
        try:
            parent_end, child_end = socket.socketpair()
        except OSError as err:
            raise not_started(str(err.strerror)) from err
        try:
            process = spawn("rank", child_end, extra_fds=fds)
        except OSError as err:
            parent_end.close()
            raise not_started(str(err.strerror)) from err
        spec_frame = pack({"t": "spec"}, {"spec": spec.to_dict(), "fds": list(fds), "preload": self._preload})
        with contextlib.suppress(OSError):  # it has ended, which `_watch` reports
            parent_end.sendall(encode_frame(*spec_frame))
        parent_end.setblocking(False)
        handle: asyncio.Future[ProcessHandle] = asyncio.get_running_loop().create_future()
        watch = start_task(self._watch(process, parent_end, handle), f"rank {spec.rank} exit")
        self._shims[process.pid] = (process, watch)
        try:
            return await handle
        except asyncio.CancelledError:  # nothing would know the rank
            process.terminate()
            raise

    def children(self) -> set[int]:
        """Return the pids of the shims."""
        return set(self._shims)

    async def settle(self) -> None:
        """Wait until the shims of ranks that ended have ended too."""
        await wait_until(lambda: len(self._shims) <= len(self._living), self._ended_shims)

    async def stop(self) -> None:
        """Kill the remaining ranks by ending their shims."""
        for process, _ in self._shims.values():
            process.terminate()
        for process, watch in list(self._shims.values()):
            with contextlib.suppress(asyncio.TimeoutError):
                await within(SETTLE_SECONDS, asyncio.shield(watch))
            process.kill()
            await watch

    async def _watch(
        self, process: subprocess.Popen[bytes], sock: socket.socket, handle: asyncio.Future[ProcessHandle]
    ) -> None:
        stream = await FrameStream.from_socket(sock)
        rank: ProcessHandle | None = None
        with contextlib.suppress(EOFError, OSError):
            while True:
                header, _ = await stream.recv()
                if header["t"] == "born":
                    rank = ProcessHandle(header["pid"], header["started"])
                    self._living.add(rank.pid)
                    if not handle.done():
                        handle.set_result(rank)
                elif rank is not None:
                    self._living.discard(rank.pid)
                    ended, rank = rank, None
                    await self._on_exit(ended, ending_of(header))
        stream.close()
        await _exited(process.pid)
        process.wait()
        del self._shims[process.pid]
        self._ended_shims.set()
        if not handle.done():
            handle.set_exception(not_started(f"its Python ended at once with code {process.returncode}"))
        if rank is not None:  # the shim was killed, and the kernel sends SIGKILL to the rank
            self._living.discard(rank.pid)
            await self._on_exit(rank, Ending(None, signal.SIGKILL, because=SHIM_KILLED))


async def _exited(pid: int) -> None:
    """Wait for the end of a child, without a thread and without reaping it."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    try:
        fd = os.pidfd_open(pid)
    except OSError:  # no descriptors are left: its end must be noticed all the same
        while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:  # noqa: ASYNC110, ASYNC222
            await asyncio.sleep(0.1)
        return
    loop.add_reader(fd, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(fd)
        os.close(fd)
