"""The forkserver: imports torch once for all groups, and forks the processes with which a group begins.

    forkserver --fork--> keeper --fork--> agent --fork--> zygote

Keeper and agent execute their own programs at once, so nothing that was imported here touches them; only the zygote
stays a fork, which has torch already. A group that is started without a forkserver has the same tree. No process of it
is a child of this process, so the end of this process ends none of them (docs/decisions/0013-forkserver.md).

Like the zygote it has one thread and uses neither torch nor a device.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import multiprocessing
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections import deque
from collections.abc import Collection
from itertools import starmap
from pathlib import Path
from typing import NoReturn

from jupyter_dist.protocol import accelerators
from jupyter_dist.system.code import running
from jupyter_dist.system.inherited import inherited, is_of_a_session, without_threads
from jupyter_dist.system.memory import is_short, own_bytes
from jupyter_dist.system.processes import adopt_orphans, peer_uid, show_as
from jupyter_dist.transport.frames import FrameDecoder, Header, encode_frame, unpack

from . import zygote
from .loaded import LoadedFiles

IMPORT_SECONDS = 300  # an import that takes longer hangs
ANSWER_SECONDS = 10  # for the process between this one and a keeper
LOOK_SECONDS = 5.0
CHORE_SECONDS = 2.0  # after a start: the group needs the CPUs first
RECV_BYTES = 1 << 16
MAX_FDS = 8
MIN_OWN_BYTES = 64 << 20  # if this process shares all other memory with groups, ending it frees none


def main(argument: str) -> int:
    """Serve on the listening socket at stdin, whose path is `argument`, until this process is not needed any more."""
    listener = socket.socket(fileno=os.dup(0))
    devnull = os.open(os.devnull, os.O_RDONLY)
    os.dup2(devnull, 0)
    os.close(devnull)
    code = running.hold()
    try:
        return ForkServer(listener, Path(argument), code).serve()
    finally:
        running.leave(code)


class _Client:
    """A connection of a server, which keeps this process alive."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.fds: deque[int] = deque()
        self._decoder = FrameDecoder()

    def receive(self) -> list[Header] | None:
        """Return the requests that have arrived whole; None if the server is gone."""
        try:
            data, fds, _, _ = socket.recv_fds(self.sock, RECV_BYTES, MAX_FDS)
        except OSError:
            return None
        self.fds.extend(fds)
        return [header for header, _ in starmap(unpack, self._decoder.feed(data))] if data else None

    def answer(self, header: Header, fds: Collection[int] = ()) -> None:
        with contextlib.suppress(OSError):  # it did not wait
            socket.send_fds(self.sock, [encode_frame(header)], list(fds))

    def close(self) -> None:
        for fd in self.fds:
            os.close(fd)
        self.sock.close()


