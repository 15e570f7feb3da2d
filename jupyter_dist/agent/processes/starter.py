"""Starts rank processes: forked from a warm zygote, or fresh where forking is not safe."""

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
from typing import TYPE_CHECKING, Any, Protocol

from jupyter_dist.protocol import accelerators
from jupyter_dist.protocol.specs import RankSpec
from jupyter_dist.system.limits import within
from jupyter_dist.system.processes import CLEANER_SECONDS, signal_same, usage_of
from jupyter_dist.transport.frames import FrameDecoder, Header, encode_frame, pack
from jupyter_dist.transport.questions import Questions
from jupyter_dist.transport.stream import FrameStream
from jupyter_dist.transport.tasks import start_task

from .death import SHIM_KILLED, ZYGOTE_KILLED, Ending
from .failedstart import not_started

if TYPE_CHECKING:
    from .rank_process import RankProcess

FORK_SECONDS = 10.0
PREPARE_SECONDS = 300.0  # imports, which may come from a cold network file system; as long as the forkserver has
SETTLE_SECONDS = CLEANER_SECONDS + 1.0

_BOOT = str(Path(__file__).parents[1] / "boot.py")


@dataclass(frozen=True)
class Born:
    """A rank's process; equal fields mean the same one. Here a process of this machine (nodes/remote.py has others)."""

    pid: int
    started: int  # see system/processes.py
    node: int | None = None  # the node agent that has it; None: this process has it

    def kill(self) -> None:
        """Kill it, and no process that reuses its pid."""
        signal_same(self.pid, self.started, signal.SIGKILL)

    async def usage(self) -> tuple[int, float] | None:
        """Return its memory in bytes and its CPU time in seconds; None if it is gone or cannot be asked."""
        return usage_of(self.pid)


OnExit = Callable[[Born, Ending], Coroutine[Any, Any, None]]


class RankLink(Protocol):
    """The way to a rank on another machine."""

    def listen(self, rank: RankProcess) -> None:
        """Pass on what the rank says, from its first word on."""

    def send(self, frame: bytes) -> None:
        """Tell the rank something; ignored when it has ended."""

    def close(self) -> None:
        """Hear nothing more, and let the rank see that. Idempotent."""


@dataclass(frozen=True)
class Ends:
    """The ends of a rank's channel and pipes, as whoever starts it needs them."""

    open: Callable[[], tuple[int, int, int]]  # creates them as descriptors: channel, stdout, stderr
    link: Callable[[RankLink], None] | None = None  # takes a link instead

    @contextlib.contextmanager
    def opened(self) -> Iterator[tuple[int, int, int]]:
        """Create descriptors, and close them when a process has them. Raises JupyterDistError `start_failed`."""
        try:
            fds = self.open()
        except OSError as err:  # no descriptors are left
            raise not_started(str(err.strerror)) from err
        try:
            yield fds
        finally:
            for fd in fds:
                with contextlib.suppress(OSError):
                    os.close(fd)


class Starter(Protocol):
    """Starts rank processes, each as the child of a shim (rank/start/shim.py), and reports how they end."""

    @property
    def is_lost(self) -> bool:
        """Whether it has ended, and the ranks that it had started with it; another one may work."""

    async def start(self, spec: RankSpec, ends: Ends) -> Born:
        """Start one rank with its ends of the channel and pipes.

        Raises:
            JupyterDistError: `start_failed`, with the system's error.
        """

    def children(self) -> set[int]:
        """Return the pids that this starter reaps itself."""

    async def settle(self) -> None:
        """Wait for the processes that ended ranks had started, at most SETTLE_SECONDS."""

    async def stop(self) -> None:
        """End the processes it started besides ranks. Idempotent."""


