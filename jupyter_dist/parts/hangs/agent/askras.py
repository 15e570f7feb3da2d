"""Asks NCCL's RAS for its report on the communicators of this machine's ranks."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Mapping

from jupyter_dist.agent.group.group import AgentGroup
from jupyter_dist.protocol.accelerators import BACKENDS, RasPort

from . import rasreport
from .rasreport import Communicator

SECONDS = 1.0
MAX_BYTES = 8 << 20
# Processes of several groups share the port, and the kernel chooses one for each connection.
TRIES = 12
_BEGIN = (b"CLIENT PROTOCOL 2\n", b"SET FORMAT json\n", b"TIMEOUT 1\n")
_END = b"VERBOSE STATUS\n"


async def ask(group: AgentGroup) -> tuple[list[Communicator], dict[int, int]]:
    """Return the communicators of the group's ranks on this machine, and these ranks by the ids of their processes.

    Takes at most `SECONDS`; there are none where RAS is not there, is turned off or answers something else.
    """
    port = BACKENDS[group.spec.backend].ras
    ranks = {rank.local_pid: rank.rank for rank in group.living() if rank.local_pid is not None}
    address = None if port is None or not ranks else address_of(port, {**os.environ, **group.spec.env.for_exec()})
    if address is None:
        return [], ranks
    return await asyncio.to_thread(_ask, address, ranks), ranks


def address_of(port: RasPort, environment: Mapping[str, str]) -> tuple[str, int] | None:
    """Return where RAS listens in processes with this environment; None if it is turned off, or nowhere."""
    if environment.get(port.enabled_variable, "1") == "0":
        return None
    host, _, number = environment.get(port.address_variable, port.address).rpartition(":")
    try:
        return host.strip("[]") or "localhost", int(number)
    except ValueError:
        return None


def _ask(address: tuple[str, int], ranks: Mapping[int, int]) -> list[Communicator]:
    deadline = time.monotonic() + SECONDS
    for _ in range(TRIES):
        try:
            report = _report(address, deadline)
        except OSError:  # nothing listens there, or it takes too long
            return []
        found = rasreport.of_group(rasreport.read(report), ranks)
        if found:
            return found
    return []


def _report(address: tuple[str, int], deadline: float) -> bytes:
    """Return all that RAS sends; it closes the connection after a report."""
    with socket.create_connection(address, max(0.01, deadline - time.monotonic())) as sock:
        for line in _BEGIN:
            sock.sendall(line)
            _receive(sock, 256, deadline)
        sock.sendall(_END)
        report = bytearray()
        with contextlib.suppress(ConnectionResetError):
            while len(report) < MAX_BYTES and (data := _receive(sock, 1 << 16, deadline)):
                report += data
        return bytes(report)


def _receive(sock: socket.socket, number: int, deadline: float) -> bytes:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    sock.settimeout(left)
    return sock.recv(number)
