"""The floor of a cell: a pyzmq ROUTER that sends a message to N processes, whose DEALERs send it back."""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from typing import Any

import zmq

from .protocol import serve


class Echo:
    """One ROUTER and its processes."""

    def __init__(self) -> None:
        self._socket = zmq.Context().socket(zmq.ROUTER)
        self._directory = tempfile.TemporaryDirectory()
        self._names: list[bytes] = []

    def start(self, ranks: int) -> dict[str, Any]:
        """Start the processes and wait until each has said its name."""
        address = f"ipc://{self._directory.name}/echo"
        self._socket.bind(address)
        context = multiprocessing.get_context("spawn")
        for rank in range(ranks):
            context.Process(target=answer, args=(address, b"%d" % rank), daemon=True).start()
        self._names = [self._socket.recv_multipart()[0] for _ in range(ranks)]
        return {}

    def round(self, message: str) -> dict[str, Any]:
        """Send to all, until all have sent it back."""
        began = time.perf_counter()
        payload = message.encode()
        for name in self._names:
            self._socket.send_multipart([name, payload])
        for _ in self._names:
            self._socket.recv_multipart()
        return {"seconds": time.perf_counter() - began}


def answer(address: str, name: bytes) -> None:
    """Send everything back."""
    socket = zmq.Context().socket(zmq.DEALER)
    socket.setsockopt(zmq.IDENTITY, name)
    socket.connect(address)
    socket.send(b"here")
    while True:
        socket.send(socket.recv())


if __name__ == "__main__":
    echo = Echo()
    serve({"start": echo.start, "round": echo.round})
