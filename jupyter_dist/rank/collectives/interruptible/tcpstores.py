"""Lets an interrupt end the constructor of a TCPStore, which waits in C++ for workers or a server, for minutes.

It runs in a thread, which the main thread waits for. After an interrupt its connections are closed: it ends, and its
port is free again.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

from jupyter_dist.rank.collectives import torch_compat
from jupyter_dist.rank.collectives.aborting import unhang
from jupyter_dist.rank.collectives.aborting.gloo_sockets import duplicate
from jupyter_dist.rank.guard.own import os, socket, threading

INTERRUPTIBLE = True  # cells wait below these functions

_LOOK_SECONDS = 0.05
_END_SECONDS = 1.0


def install() -> None:
    """Make constructors of TCPStores end at an interrupt, in the main thread of this process."""
    torch_compat.replace_init(torch_compat.tcp_store_class(), _interruptible)


class _Construction(threading.Thread):
    """Constructs a store, beside a thread that closes its connections if it is unwanted: signals reach neither."""

    def __init__(self, construct: Callable[[], None]) -> None:
        super().__init__(name="construct a TCPStore", daemon=True)
        self._construct = construct
        self._before = _sockets()
        self.is_unwanted = False
        self.error: BaseException | None = None

    def run(self) -> None:
        with contextlib.suppress(RuntimeError):  # no thread can be started: then it ends at its own timeout
            threading.Thread(target=self._watch, name="end a TCPStore", daemon=True).start()
        try:
            self._construct()
        except BaseException as err:  # raised in the main thread
            self.error = err

    def _watch(self) -> None:
        # It may not have connected yet. A client that does not find its server ends at its own timeout.
        while self.is_alive():
            self.join(_LOOK_SECONDS)
            if self.is_unwanted:
                _close(_sockets() - self._before)


def _interruptible(init: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(init)
    def construct(store: Any, *args: Any, **kwargs: Any) -> None:
        if threading.current_thread() is not threading.main_thread():
            init(store, *args, **kwargs)
            return
        construction = _Construction(functools.partial(init, store, *args, **kwargs))
        try:
            construction.start()
            while construction.is_alive():
                construction.join(_LOOK_SECONDS)
        except RuntimeError:
            if construction.ident is not None:
                raise
            init(store, *args, **kwargs)  # no thread can be started: the limit on processes
        except BaseException:
            construction.is_unwanted = True
            construction.join(_END_SECONDS)
            raise
        if construction.error is not None:
            raise construction.error

    return construct


def _sockets() -> set[tuple[int, int]]:
    """Return the sockets of this process, by descriptor and inode."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            target = os.readlink(f"/proc/self/fd/{name}")
            if target.startswith("socket:"):
                found.add((int(name), int(target[8:-1])))
    return found


def _close(sockets: set[tuple[int, int]]) -> None:
    """Shut down the connections among new sockets that lead to a server among them."""
    opened = [sock for fd, inode in sockets if (sock := duplicate(fd, inode)) is not None]
    ports = {sock.getsockname()[1] for sock in opened if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)}
    unhang.break_connections(sock for sock in opened if _peer_port(sock) in ports)
    for sock in opened:
        sock.close()


def _peer_port(sock: socket.socket) -> int | None:
    try:
        return int(sock.getpeername()[1])
    except OSError:  # not connected
        return None
