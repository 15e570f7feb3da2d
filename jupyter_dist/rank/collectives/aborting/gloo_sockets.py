"""Finds gloo's sockets, and no others, by the event loops of gloo that watch them.

Each process group over gloo has a device: an epoll instance that watches a listening socket and all connections,
including later ones (TORCH_GLOO_LAZY_INIT). The kernel lists what an epoll instance watches. A device is recognized
when it is created, by the listening socket that appears in an event loop at that moment; its connections are looked
up when they are needed. A TCPStore is recognized by its port.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from jupyter_dist.rank.collectives import torch_compat
from jupyter_dist.rank.guard.own import os, read_text, socket

_EVENT_LOOP = "anon_inode:[eventpoll]"
_WATCHED = re.compile(r"^tfd:\s*(\d+) .* ino:\s*([0-9a-f]+) ", re.MULTILINE)
_TCP_ESTABLISHED = 1
_PR_SET_TIMERSLACK = 29
_SLACK_NANOSECONDS = 40_000_000
_DEVICE_MAKERS = ("create_device", "create_default_device")


@dataclass(frozen=True)
class _EventLoop:
    """An epoll instance of this process."""

    is_closed_on_exec: bool
    watched: list[tuple[int, int]]  # descriptors and their inodes

    @property
    def inodes(self) -> set[int]:
        """Return the inodes of all watched descriptors."""
        return {inode for _, inode in self.watched}

    def listeners(self) -> set[int]:
        """Return the inodes of the watched listening TCP sockets."""
        return {inode for fd, inode in self.watched if _is_listener(fd, inode)}


class GlooSockets:
    """The devices and stores created since `install`. Any thread may call."""

    def __init__(self) -> None:
        self._listeners: set[int] = set()
        self._openings: list[set[int]] = []  # for each device being created: the listeners before it
        self._ports: set[int] = set()  # of TCPStores

    def install(self) -> None:
        """Record every device and TCPStore from now on."""
        gloo = torch_compat.gloo_class()
        if gloo is not None:  # a torch that was built without
            gloo.__init__ = self._noting_device(gloo.__init__)
            for name in _DEVICE_MAKERS:
                if hasattr(gloo, name):
                    setattr(gloo, name, staticmethod(self._noting_device(getattr(gloo, name))))
        store = torch_compat.tcp_store_class()
        store.__init__ = self._noting_port(store.__init__)

    def connections(self) -> list[socket.socket]:
        """Return duplicates of gloo's connections, which the caller closes."""
        loops = _event_loops()
        known = self._listeners.union(*(_new_listeners(loops, before) for before in self._openings))
        ours = [loop for loop in loops if not known.isdisjoint(loop.inodes)]
        return [sock for loop in ours for fd, inode in loop.watched if (sock := _connection(fd, inode)) is not None]

    def forget(self) -> None:
        """Forget all devices, in a forked child: closing their connections would cut the parent off."""
        self._listeners, self._openings = set(), []

    def listeners(self) -> frozenset[int]:
        """Return the inodes of the listening sockets of all gloo devices so far, which identify the devices."""
        return frozenset(self._listeners)

    def num_established(self, listeners: frozenset[int]) -> int:
        """Return how many connections these devices have that neither side has closed."""
        watched = [each for loop in _event_loops() if not loop.inodes.isdisjoint(listeners) for each in loop.watched]
        return sum(_is_established(fd, inode) for fd, inode in watched)

    def store_connection(self, fd: int | None) -> socket.socket | None:
        """Return a duplicate of this descriptor, which the caller closes, if it is a connection to a TCPStore."""
        sock = None if fd is None else _connection(fd)
        if sock is not None and self._ports.isdisjoint(_ports(sock)):
            sock.close()
            return None
        return sock

    def _noting_device(self, make: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(make)
        def noting(*args: Any, **kwargs: Any) -> Any:
            before = {inode for loop in _event_loops() for inode in loop.listeners()}
            self._openings.append(before)
            try:
                with _patient_timers():
                    return make(*args, **kwargs)
            finally:
                self._listeners |= _new_listeners(_event_loops(), before)
                self._openings.remove(before)

        return noting

    def _noting_port(self, init: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(init)
        def noting(store: Any, *args: Any, **kwargs: Any) -> None:
            port = kwargs.get("port", args[1] if len(args) > 1 else 0)
            if port:  # 0: any port, known once it listens
                self._ports.add(int(port))
            init(store, *args, **kwargs)
            self._ports.add(int(store.port))

        return noting


@contextlib.contextmanager
def _patient_timers() -> Iterator[None]:
    """Set a large timer slack for threads that are started in this context, so that their timers fire late.

    gloo's event loop wakes up every 10 ms although nothing happens, which is nearly all that an idle rank costs. With
    this it wakes up 20 times a second; data on a connection wakes it at once, as before.
    """
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(_SLACK_NANOSECONDS), 0, 0, 0)
    try:
        yield
    finally:
        prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(0), 0, 0, 0)  # this thread's default; threads inherit at their start


def _new_listeners(loops: list[_EventLoop], before: set[int]) -> set[int]:
    """Return the new listeners.

    Another thread may have created an event loop meanwhile. gloo's descriptors are inherited by programs that this
    process starts, while libraries usually prevent that for theirs: this distinguishes them if both are new.
    """
    new = [(loop, inodes) for loop in loops if (inodes := loop.listeners() - before)]
    likely = [inodes for loop, inodes in new if not loop.is_closed_on_exec]
    return set().union(*(likely or [inodes for _, inodes in new]))


def _event_loops() -> list[_EventLoop]:
    return list(_each_event_loop())


def _each_event_loop() -> Iterator[_EventLoop]:
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # closed meanwhile
            if os.readlink(f"/proc/self/fd/{name}") == _EVENT_LOOP:
                info = read_text(f"/proc/self/fdinfo/{name}")
                watched = [(int(fd), int(inode, 16)) for fd, inode in _WATCHED.findall(info)]
                yield _EventLoop(bool(fcntl.fcntl(int(name), fcntl.F_GETFD) & fcntl.FD_CLOEXEC), watched)


def duplicate(fd: int, inode: int | None = None) -> socket.socket | None:
    """Return a duplicate of a TCP socket, with this inode if one is given; None for anything else."""
    try:
        copy = os.dup(fd)
    except OSError:
        return None
    link = os.readlink(f"/proc/self/fd/{copy}")  # the descriptor may be another file by now
    if link.startswith("socket:") and inode in (None, int(link[8:-1])):
        sock = socket.socket(fileno=copy)
        if sock.family in (socket.AF_INET, socket.AF_INET6) and sock.type == socket.SOCK_STREAM:
            return sock
        sock.close()
    else:
        os.close(copy)
    return None


def _is_listener(fd: int, inode: int) -> bool:
    sock = duplicate(fd, inode)
    if sock is None:
        return False
    with sock:
        return bool(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def _is_established(fd: int, inode: int) -> bool:
    sock = duplicate(fd, inode)
    if sock is None:
        return False
    with sock:
        return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == _TCP_ESTABLISHED


def _connection(fd: int, inode: int | None = None) -> socket.socket | None:
    """Return a duplicate of a connected TCP socket; None for anything else."""
    sock = duplicate(fd, inode)
    if sock is not None and not _ports(sock):
        sock.close()
        return None
    return sock


def _ports(sock: socket.socket) -> set[int]:
    """Return the ports of both ends; empty if it is not connected."""
    try:
        return {sock.getsockname()[1], sock.getpeername()[1]}
    except OSError:
        return set()
