"""A network whose frames are late, and of which some are lost: Linux's netem is not in every kernel.

python lossy.py DELAY_SECONDS LOSS A B [A B ...]    each pair of descriptors of TAP devices is a cable
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import heapq
import itertools
import os
import random
import select
import struct
import subprocess
import sys
import time

MAX_FRAME = 65_536
_TUNSETIFF = 0x400454CA
_TAP_WITHOUT_HEADER = 0x1002
_CLONE_NEWNET = 0x40000000


def open_tap(name: str, namespace: str | None = None) -> int:
    """Make a TAP device, in a network namespace, and return the descriptor of its frames."""
    libc = ctypes.CDLL(None, use_errno=True)
    here = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        if namespace is not None:
            _enter(libc, f"/run/netns/{namespace}")
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _TAP_WITHOUT_HEADER))
        return device
    finally:
        if libc.setns(here, _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        os.close(here)


def _enter(libc: ctypes.CDLL, path: str) -> None:
    namespace = os.open(path, os.O_RDONLY)
    try:
        if libc.setns(namespace, _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
    finally:
        os.close(namespace)


def cable(pairs: list[tuple[int, int]], delay: float, loss: float) -> subprocess.Popen[bytes]:
    """Start the process that passes frames between the two descriptors of each pair, which this process closes."""
    fds = [fd for pair in pairs for fd in pair]
    command = [sys.executable, "-S", "-E", __file__, str(delay), str(loss), *map(str, fds)]
    process = subprocess.Popen(command, pass_fds=fds)
    for fd in fds:
        os.close(fd)
    return process


def pass_frames(delay: float, loss: float, *fds: int) -> None:
    """Pass frames on until the devices are gone."""
    others = {fd: other for one, two in zip(fds[::2], fds[1::2], strict=True) for fd, other in ((one, two), (two, one))}
    chance, numbers = random.Random(1), itertools.count()
    late: list[tuple[float, int, int, bytes]] = []
    while others:
        wait = max(0.0, late[0][0] - time.monotonic()) if late else None
        for fd in select.select(list(others), [], [], wait)[0]:
            try:
                frame = os.read(fd, MAX_FRAME)
            except OSError as err:
                if err.errno != errno.EAGAIN:  # its machine is gone
                    others.pop(fd)
                continue
            if chance.random() >= loss:
                heapq.heappush(late, (time.monotonic() + delay, next(numbers), others[fd], frame))
        while late and late[0][0] <= time.monotonic():
            _, _, fd, frame = heapq.heappop(late)
            try:
                os.write(fd, frame)
            except OSError:  # the cable is out, or its queue is full: the frame is lost
                continue


if __name__ == "__main__":
    pass_frames(float(sys.argv[1]), float(sys.argv[2]), *map(int, sys.argv[3:]))
