"""A rank as a fresh Python process, for environments whose imports make forking unsafe."""

from __future__ import annotations

import os
import socket
from itertools import starmap

from jupyter_dist.protocol.wire.specs import RankSpec
from jupyter_dist.transport.frames import FrameDecoder, Header, encode_frame, unpack

from . import shim


def main(argument: str) -> int:
    """Read the spec from the socket with descriptor `argument`; become the shim of a process that becomes the rank."""
    agent = int(os.environ.pop("JUPYTER_DIST_AGENT_PID"))
    with socket.socket(fileno=int(argument)) as sock:
        header = _read_spec(sock)
        return shim.run(lambda: _become_rank(header), sock.fileno(), header["fds"], agent)


def _become_rank(header: Header) -> int:
    channel, stdout, stderr = header["fds"]
    os.write(channel, encode_frame({"t": "phase", "phase": "importing"}))
    from .preload import preload

    preload(header["preload"])
    return shim.become_rank(RankSpec.from_dict(header["spec"]), channel, stdout, stderr)


def _read_spec(sock: socket.socket) -> Header:
    decoder = FrameDecoder()
    while data := sock.recv(1 << 16):
        for header, _ in starmap(unpack, decoder.feed(data)):
            return header
    raise EOFError("the agent closed the connection before it sent a spec")
