"""ipyparallel: a Cluster with its default launcher, and a blocking view."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from typing import Any

import ipyparallel
import numpy

from .protocol import serve

JOIN = """
import torch, torch.distributed as dist
dist.init_process_group('gloo', init_method='file://{store}', rank=rank, world_size={ranks})
"""


class Rival:
    """One Cluster."""

    def __init__(self) -> None:
        self._directory = tempfile.mkdtemp(prefix="jdb-")
        os.environ["IPYTHONDIR"] = self._directory
        self._generation = 0

    def start(self, ranks: int, code: str, join: bool = True) -> dict[str, Any]:
        """Start engines, form a process group in them if asked to, run the first cell on all."""
        began = time.perf_counter()
        self._cluster = ipyparallel.Cluster(n=ranks, log_level=40)
        self._client = self._cluster.start_and_connect_sync()
        self._first_cell(ranks, code, join)
        return {"seconds": time.perf_counter() - began}

    def restart(self, ranks: int, code: str, join: bool = True) -> dict[str, Any]:
        """Restart the engines, and the same again."""
        began = time.perf_counter()
        self._cluster.restart_engines_sync()
        self._client.wait_for_engines(ranks, timeout=60)
        self._first_cell(ranks, code, join)
        return {"seconds": time.perf_counter() - began}

    def stop(self) -> dict[str, Any]:
        """Stop the cluster."""
        self._client.close()
        self._cluster.stop_cluster_sync()
        return {}

    def cell(self, code: str) -> dict[str, Any]:
        """A cell on all engines, until all have replied."""
        began = time.perf_counter()
        self._view.execute(code, block=True)
        return {"seconds": time.perf_counter() - began}

    def flood(self, code: str, patience: float) -> dict[str, Any]:
        """Run the code and count the lines that the client has in the end."""
        began = time.perf_counter()
        result = self._view.execute(code, block=False)
        result.wait(patience)
        left = max(1.0, patience - (time.perf_counter() - began))
        ended = result.ready() and result.wait_for_output(left)
        seconds = time.perf_counter() - began
        return {"seconds": seconds, "ended": ended, "lines": sum(text.count("\n") for text in result.stdout)}

    def death(self, code: str) -> dict[str, Any]:
        """Kill an engine in a cell; until its result says so."""
        victim = self._client[1]
        pid = victim.apply_sync(os.getpid)
        result = victim.execute(code, block=False)
        time.sleep(0.5)
        began = time.perf_counter()
        os.kill(pid, signal.SIGKILL)
        try:
            result.get(timeout=60)
        except ipyparallel.error.RemoteError as err:
            if "EngineError" not in str(err):
                raise
        return {"seconds": time.perf_counter() - began}

    def hold(self, size_bytes: int) -> dict[str, Any]:
        """Make the array that is pushed."""
        self._array = numpy.random.default_rng(0).integers(0, 255, size_bytes, dtype=numpy.uint8)
        return {}

    def push(self, read: str) -> dict[str, Any]:
        """The array to all engines."""
        began = time.perf_counter()
        self._view.push({"x": self._array}, block=True)
        return {"seconds": time.perf_counter() - began}

    def push_and_read(self, read: str) -> dict[str, Any]:
        """The same, and a cell that reads it."""
        began = time.perf_counter()
        self._view.push({"x": self._array}, block=True)
        self._view.execute(read, block=True)
        return {"seconds": time.perf_counter() - began}

    def pull(self, read: str) -> dict[str, Any]:
        """The array of one engine; a client's memory of results, which only grows, is emptied."""
        began = time.perf_counter()
        array = self._client[0].pull("x", block=True)
        assert array[::4096].sum() == self._array[::4096].sum()
        seconds = time.perf_counter() - began
        self._client.purge_everything()
        return {"seconds": seconds}

    def _first_cell(self, ranks: int, code: str, join: bool) -> None:
        self._generation += 1
        self._view = self._client[:]
        self._view.scatter("rank", list(range(ranks)), flatten=True, block=True)
        self._view.execute("import os; os.environ['RANK'] = str(rank)", block=True)
        if join:
            store = f"{self._directory}/store-{self._generation}"
            self._view.execute(JOIN.format(store=store, ranks=ranks), block=True)
        self._view.execute(code, block=True)


if __name__ == "__main__":
    rival = Rival()
    serve(
        {
            "start": rival.start,
            "restart": rival.restart,
            "stop": rival.stop,
            "cell": rival.cell,
            "flood": rival.flood,
            "hold": rival.hold,
            "death": rival.death,
            "push": rival.push,
            "push_and_read": rival.push_and_read,
            "pull": rival.pull,
        }
    )
