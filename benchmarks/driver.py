"""Our side of the JSON lines: start a driver, ask it, end it and all below it."""

from __future__ import annotations

import importlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from .processes import cpu_seconds, descendants, kill

REPOSITORY = Path(__file__).resolve().parent.parent
START_SECONDS = 90.0


class DriverError(RuntimeError):
    """A driver failed or did not answer in time."""


class Driver:
    """One floor or rival in its own process and session."""

    def __init__(self, module: str, python: str) -> None:
        self._module = module
        self._python = python
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (it is open as long as the driver)
        # A driver is killed, and removes nothing: what it puts in its temporary folder, we do.
        self._directory = tempfile.TemporaryDirectory(prefix="jdb-", ignore_cleanup_errors=True)
        self._buffer = b""

    def __enter__(self) -> Driver:
        path = f"{Path(self._python).parent}{os.pathsep}{os.environ['PATH']}"  # nbdistributed starts a bare `python`
        own = {"PATH": path, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        own["TMPDIR"] = self._directory.name
        self._process = subprocess.Popen(
            [self._python, "-m", f"benchmarks.drivers.{self._module}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=REPOSITORY,
            env={**os.environ, **own},
            start_new_session=True,
        )
        try:
            self._answer(START_SECONDS)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The driver's own process."""
        return self._process.pid

    def ask(self, do: str, timeout: float = 60.0, **arguments: Any) -> dict[str, Any]:
        """Obey one command and return its answer. Raises DriverError."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
        self._process.stdin.flush()
        return self._answer(timeout)

    def cpu_seconds(self) -> float:
        """CPU used so far by the driver and all below it."""
        return cpu_seconds([self.pid])

    def close(self) -> None:
        """Kill it and all below it. Idempotent."""
        below = descendants(self._process.pid)
        self._process.kill()
        self._process.wait()
        kill(below)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._directory.cleanup()

    def _answer(self, timeout: float) -> dict[str, Any]:
        line = self._read_line(time.monotonic() + timeout)
        answer: dict[str, Any] = json.loads(line) if line else {"ok": False, "error": "no answer in time, or ended"}
        if not answer.pop("ok"):
            raise DriverError(f"{self._module}: {answer['error']}\n{self._last_words()}")
        return answer

    def _read_line(self, deadline: float) -> bytes:
        assert self._process.stdout is not None
        fd = self._process.stdout.fileno()
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([fd], [], [], max(0.0, deadline - time.monotonic()))
            data = os.read(fd, 1 << 16) if ready else b""
            if not data:
                return b""
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _last_words(self) -> str:
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - 2000))
        return self._log.read().decode("utf-8", "replace")


def module_of_tests(name: str) -> Any:
    """Import a module of the tests, such as the one that has a figure's cells."""
    folder = str(REPOSITORY / "tests")
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module(name)