class ForkServer:
    """One thread, one socket; a connection per server that wants it to stay, and one per start."""

    def __init__(self, listener: socket.socket, path: Path, code: int | None) -> None:
        self._listener = listener
        self._path = path
        self._code = code
        self._inode = path.stat().st_ino
        self._clients: dict[int, _Client] = {}
        self._poll = select.poll()
        self._poll.register(listener, select.POLLIN)
        self._linger_seconds = 60.0  # until a server sends another number
        self._needed_at = time.monotonic()
        self._refusal: Header | None = None  # the answer to each start, if nothing can be forked
        self._refused_at = 0.0
        self._inherited = inherited()

    def serve(self) -> int:
        """Import; then fork processes for each request."""
        self._umask = os.umask(0o077)  # what imports write is private, as in a zygote
        os.environ.update(without_threads(os.environ))
        os.environ.update(accelerators.for_zygote())
        signal.alarm(IMPORT_SECONDS)
        self._import()
        signal.alarm(0)
        os.umask(self._umask)
        while not self._is_over():
            has_chore = self._refusal is None and self._imported.idle_seconds is not None
            ready = self._poll.poll((CHORE_SECONDS if has_chore else LOOK_SECONDS) * 1000)
            if not ready and has_chore:
                self._do_chore()
            for fd, _ in ready:
                if fd == self._listener.fileno():
                    self._accept()
                elif fd in self._clients:
                    self._hear(self._clients[fd])
        self._leave()
        return 0

    def _import(self) -> None:
        self._files = LoadedFiles()
        self._numbers = _random_numbers()
        modules = json.loads(os.environ.get("JUPYTER_DIST_PRELOAD", "[]"))
        self._imported = zygote.import_all(modules, also_late=False)
        report = self._imported.report
        if report["t"] == "failed":
            self._refuse("unusable", self._imported.text.decode(errors="replace").strip().rpartition("\n")[2])
        elif not report["safe"]:
            self._refuse("unusable", report["reason"])
        self._check_imported()

    def _check_imported(self) -> None:
        self._files.remember()
        if self._refusal is None and self._numbers != _random_numbers():
            self._refuse("unusable", "an imported package used or seeded numpy's random numbers")

    def _do_chore(self) -> None:
        """Do a task, once, that saves each rank some time; an import hangs no longer here than at the start."""
        signal.alarm(IMPORT_SECONDS)
        try:
            self._imported.do_chore()
        except RuntimeError as err:
            self._refuse("unusable", str(err))
        signal.alarm(0)
        self._check_imported()

    def _do_all_chores(self) -> None:
        while self._refusal is None and self._imported.idle_seconds is not None:
            self._do_chore()

    def _refuse(self, kind: str, reason: str) -> None:
        """Fork nothing from now on: send this answer to the connected servers, and end."""
        self._refusal, self._refused_at = {"t": kind, "reason": reason}, time.monotonic()
        self._unlink()  # the next server starts another one

    def _why_stale(self) -> str | None:
        """Return why a process that is forked here would differ from a new one, or None."""
        now = inherited()
        differing = [name for name in now if now[name] != self._inherited.get(name)]
        return f"its {differing[0]} changed" if differing else self._files.why_changed()

    # -- connections ----------------------------------------------------------------------------------------

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            sock, _ = self._listener.accept()
            if peer_uid(sock) != os.getuid():
                sock.close()
                return
            sock.setblocking(False)
            self._clients[sock.fileno()] = _Client(sock)
            self._poll.register(sock, select.POLLIN)

    def _hear(self, client: _Client) -> None:
        try:
            requests = client.receive()
            for request in requests or ():
                self._linger_seconds = float(request["linger_seconds"])
                if request["t"] == "start":
                    self._start(request, client)
        except (KeyError, TypeError, ValueError):  # junk
            requests = None
        if requests is None:
            self._poll.unregister(client.sock)
            del self._clients[client.sock.fileno()]
            client.close()
            self._needed_at = time.monotonic()

    def _start(self, request: Header, client: _Client) -> None:
        if not request.get("is_urgent", True):
            self._do_all_chores()
        if self._refusal is None and (why := self._why_stale()) is not None:
            self._refuse("stale", why)
        if self._refusal is not None:
            client.answer(self._refusal)
            return
        try:
            between = os.fork()
        except OSError as err:
            client.answer({"t": "failed", "reason": err.strerror})
            return
        if between == 0:
            self._fork_keeper(request, client)
        while client.fds:
            os.close(client.fds.popleft())
        if os.waitpid(between, 0)[1] != 0:
            client.answer({"t": "failed", "reason": "the process between it and the keeper failed"})

    # -- ending ---------------------------------------------------------------------------------------------

    def _is_over(self) -> bool:
        """Whether this process is not needed: it has no server, or memory is short and its end frees some."""
        if self._refusal is not None:
            return time.monotonic() - self._refused_at > LOOK_SECONDS
        if not self._is_found():  # a server that it did not answer removed it
            return not self._clients
        if not self._clients and time.monotonic() - self._needed_at > self._linger_seconds:
            return True
        return is_short() and own_bytes() > MIN_OWN_BYTES

    def _is_found(self) -> bool:
        try:
            return self._path.stat().st_ino == self._inode
        except OSError:
            return False

    def _unlink(self) -> None:
        if self._is_found():
            self._path.with_suffix(".log").unlink(missing_ok=True)
            self._path.unlink(missing_ok=True)

    def _leave(self) -> None:
        self._unlink()
        self._close_own()
        with contextlib.suppress(OSError):
            self._path.parent.rmdir()  # fails if another one is there

    def _close_own(self) -> None:
        self._listener.close()
        for client in self._clients.values():
            client.close()

    # -- in forked processes ------------------------------------------------------------------------------------

    def _fork_keeper(self, request: Header, client: _Client) -> NoReturn:
        """Fork the keeper, and report it, in a process that ends at once: so this process has no child to wait for."""
        code = 1
        try:
            signal.alarm(ANSWER_SECONDS)
            pid = os.fork()
            if pid == 0:
                family = _Family(request, client.fds.popleft(), self._imported, self._umask)
                self._close_own()
                if self._code is not None:
                    os.close(self._code)
                family.become_keeper()
            pidfd = os.pidfd_open(pid)  # before another process can reap it
            client.answer({"t": "started", "pid": pid}, [pidfd])
            code = 0
        except BaseException:  # it must never return into the forkserver's loop
            traceback.print_exc()
        finally:
            os._exit(code)


