"""A headless Jupyter server for a process that has none: VS Code, nbclient, a script, a shell."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import subprocess
import sys
import tempfile
from typing import IO

from jupyter_dist.protocol.errors import JupyterDistError

from .running import Server

START_SECONDS = 60.0
STOP_SECONDS = 20.0


class PrivateServer:
    """Listens on loopback; ends when this process ends or closes it. Its groups keep running for their lease."""

    def __init__(self, server: Server, process: subprocess.Popen[bytes]) -> None:
        self.server = server
        self._process = process

    @classmethod
    async def start(cls, root_dir: str | None = None) -> PrivateServer:
        """Start a private server.

        Raises:
            JupyterDistError: `no_server`, with its output, if it does not start.
        """
        return await asyncio.to_thread(cls._start, root_dir or os.getcwd())

    @classmethod
    def _start(cls, root_dir: str) -> PrivateServer:
        token = secrets.token_urlsafe(32)
        with tempfile.TemporaryFile() as errors:
            process = _spawn(errors)
            assert process.stdin is not None
            assert process.stdout is not None
            # The token is sent through the pipe, because all users can read arguments. The server ends with the pipe.
            process.stdin.write(json.dumps({"token": token, "root_dir": root_dir}).encode() + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
            if not line:
                process.communicate(timeout=STOP_SECONDS)
                errors.seek(0)
                said = errors.read()[-2000:].decode("utf-8", "replace").strip()
                message = f"A private Jupyter server could not be started with {sys.executable}."
                raise JupyterDistError("no_server", message, said or "It printed nothing.")
        return cls(Server(json.loads(line)["url"], token, process.pid, is_local=True), process)

    def close(self) -> None:
        """End it. Idempotent."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _spawn(errors: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "jupyter_dist.client.servers.headless"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        start_new_session=True,  # Ctrl-C must only reach us; the API interrupts the ranks
    )
