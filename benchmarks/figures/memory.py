"""What a rank holds in memory, beside an ipykernel that has imported torch, and the processes around it."""

from __future__ import annotations

import os
import sys
import time

from benchmarks.driver import Driver
from benchmarks.options import Options
from benchmarks.ours import FINAL, Client, Server
from benchmarks.processes import command_line, descendants, proportional_bytes
from benchmarks.tables import Table

KERNEL = "an ipykernel with torch"
CELLS = 500
MIB = 1 << 20
CODE = "t = torch.ones(1000)\ndist.all_reduce(t)\nprint(t.sum())"
START_SECONDS = 120


def measure(options: Options) -> list[Table]:
    """PSS: pages that processes share count for each in part."""
    if not options.ours:
        return []
    table = Table(f"Memory (PSS) with {options.ranks} CPU ranks", "MiB", KERNEL)
    with Server() as server, Driver("kernel", sys.executable) as kernel:
        kernel.ask("start", START_SECONDS, cells=["import torch, torch.distributed"], patience=START_SECONDS)
        client = Client(server)
        client.open_channel()
        group = client.start_group(options.ranks)["id"]
        client.wait_ready(group)
        client.cell(group, CODE)
        table.row(KERNEL).values.append(_kernel_bytes() / MIB)
        for row, size in _sizes(server, client, group).items():
            table.row(row).values.append(size)
        for number in range(CELLS):
            execution = client.must("POST", f"/groups/{group}/executions", {"code": CODE})["id"]
            if number % 50 == 49:
                _end(client, group, execution)
        for row, size in _sizes(server, client, group).items():
            table.row(f"{row}, after {CELLS} cells").values.append(size)
        client.close()
    most = max(table.ratio(row) for row in ("a rank", f"a rank, after {CELLS} cells"))
    table.aim(f"a rank under half of the ipykernel: {most:.2f}x", most < 0.5)
    return [table]


def _sizes(server: Server, client: Client, group: str) -> dict[str, float]:
    ranks = [rank["pid"] for rank in client.must("GET", f"/groups/{group}")["ranks"]]
    agent = server.agent_of(group)
    zygote = next(pid for pid in descendants(agent) if "boot.py zygote" in command_line(pid))
    sizes = [proportional_bytes(pid) / MIB for pid in ranks]
    return {
        "a rank": sum(sizes) / len(sizes),
        "its zygote": proportional_bytes(zygote) / MIB,
        "its agent": proportional_bytes(agent) / MIB,
        "the server": proportional_bytes(server.pid) / MIB,
    }


def _kernel_bytes() -> int:
    time.sleep(1.0)  # it may still be ending what an import started
    (kernel,) = (pid for pid in descendants(os.getpid()) if "ipykernel_launcher" in command_line(pid))
    return proportional_bytes(kernel)


def _end(client: Client, group: str, execution: str) -> None:
    while client.must("GET", f"/groups/{group}/executions/{execution}?wait=30")["execution"]["state"] not in FINAL:
        pass