class _Family:
    """The first processes of a group: keeper, agent and zygote."""

    def __init__(self, request: Header, log: int, imported: zygote.Imported, umask: int) -> None:
        self._directory: str = request["directory"]
        self._environ: dict[str, str] = request["environ"]
        self._imported = imported
        self._umask = umask
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)

    def become_keeper(self) -> NoReturn:
        try:
            os.setsid()
            os.chdir("/")
            adopt_orphans()
            code = running.hold()
            agent = os.fork()
            if agent == 0:
                if code is not None:
                    os.close(code)
                self._become_agent()
            try:
                given = {"JUPYTER_DIST_FORKED_AGENT": f"{agent},{'' if code is None else code}"}
                self._execute(["-I", "-S"], "keeper", given, code)
            finally:
                os.kill(agent, signal.SIGKILL)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)

    def _become_agent(self) -> NoReturn:
        try:
            sock, child = socket.socketpair()
            pid = os.fork()
            if pid == 0:
                sock.close()
                self._become_zygote(child)
            self._execute([], "agent", {"JUPYTER_DIST_FORKED_ZYGOTE": f"{pid},{sock.fileno()}"}, sock.fileno())
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)  # ends the zygote, too

    def _execute(self, options: list[str], role: str, given: dict[str, str], keep: int | None) -> NoReturn:
        _close_all_but(keep)
        for signum in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
            signal.signal(signum, signal.SIG_DFL)
        arguments = [sys.executable, *options, running.BOOT, role, self._directory]
        os.execve(sys.executable, arguments, {**self._environ, **given})  # noqa: S606 - it has no shell

    def _become_zygote(self, sock: socket.socket) -> NoReturn:
        code = 1
        try:
            agent = os.getppid()
            os.umask(0o077)
            self._take_environment()
            _renew_random_numbers()
            arguments = [running.BOOT, "zygote", str(sock.fileno())]
            sys.argv[:] = arguments
            sys.orig_argv[:] = [sys.executable, *arguments]
            show_as(sys.orig_argv)
            code = zygote.run(sock, agent, self._imported)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)

    def _take_environment(self) -> None:
        """Set the group's values of environment variables in which groups of the same forkserver may differ."""
        for name in [name for name in os.environ if is_of_a_session(name)]:
            del os.environ[name]
        os.environ.update({name: value for name, value in self._environ.items() if is_of_a_session(name)})
        os.environ["JUPYTER_DIST_UMASK"] = f"{self._umask:o}"  # for ranks (rank/start/shim.py)


def _close_all_but(keep: int | None) -> None:
    """Close all descriptors of imported packages, before another program is executed with the descriptor `keep`."""
    if keep is not None:
        os.set_inheritable(keep, True)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) != keep:
            with contextlib.suppress(OSError):  # the descriptor of the listing itself
                os.close(int(name))


def _random_numbers() -> str | None:
    """Return the state of numpy's random numbers, which each fork would continue from; None without numpy."""
    try:
        numpy = importlib.import_module("numpy")
    except ImportError:
        return None
    return repr(numpy.random.get_state())


def _renew_random_numbers() -> None:
    """Draw new random seeds from the system, as a new process does: Python's `random` does so in each fork."""
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed()
    multiprocessing.current_process().authkey = os.urandom(32)
