"""Measures one tree of the product, which PYTHONPATH names, by its Python client: prints a JSON object of figures."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import psutil

CELLS = 100
LINES = 100_000
SMALL = "import torch\nkept = {i: torch.full((10,), float(i)) for i in range(100)}\nlr = 0.1"


def main() -> None:
    """Start a group of two ranks and measure; the group ends with it."""
    from jupyter_dist.client import Client  # noqa: PLC0415 - the import is a figure

    found = {"import of the client, s of CPU": time.process_time() - BEGAN}
    with tempfile.TemporaryDirectory() as folder:
        # A server and an import of torch of its own.
        os.environ.update(JUPYTER_DIST_FORKSERVERS=folder, JUPYTER_RUNTIME_DIR=folder)
        with Client.connect() as client:
            found["first start, s"] = _seconds(lambda: client.start("first", num_ranks=2).shutdown())
            began = time.perf_counter()
            group = client.start("second", num_ranks=2)
            found["start, s"] = time.perf_counter() - began
            found |= _figures(group, folder)
            group.shutdown()
    json.dump(found, sys.stdout)


def _figures(group: object, folder: str) -> dict[str, float]:
    run = group.run
    run("x = 0")
    before = _cpu(folder)
    times = [_seconds(lambda: run("x = x + 1")) for _ in range(CELLS)]
    cpu = (_cpu(folder) - before) / CELLS
    run(SMALL)
    saves = [_seconds(lambda at=at: group.save(name=f"s{at}", folder=folder)) for at in range(3)]
    restores = [_seconds(lambda: group.restore("s0", folder=folder)) for _ in range(3)]
    return {
        "cell, ms": 1000 * statistics.median(times),
        "cell, ms of CPU of all processes": 1000 * cpu,
        f"{LINES} lines of 2 ranks, s": _seconds(lambda: run(f"for i in range({LINES}): print('line', i)")),
        "cell with undo, ms": 1000 * statistics.median(_seconds(lambda: run("lr = lr * 0.5")) for _ in range(20)),
        "save of 100 tensors, ms": 1000 * min(saves),
        "restore of 100 tensors, ms": 1000 * min(restores),
        "memory of all processes, MiB": _memory(folder),
    }


def _processes(folder: str) -> list[psutil.Process]:
    """Return the server, the agent and the ranks: all that have this folder in their environment."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.pid != os.getpid() and folder in process.environ().values():
                found.append(process)
    return found


def _cpu(folder: str) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in _processes(folder))


def _memory(folder: str) -> float:
    return sum(_shared_fairly(process.pid) for process in _processes(folder)) / 1024


def _shared_fairly(pid: int) -> int:
    rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(row.split()[1]) for row in rows if row.startswith("Pss:"))


def _seconds(call: object) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


BEGAN = time.process_time()
main()
