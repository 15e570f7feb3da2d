"""The zygote: imports torch once, then forks ranks in milliseconds; it never does anything else.

No torch operation, no thread, no device: a process that used any of these would fork ranks that hang
(docs/decisions/0002-zygote.md).
"""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import platform
import select
import signal
import socket
import sys
import time
import traceback
from collections import deque
from dataclasses import dataclass
from importlib import metadata
from itertools import starmap
from pathlib import Path
from typing import Any

from jupyter_dist.protocol.wire.specs import RankSpec
from jupyter_dist.system.memory import keep_present_objects, without_collections
from jupyter_dist.system.processes import adopt_orphans, die_with, end_below, end_orphans
from jupyter_dist.transport.frames import FrameDecoder, Header, encode_frame, unpack

from . import driver, shim

RECV_BYTES = 1 << 20
MAX_FDS = 253  # the kernel's limit per message
NUM_FDS = 3  # of each rank: channel, stdout, stderr
LOST = -1  # in place of a descriptor that this process could not receive
IDLE_SECONDS = 0.3
LATE_SECONDS = 3.0  # without a start; an import takes longer than the other chores
# A group of this size waits until the zygote is prepared for errors: else all ranks would do it at the same time.
MANY_RANKS = 16


def main(argument: str) -> int:
    """Serve fork requests on the socket with descriptor `argument`, until the agent closes it."""
    return run(socket.socket(fileno=int(argument)), int(os.environ.pop("JUPYTER_DIST_AGENT_PID")))


def run(sock: socket.socket, agent: int, imported: Imported | None = None) -> int:
    """Run as the zygote of the process `agent`; import first, unless the imports were done before the fork."""
    adopt_orphans()
    zygote = Zygote(sock, imported)
    die_with(agent, signal.SIGTERM)
    try:
        return zygote.serve()
    finally:
        end_below(os.getpid(), reap_known=())


@dataclass
class Imported:
    """The result of the imports, for the agent, and the chores that remain."""

    report: Header
    text: bytes = b""
    is_prepared: bool = False  # for errors
    lacks_late: bool = False  # whether modules are left out that each rank would import itself (preload.LATE)

    @property
    def idle_seconds(self) -> float | None:
        """The seconds without a request after which a chore is done; None if no chore is left."""
        if self.report["t"] != "warm":
            return None
        if not self.is_prepared:
            return IDLE_SECONDS
        return LATE_SECONDS if self.lacks_late else None

    def do_chore(self) -> None:
        """Do a task that each rank would else do by itself. It takes a moment: call it while no fork is requested."""
        if self.is_prepared:
            self.import_late()
        else:
            self.prepare_for_errors()

    def import_late(self) -> None:
        """Import the modules that were left out, if any. If one fails, a rank that needs the module shows the error.

        Raises:
            RuntimeError: nothing must be forked from this process now.
        """
        if not self.lacks_late:
            return
        from .preload import preload_late

        self.lacks_late = False
        with without_collections():
            with contextlib.suppress(Exception):
                preload_late()
            _share()
        if (reason := _why_unsafe()) is not None:
            raise RuntimeError(reason)

    def prepare_for_errors(self) -> None:
        """Do the work of a rank's first error once, before ranks are forked."""
        self.is_prepared = True
        from jupyter_dist.rank.cells.shell import RankShell
        from jupyter_dist.rank.ipython import tracebacks

        tracebacks.prepare(RankShell.prepare())
        _share()


def _share() -> None:
    """Share the present objects with all ranks: neither garbage collection nor a rank's start may write to them."""
    from jupyter_dist.rank.guard import surroundings

    surroundings.inherit()
    if "torch" in sys.modules:
        from jupyter_dist.rank.state.process import settings

        settings.coding_handlers()  # found among the present objects alone, which ranks do not look at
    gc.collect()
    keep_present_objects()  # or 10 MiB of trees and frames of failed cells would wait for a full collection