class Zygote:
    """A process that imported torch once and forks a rank in milliseconds."""

    def __init__(self, preload: list[str], on_exit: OnExit) -> None:
        self._preload = preload
        self._on_exit = on_exit
        self._decoder = FrameDecoder()
        self._forks: Questions[Born] = Questions()
        self._prepared: Questions[bool] = Questions()
        self._may_import = True
        self._living: dict[int, Born] = {}  # ranks
        self._shims: set[int] = set()
        self._ended_shims = asyncio.Event()
        self.is_lost = False
        self._tasks: set[asyncio.Task[None]] = set()
        self.warm: asyncio.Future[Header] = asyncio.get_running_loop().create_future()
        self._process: subprocess.Popen[bytes] | _Forked
        self._sock, self._process = _forked_zygote() or _spawned_zygote()
        self._sock.sendall(encode_frame({"t": "preload", "modules": preload}))
        asyncio.get_running_loop().add_reader(self._sock, self._readable)

    async def start(self, spec: RankSpec, ends: Ends) -> Born:
        """Ask the zygote to fork. Raises JupyterDistError `start_failed` if it does not."""
        with ends.opened() as fds:
            return await self._start(spec, fds)

    async def _start(self, spec: RankSpec, fds: tuple[int, int, int]) -> Born:
        def fork(number: int) -> None:
            frame = encode_frame(*pack({"t": "fork", "id": number}, {"spec": spec.to_dict()}))
            socket.send_fds(self._sock, [frame], list(fds))

        def prepare(number: int) -> None:
            self._sock.sendall(encode_frame({"t": "prepare", "id": number, "world_size": spec.world_size}))

        try:
            if self._may_import:  # before a fork, or as a chore: a question of its own, with the time of an import
                self._may_import = await self._prepared.ask(prepare, PREPARE_SECONDS)
            return await self._forks.ask(fork, FORK_SECONDS)
        except (OSError, asyncio.TimeoutError) as err:
            self.is_lost = self.is_lost or isinstance(err, (BrokenPipeError, ConnectionResetError))
            raise not_started("its zygote, the process that it is forked from, does not answer") from err

    @property
    def was_ready(self) -> bool:
        """Whether it had imported what ranks need."""
        return self.warm.done() and self.warm.result()["t"] != "failed"

    def children(self) -> set[int]:
        """Return its own process; ranks and shims are children of the zygote."""
        return {self._process.pid}

    async def settle(self) -> None:
        """Wait until the shims of ranks that ended have ended too."""
        await _wait_until(lambda: len(self._shims) <= len(self._living), self._ended_shims)

    async def stop(self) -> None:
        """End the zygote, and with it (PDEATHSIG) every remaining rank."""
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
            born = self._living[header["pid"]] = Born(header["pid"], header["started"])
            self._shims.add(header["shim"])
            self._forks.answer(header["id"], born)
        elif header["t"] == "prepared":
            self._prepared.answer(header["id"], header["may_import"])
        elif header["t"] == "exited":
            self._tell_exit(header["pid"], ending_of(header))
        elif header["t"] in ("settled", "not_forked"):
            self._shims.discard(header.get("shim", 0))
            self._ended_shims.set()
            self._forks.refuse(header.get("id"), not_started(header.get("reason", "its process ended at once")))
        elif not self.warm.done():
            self.warm.set_result({**header, "traceback": payload.decode("utf-8", "replace")})

    def _lost(self) -> None:
        message = "The zygote process ended."
        self.is_lost = True
        if not self.warm.done():
            self.warm.set_result({"t": "failed", "traceback": message})
        for questions in (self._prepared, self._forks):
            questions.fail(lambda: not_started("its zygote, the process that it is forked from, ended"))
        self._shims.clear()
        self._ended_shims.set()
        for pid in list(self._living):  # their shims end them and the processes they had started, without reporting it
            self._tell_exit(pid, Ending(None, signal.SIGKILL, because=ZYGOTE_KILLED))

    def _tell_exit(self, pid: int, ending: Ending) -> None:
        if (born := self._living.pop(pid, None)) is None:
            return
        task = start_task(self._on_exit(born, ending), f"exit of {pid}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class FreshProcesses:
    """Starts every rank as a new Python that imports torch itself: slow, but safe after an import started threads."""

    def __init__(self, preload: list[str], on_exit: OnExit) -> None:
        self.is_lost = False  # each rank has its own
        self._preload = preload
        self._on_exit = on_exit
        self._shims: dict[int, tuple[subprocess.Popen[bytes], asyncio.Task[None]]] = {}
        self._living: set[int] = set()  # ranks
        self._ended_shims = asyncio.Event()

    async def start(self, spec: RankSpec, ends: Ends) -> Born:
        """Start a Python that reads the spec and then forks into the rank and its shim."""
        with ends.opened() as fds:
            return await self._start(spec, fds)

    async def _start(self, spec: RankSpec, fds: tuple[int, int, int]) -> Born:
        try:
            parent_end, child_end = socket.socketpair()
        except OSError as err:
            raise not_started(str(err.strerror)) from err
        try:
            process = _spawn("rank", child_end, extra_fds=fds)
        except OSError as err:
            parent_end.close()
            raise not_started(str(err.strerror)) from err
        spec_frame = pack({"t": "spec"}, {"spec": spec.to_dict(), "fds": list(fds), "preload": self._preload})
        with contextlib.suppress(OSError):  # it has ended, which `_watch` reports
            parent_end.sendall(encode_frame(*spec_frame))
        parent_end.setblocking(False)
        born: asyncio.Future[Born] = asyncio.get_running_loop().create_future()
        watch = start_task(self._watch(process, parent_end, born), f"rank {spec.rank} exit")
        self._shims[process.pid] = (process, watch)
        try:
            return await born
        except asyncio.CancelledError:  # it took too long, and would be a rank that the group does not know
            process.terminate()
            raise

    def children(self) -> set[int]:
        """The shims."""
        return set(self._shims)

    async def settle(self) -> None:
        """Wait until the shims of ranks that ended have ended too."""
        await _wait_until(lambda: len(self._shims) <= len(self._living), self._ended_shims)

    async def stop(self) -> None:
        """Kill the remaining ranks by ending their shims."""
        for process, _ in self._shims.values():
            process.terminate()
        for process, watch in list(self._shims.values()):
            with contextlib.suppress(asyncio.TimeoutError):
                await within(SETTLE_SECONDS, asyncio.shield(watch))
            process.kill()
            await watch

    async def _watch(self, process: subprocess.Popen[bytes], sock: socket.socket, born: asyncio.Future[Born]) -> None:
        stream = await FrameStream.from_socket(sock)
        rank: Born | None = None
        with contextlib.suppress(EOFError, OSError):
            while True:
                header, _ = await stream.recv()
                if header["t"] == "born":
                    rank = Born(header["pid"], header["started"])
                    self._living.add(rank.pid)
                    if not born.done():
                        born.set_result(rank)
                elif rank is not None:
                    self._living.discard(rank.pid)
                    ended, rank = rank, None
                    await self._on_exit(ended, ending_of(header))
        stream.close()
        await _exited(process.pid)
        process.wait()
        del self._shims[process.pid]
        self._ended_shims.set()
        if not born.done():
            born.set_exception(not_started(f"its Python ended at once with code {process.returncode}"))
        if rank is not None:  # the shim was killed, and the kernel sends SIGKILL to the rank
            self._living.discard(rank.pid)
            await self._on_exit(rank, Ending(None, signal.SIGKILL, because=SHIM_KILLED))


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


async def _wait_until(condition: Callable[[], bool], changed: asyncio.Event) -> None:
    deadline = time.monotonic() + SETTLE_SECONDS
    while not condition() and (left := deadline - time.monotonic()) > 0:
        changed.clear()
        with contextlib.suppress(asyncio.TimeoutError):
            await within(left, changed.wait())


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
    return sock, _spawn("zygote", child)


def _spawn(role: str, channel: socket.socket, extra_fds: tuple[int, ...] = ()) -> subprocess.Popen[bytes]:
    environment: dict[str, Any] = {
        **os.environ,
        # Otherwise OpenBLAS starts a thread at import, and a process with threads must not fork ranks.
        "OPENBLAS_NUM_THREADS": os.environ.get("OPENBLAS_NUM_THREADS", "1"),
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
