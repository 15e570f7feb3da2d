"""nbdistributed through its own process and communication managers, and through its magic.

Its shutdown magics are never called: they end processes of others by name (`pkill -f worker.py`).
"""

from __future__ import annotations

import contextlib
import io
import time
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from nbdistributed.communication import CommunicationManager
from nbdistributed.magic import DistributedMagic
from nbdistributed.process_manager import ProcessManager

from .protocol import serve

JOIN_SECONDS = 60.0


class Rival:
    """One group of workers."""

    def __init__(self) -> None:
        self._ranks = 0
        self._lines: dict[int, int] = {}
        self._magic: DistributedMagic | None = None

    def start(self, ranks: int, code: str) -> dict[str, Any]:
        """Start workers and run the first cell on all."""
        began = time.perf_counter()
        self._ranks = ranks
        self._processes = ProcessManager()
        port = self._processes.start_workers(ranks, master_addr="127.0.0.1")
        self._workers = CommunicationManager(ranks, port, output_callback=self._heard)
        self._wait_for_workers()
        self._run(code, JOIN_SECONDS)
        return {"seconds": time.perf_counter() - began}

    def restart(self, ranks: int, code: str) -> dict[str, Any]:
        """It has no restart: shut down, start."""
        began = time.perf_counter()
        self.stop()
        self.start(ranks, code)
        return {"seconds": time.perf_counter() - began}

    def stop(self) -> dict[str, Any]:
        """Shut down as its `shutdown_all` does."""
        with contextlib.suppress(TimeoutError):
            self._workers.send_to_all("shutdown", {}, timeout=1.0)  # workers do not answer this one
        self._workers.shutdown()
        self._processes.shutdown()
        return {}

    def cell(self, code: str) -> dict[str, Any]:
        """A cell through its communication manager, which is the best it can do."""
        began = time.perf_counter()
        self._run(code, 30.0)
        return {"seconds": time.perf_counter() - began}

    def magic_cell(self, code: str) -> dict[str, Any]:
        """The same cell as a user runs it: the `%%distributed` magic."""
        if self._magic is None:
            self._magic = DistributedMagic(InteractiveShell.instance())
            self._magic._comm_manager, self._magic._process_manager = self._workers, self._processes
            self._magic._num_processes = self._ranks
        began = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()):
            self._magic.distributed("", code)
        return {"seconds": time.perf_counter() - began}

    def flood(self, code: str, patience: float) -> dict[str, Any]:
        """Run the code and count the lines that reach its output callback."""
        self._lines = dict.fromkeys(range(self._ranks), 0)
        began = time.perf_counter()
        try:
            self._run(code, patience)
            ended = True
        except TimeoutError:
            ended = False
        return {"seconds": time.perf_counter() - began, "ended": ended, "lines": sum(self._lines.values())}

    def _run(self, code: str, timeout: float) -> None:
        answers = self._workers.send_to_all("execute", code, timeout=timeout)
        errors = [answer["error"] for answer in answers.values() if "error" in answer]
        if errors:
            raise RuntimeError(errors[0])

    def _heard(self, rank: int, text: str, _stream: str) -> None:
        if self._lines:
            self._lines[rank] += len(text.splitlines())

    def _wait_for_workers(self) -> None:
        # Its ROUTER drops what it sends to a worker that has not connected yet: ask until all answer.
        deadline = time.monotonic() + JOIN_SECONDS
        while time.monotonic() < deadline:
            with contextlib.suppress(TimeoutError):
                self._workers.send_to_all("get_status", {}, timeout=0.25)
                return
        raise TimeoutError("the workers did not answer")


if __name__ == "__main__":
    rival = Rival()
    serve(
        {
            "start": rival.start,
            "restart": rival.restart,
            "stop": rival.stop,
            "cell": rival.cell,
            "magic_cell": rival.magic_cell,
            "flood": rival.flood,
        }
    )
