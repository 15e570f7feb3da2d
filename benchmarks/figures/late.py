"""Cells on many simulated ranks whose answers come one after the other: on a busy machine, and on fewer and more ranks.

What is measured, and how, is thousand.py's: the CPU time of the head and of the server for a cell.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from benchmarks.browser import chromium, server_for_pages
from benchmarks.options import Options
from benchmarks.ours import Client
from benchmarks.tables import Table

from .growth import STEEP, steepness
from .thousand import MOST_LATE_MS, NODES, RANKS_PER_NODE, SAME, SPREAD_SECONDS, cells_of_processes

SIZES = (NODES // 4, NODES // 2, NODES, 2 * NODES)
KEEP_BUSY = "while True: pass"
BUSY, QUIET = "every core is kept busy by another process", "a quiet machine"


def measure(options: Options) -> list[Table]:
    """The same cells in turns of quiet and busy, then for each number of ranks."""
    if not options.ours:
        return []
    what = f"CPU time of {SAME}, answered within {SPREAD_SECONDS:g} s"
    load = Table(f"{what}, on {NODES * RANKS_PER_NODE} simulated ranks: head and server together", "ms", "")
    sizes = Table(f"{what}, by the number of ranks: head and server together", "ms", "")
    with ExitStack() as stack:
        server = stack.enter_context(server_for_pages(chromium()))
        client = Client(server)
        stack.callback(client.close)
        for name in (QUIET, BUSY, QUIET, BUSY):
            with _busy_cores() if name == BUSY else ExitStack():
                cells_of_processes(load, client, server, options.rounds, codes={name: SAME})
        for nodes in SIZES:
            ranks = f"{nodes * RANKS_PER_NODE} ranks on {nodes} nodes"
            cells_of_processes(sizes, client, server, options.rounds, nodes=nodes, codes={ranks: SAME})
    busy = load.row(BUSY).median
    load.aim(f"at most {MOST_LATE_MS:g} ms on a busy machine: {busy:.0f} ms", busy <= MOST_LATE_MS)
    points = [(nodes * RANKS_PER_NODE, row.median) for nodes, row in zip(SIZES, sizes.rows, strict=True)]
    exponent = steepness(points)
    sizes.aim(f"not steeper than linear, exponent {exponent:.2f}", exponent < STEEP)
    return [load, sizes]


@contextmanager
def _busy_cores() -> Iterator[None]:
    """Keep each core busy with a process of the same priority."""
    cores = len(os.sched_getaffinity(0))
    processes = [subprocess.Popen([sys.executable, "-c", KEEP_BUSY]) for _ in range(cores)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()