@without_collections()
def import_all(modules: list[str], *, also_late: bool = True) -> Imported:
    """Import torch, IPython and `modules`; the report has the duration, or the reason why no rank can be forked."""
    started = time.monotonic()
    try:
        from .preload import preload

        preload(modules, also_late=also_late)
    except BaseException as err:  # the agent must learn of any error of an import
        report: Header = {"t": "failed", "ename": type(err).__name__, "evalue": str(err)[:4000]}
        return Imported(report, traceback.format_exc().encode())
    reason = _why_unsafe()
    _share()
    report = {
        "t": "warm",
        "seconds": time.monotonic() - started,
        "python_version": platform.python_version(),
        "torch_version": metadata.version("torch"),
        "ipython_version": metadata.version("ipython"),
        "safe": reason is None,
        "reason": reason,
    }
    return Imported(report, lacks_late=not also_late)


@dataclass
class _Shim:
    """One child, whose reports are passed on to the agent."""

    pid: int
    fork_id: int
    decoder: FrameDecoder
    rank: int | None = None  # from its start until its end


class Zygote:
    """One thread, one socket, and a pipe from each rank's shim."""

    def __init__(self, sock: socket.socket, imported: Imported | None = None) -> None:
        self._sock = sock
        self._agent = os.getppid()
        self._imported = imported
        self._was_asked = False
        self._decoder = FrameDecoder()
        self._fds: deque[int] = deque()
        self._shims: dict[int, _Shim] = {}  # by the descriptor of the pipe on which it reports
        self._poll = select.poll()
        self._wakeup, wakeup_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._wakeup_write = wakeup_write

    def serve(self) -> int:
        """Import, report it, then fork and reap until the agent is gone."""
        signal.set_wakeup_fd(self._wakeup_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._agent_is_gone)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the server's terminal is not for ranks
        self._poll.register(self._sock, select.POLLIN)
        self._poll.register(self._wakeup, select.POLLIN)
        while True:
            imported = self._imported
            # Not while there are ranks: their deaths are reported here, and must not wait for a chore. Nor before the
            # agent has asked for anything: it is starting, and mostly has a group that waits for it.
            is_free = self._was_asked and not self._shims
            idle_seconds = imported.idle_seconds if imported is not None and is_free else None
            ready = self._poll.poll(None if idle_seconds is None else idle_seconds * 1000)
            if not ready and imported is not None:
                imported.do_chore()
            for fd, _ in ready:
                if fd == self._wakeup:
                    self._reap()
                elif fd in self._shims:
                    self._hear(fd)
                elif not self._receive():
                    return 0

    def _agent_is_gone(self, *_: object) -> None:
        if os.getppid() == self._agent:  # an engine asks all processes of a job to end; the agent decides when
            return
        # The ranks may have exited already, but not the processes they had started.
        end_below(os.getpid(), reap_known=())
        os._exit(1)

    def _receive(self) -> bool:
        try:
            data, fds, flags, _ = socket.recv_fds(self._sock, RECV_BYTES, MAX_FDS)
        except ConnectionResetError:  # the agent closed the socket with an unread answer
            return False
        self._was_asked = True
        if flags & socket.MSG_CTRUNC:  # this process can have no more, and the rest is lost
            _close(fds)
            fds = [LOST] * NUM_FDS
        self._fds.extend(fds)
        for header, _ in starmap(unpack, self._decoder.feed(data)):
            if header["t"] == "preload":
                self._imported = self._imported or import_all(header["modules"])
                self._send(self._imported.report, self._imported.text)
            elif header["t"] == "prepare":
                self._prepare(header["world_size"])
                may_import = self._imported is not None and self._imported.lacks_late
                self._send({"t": "prepared", "id": header["id"], "may_import": may_import})
            else:
                self._fork(header)
        return bool(data)

    def _fork(self, header: Header) -> None:
        fds = [self._fds.popleft() for _ in range(NUM_FDS)]
        try:
            if LOST in fds:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            read_end, write_end = os.pipe2(os.O_CLOEXEC)
        except OSError as err:
            self._refuse(header, err, fds)
            return
        try:
            pid = os.fork()
        except OSError as err:
            self._refuse(header, err, [*fds, read_end, write_end])
            return
        if pid == 0:
            self._become_shim(header["spec"], fds, write_end, read_end)
        _close([*fds, write_end])
        self._shims[read_end] = _Shim(pid, header["id"], FrameDecoder())
        self._poll.register(read_end, select.POLLIN)

    def _refuse(self, header: Header, err: OSError, fds: list[int]) -> None:
        self._send({"t": "not_forked", "id": header["id"], "reason": err.strerror})
        _close(fds)

    def _prepare(self, world_size: int) -> None:
        """Do the chores first that take longer if all these ranks do them by themselves."""
        imported = self._imported
        if imported is None:
            return
        if imported.report["t"] == "warm" and world_size >= MANY_RANKS and not imported.is_prepared:
            imported.prepare_for_errors()
        if world_size > len(os.sched_getaffinity(0)):
            imported.import_late()

    def _become_shim(self, spec: dict[str, Any], fds: list[int], report_fd: int, read_end: int) -> None:
        code = 1
        try:
            zygote = os.getppid()
            signal.set_wakeup_fd(-1)
            _close([read_end, self._wakeup, self._wakeup_write, self._sock.detach(), *self._fds, *self._shims])
            code = shim.run(lambda: shim.become_rank(RankSpec.from_dict(spec), *fds), report_fd, fds, zygote)
        except BaseException:  # the child must never return into the zygote's loop
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)

    def _hear(self, fd: int) -> None:
        """Pass on a shim's reports. A shim that ends without a report was killed, and its rank died with it."""
        child, data = self._shims[fd], os.read(fd, RECV_BYTES)
        for header, _ in child.decoder.feed(data):
            if header["t"] == "born":
                child.rank = header["pid"]
                self._send({**header, "t": "forked", "id": child.fork_id, "shim": child.pid})
            else:
                child.rank = None
                self._send(header)
        if not data:
            self._poll.unregister(fd)
            os.close(fd)
            del self._shims[fd]
            self._tell_shim_ended(child)

    def _tell_shim_ended(self, child: _Shim) -> None:
        if child.rank is not None:
            lost = {
                "code": None,
                "signal": signal.SIGKILL,
                "because": "the process that watches over it was killed",
            }
            self._send({"t": "exited", "pid": child.rank, **lost})
        self._send({"t": "settled", "shim": child.pid, "id": child.fork_id})

    def _reap(self) -> None:
        while len(os.read(self._wakeup, 512)) == 512:
            pass  # a burst of signals
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        # Orphans go to their rank's shim; an orphan that arrives here has lost its shim, too.
        end_orphans({child.pid for child in self._shims.values()})

    def _send(self, header: Header, payload: bytes = b"") -> None:
        self._sock.sendall(encode_frame(header, payload))


def _why_unsafe() -> str | None:
    """Return why ranks must not be forked from this process, or None.

    A child checks the devices, because the check could initialize them here.
    """
    status = Path("/proc/self/status").read_text()
    threads = int(status.split("Threads:")[1].split()[0])
    if threads > 1:
        return f"an imported package started {threads - 1} thread(s)"
    if driver.is_initialized():  # checked here: in a child, a driver reports that it was not started
        return f"{driver.spoiled_by()} initialized a device"
    probe = os.fork()
    if probe == 0:
        from jupyter_dist.rank.collectives import torch_compat

        os._exit(1 if torch_compat.initialised_devices() else 0)
    _, status_code = os.waitpid(probe, 0)
    return "an imported package initialized a device" if status_code else None


def _close(fds: list[int]) -> None:
    for fd in fds:
        if fd != LOST:
            os.close(fd)
