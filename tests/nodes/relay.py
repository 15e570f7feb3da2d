"""A network that can be cut: connections through it stay open and carry nothing, as when a cable is pulled."""

from __future__ import annotations

import contextlib
import select
import socket
import threading


class Relay:
    """Listens on an address of this machine, and passes on what arrives to a port, unless it is cut."""

    def __init__(self, target: tuple[str, int], host: str = "127.0.0.1") -> None:
        self._target = target
        self._listener = socket.create_server((host, 0))
        self.host, self.port = host, self._listener.getsockname()[1]
        self.endpoint = f"{self.host}:{self.port}"
        self._is_cut = threading.Event()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def cut(self) -> None:
        self._is_cut.set()

    def heal(self) -> None:
        self._is_cut.clear()

    def close(self) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        pairs: dict[socket.socket, socket.socket] = {}
        while not self._is_over.is_set():
            if self._is_cut.wait(0):
                self._is_over.wait(0.02)
                continue
            ready, _, _ = select.select([self._listener, *pairs], [], [], 0.02)
            for sock in ready:
                if sock is self._listener:
                    near, _ = sock.accept()
                    try:
                        far = socket.create_connection(self._target)
                    except OSError:  # the head is gone
                        near.close()
                        continue
                    pairs.update({near: far, far: near})
                elif sock in pairs and not self._passed(sock, pairs[sock]):
                    other = pairs.pop(sock)
                    pairs.pop(other, None)
                    sock.close()
                    other.close()
        for sock in (self._listener, *pairs):
            sock.close()

    @staticmethod
    def _passed(source: socket.socket, target: socket.socket) -> bool:
        data = b""
        with contextlib.suppress(OSError):
            data = source.recv(1 << 16)
            target.sendall(data)
            return bool(data)
        return False
