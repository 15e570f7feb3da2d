"""Starts ranks by forking a process that has imported torch."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess

from jupyter_dist.agent.processes.death import ZYGOTE_KILLED, Ending
from jupyter_dist.protocol.wire.specs import RankSpec
from jupyter_dist.transport.frames import FrameDecoder, Header, encode_frame, pack
from jupyter_dist.transport.questions import Questions
from jupyter_dist.transport.tasks import start_task

from .process import OnExit, ProcessHandle, RankDescriptors, ending_of, not_started, spawn, wait_until

FORK_SECONDS = 10.0
PREPARE_SECONDS = 300.0  # imports, which may come from a cold network file system; as long as the forkserver has


class ZygoteClient:
    """A process that imported torch once and forks a rank in milliseconds."""

    def __init__(self, preload: list[str], on_exit: OnExit) -> None:
        self._preload = preload
        self._on_exit = on_exit
        self._decoder = FrameDecoder()
        self._forks: Questions[ProcessHandle] = Questions()
        self._prepared: Questions[bool] = Questions()
        self._may_import = True
        self._living: dict[int, ProcessHandle] = {}  # ranks
        self._shims: set[int] = set()
        self._ended_shims = asyncio.Event()
        self._is_lost = False
        self._tasks: set[asyncio.Task[None]] = set()
        self.warm: asyncio.Future[Header] = asyncio.get_running_loop().create_future()
        self._process: subprocess.Popen[bytes] | _Forked
        self._sock, self._process = _forked_zygote() or _spawned_zygote()
        self._sock.sendall(encode_frame({"t": "preload", "modules": preload}))
        asyncio.get_running_loop().add_reader(self._sock, self._readable)

    async def start(self, spec: RankSpec, fds: RankDescriptors) -> ProcessHandle:
        """Ask the zygote to fork. Raises JupyterDistError `start_failed` if the fork fails."""

        def fork(number: int) -> None:
            frame = encode_frame(*pack({"t": "fork", "id": number}, {"spec": spec.to_dict()}))
            socket.send_fds(self._sock, [frame], list(fds))

        def prepare(number: int) -> None:
            self._sock.sendall(encode_frame({"t": "prepare", "id": number, "world_size": spec.world_size}))

        try:
            if self._may_import:  # before a fork, or as a chore: a separate question, with the time of an import
                self._may_import = await self._prepared.ask(prepare, PREPARE_SECONDS)
            return await self._forks.ask(fork, FORK_SECONDS)
        except (OSError, asyncio.TimeoutError) as err:
            self._is_lost = self._is_lost or isinstance(err, (BrokenPipeError, ConnectionResetError))
            raise not_started("its zygote, the process that it is forked from, does not answer") from err

    @property
    def is_lost(self) -> bool:
        """Whether its process has ended, which the ends of its ranks may reveal before its socket does."""
        if not self._is_lost:
            try:
                self._is_lost = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
            except ChildProcessError:
                self._is_lost = True
        return self._is_lost

    @property
    def was_killed(self) -> bool:
        """Whether the zygote is lost for another reason than a failed import."""
        return self.is_lost and not (self.warm.done() and "ename" in self.warm.result())

    def children(self) -> set[int]:
        """Return its own process; ranks and shims are children of the zygote."""
        return {self._process.pid}

    async def settle(self) -> None:
        """Wait until the shims of ranks that ended have ended too."""
        await wait_until(lambda: len(self._shims) <= len(self._living), self._ended_shims)

    async def stop(self) -> None:
        """End the zygote, and with it (PDEATHSIG) every remaining rank."""
        with contextlib.suppress(ValueError):
            asyncio.get_running_loop().remove_reader(self._sock)
        self._sock.close()
        self._process.kill()
        self._process.wait()
        self._lost()
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
            handle = self._living[header["pid"]] = ProcessHandle(header["pid"], header["started"])
            self._shims.add(header["shim"])
            self._forks.answer(header["id"], handle)
        elif header["t"] == "prepared":
            self._prepared.answer(header["id"], header["may_import"])
        elif header["t"] == "exited":
            self._report_exit(header["pid"], ending_of(header))
        elif header["t"] in ("settled", "not_forked"):
            self._shims.discard(header.get("shim", 0))
            self._ended_shims.set()
            self._forks.refuse(header.get("id"), not_started(header.get("reason", "its process ended at once")))
        elif not self.warm.done():
            self.warm.set_result({**header, "traceback": payload.decode("utf-8", "replace")})

    def _lost(self) -> None:
        self._is_lost = True
        if not self.warm.done():
            self.warm.set_result({"t": "failed", "traceback": "The zygote process ended."})
        for questions in (self._prepared, self._forks):
            questions.fail(lambda: not_started("its zygote, the process that it is forked from, ended"))
        self._shims.clear()
        self._ended_shims.set()
        for pid in list(self._living):  # their shims end them and the processes they had started, without reporting it
            self._report_exit(pid, Ending(None, signal.SIGKILL, because=ZYGOTE_KILLED))

    def _report_exit(self, pid: int, ending: Ending) -> None:
        if (handle := self._living.pop(pid, None)) is None:
            return
        task = start_task(self._on_exit(handle, ending), f"exit of {pid}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Forked:
    """A child of this process from before it became the agent's program: what is needed of Popen."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._has_ended = False

    def kill(self) -> None:
        if not self._has_ended:  # until it is waited for, its pid cannot be reused
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> None:
        if not self._has_ended:
            os.waitpid(self.pid, 0)
        self._has_ended = True


def _forked_zygote() -> tuple[socket.socket, _Forked] | None:
    """Return the zygote that the forkserver (rank/start/forkserver.py) made for this agent, the first time."""
    given = os.environ.pop("JUPYTER_DIST_FORKED_ZYGOTE", "")
    if not given:
        return None
    pid, fd = map(int, given.split(","))
    os.set_inheritable(fd, False)
    return socket.socket(fileno=fd), _Forked(pid)


def _spawned_zygote() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    sock, child = socket.socketpair()
    return sock, spawn("zygote", child)
