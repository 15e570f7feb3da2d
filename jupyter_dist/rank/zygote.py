"""The zygote: imports torch once, then forks a rank in milliseconds; it does nothing else, ever.

No torch operation, no thread, no CUDA: a process that did any of these forks ranks that hang
(docs/decisions/0002-zygote.md).
"""

from __future__ import annotations

import contextlib
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
from importlib import metadata
from pathlib import Path
from typing import Any

from jupyter_dist.protocol.frames import FrameDecoder, Header, encode_frame
from jupyter_dist.protocol.specs import RankSpec
from jupyter_dist.system.processes import adopt_orphans, die_with, end_below

from . import birth

RECV_BYTES = 1 << 20
MAX_FDS = 253  # the kernel's limit for one message


def main(argument: str) -> int:
    """Serve fork requests on the socket whose number is `argument`, until the agent closes it."""
    adopt_orphans()
    zygote = Zygote(socket.socket(fileno=int(argument)))
    die_with(int(os.environ.pop("JUPYTER_DIST_AGENT_PID")), signal.SIGTERM)
    try:
        return zygote.serve()
    finally:
        end_below(os.getpid(), reap_known=())


class Zygote:
    """One thread, one socket, the children's exits."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._decoder = FrameDecoder()
        self._fds: deque[int] = deque()
        self._children: set[int] = set()
        self._wakeup, wakeup_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._wakeup_write = wakeup_write

    def serve(self) -> int:
        """Import, say so, then fork and reap until the agent is gone."""
        signal.set_wakeup_fd(self._wakeup_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._agent_is_gone)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the server's terminal is not for ranks
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        poll.register(self._wakeup, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd == self._wakeup:
                    self._reap()
                elif not self._receive():
                    return 0

    def _agent_is_gone(self, *_: object) -> None:
        # The ranks may have ended by themselves already, but not what they had started.
        end_below(os.getpid(), reap_known=())
        os._exit(1)

    def _receive(self) -> bool:
        try:
            data, fds, _, _ = socket.recv_fds(self._sock, RECV_BYTES, MAX_FDS)
        except ConnectionResetError:  # the agent left with an answer unread
            return False
        self._fds.extend(fds)
        for header, _payload in self._decoder.feed(data):
            if header["t"] == "preload":
                self._warm(header["modules"])
            else:
                self._fork(header)
        return bool(data)

    def _warm(self, modules: list[str]) -> None:
        started = time.monotonic()
        try:
            from .preload import preload

            preload(modules)
        except BaseException as err:  # whatever an import raises, the agent must hear of it
            report = {"t": "failed", "ename": type(err).__name__, "evalue": str(err)}
            self._send(report, traceback.format_exc().encode())
            return
        reason = _why_unsafe()
        gc.collect()
        gc.freeze()  # the collector must not write to pages that the ranks share
        self._send(
            {
                "t": "warm",
                "seconds": time.monotonic() - started,
                "python_version": platform.python_version(),
                "torch_version": metadata.version("torch"),
                "ipython_version": metadata.version("ipython"),
                "safe": reason is None,
                "reason": reason,
            }
        )

    def _fork(self, header: Header) -> None:
        channel, stdout, stderr = (self._fds.popleft() for _ in range(3))
        pid = os.fork()
        if pid == 0:
            self._become_rank(header["spec"], channel, stdout, stderr)
        for fd in (channel, stdout, stderr):
            os.close(fd)
        self._children.add(pid)
        self._send({"t": "forked", "id": header["id"], "pid": pid})

    def _become_rank(self, spec: dict[str, Any], channel: int, stdout: int, stderr: int) -> None:
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            for signum in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
                signal.signal(signum, signal.SIG_DFL)
            for fd in (self._wakeup, self._wakeup_write, self._sock.detach(), *self._fds):
                os.close(fd)
            code = birth.become_rank(RankSpec.from_dict(spec), channel, stdout, stderr)
        except BaseException:  # the child must never return into the zygote's loop
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)

    def _reap(self) -> None:
        while len(os.read(self._wakeup, 512)) == 512:
            pass  # a burst of signals
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if not pid:
                    return
                if pid in self._children:  # else what a rank had started, and left behind
                    self._children.discard(pid)
                    self._tell_exit(pid, status, usage.ru_maxrss * 1024)

    def _tell_exit(self, pid: int, status: int, peak_bytes: int) -> None:
        sig = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        code = os.WEXITSTATUS(status) if sig is None else None
        self._send({"t": "exited", "pid": pid, "code": code, "signal": sig, "peak_bytes": peak_bytes})

    def _send(self, header: Header, payload: bytes = b"") -> None:
        self._sock.sendall(encode_frame(header, payload))


def _why_unsafe() -> str | None:
    """Return why ranks must not be forked from this process, or None.

    CUDA is asked in a child, because asking must not be what initialises it here.
    """
    status = Path("/proc/self/status").read_text()
    threads = int(status.split("Threads:")[1].split()[0])
    if threads > 1:
        return f"an imported package started {threads - 1} thread(s)"
    probe = os.fork()
    if probe == 0:
        from . import torch_compat

        os._exit(1 if torch_compat.cuda_was_initialised() else 0)
    _, status_code = os.waitpid(probe, 0)
    return "an imported package initialised CUDA" if status_code else None
