"""Undo of a cell, and what keeping it costs: a rank's state is one large tensor and many small ones."""

from __future__ import annotations

import os
import time

from benchmarks.options import Options
from benchmarks.ours import Client, Server
from benchmarks.tables import Table

MIB = int(os.environ.get("JUPYTER_DIST_BENCH_UNDO_MIB", "128"))  # of each rank; 1024 on a machine with the memory
CHANGED_MIB = max(1, MIB // 100)
STATE = f"""
state = [torch.ones(1 << 18) for _ in range({MIB})]
changed = state[:{CHANGED_MIB}]
numbers = {{number: [number] for number in range(1000)}}
"""
CHANGE = "for tensor in changed: tensor.add_(1)\nnumbers[5].append(6)"
CHECK = "assert all(float(tensor.sum()) == 1 << 18 for tensor in changed) and numbers[5] == [5]"
# About a second on CPU: 0.4 M parameters, AdamW.
MODEL = """
net = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(6)))
optimizer = torch.optim.AdamW(net.parameters())
inputs = torch.randn(512, 256)
"""
TRAIN = """
for _ in range(50):
    optimizer.zero_grad()
    net(inputs).square().mean().backward()
    optimizer.step()
"""
PLAIN = "the same without"
FIRST, KEPT = "the first cell of training that keeps undo, which copies all", "a later cell of training that keeps undo"
LATER_CELLS = 3
UNDO = "undo of a cell that changed one percent"
LIMITS = {"group": 0.5, "training": 1.1}


def measure(options: Options) -> list[Table]:
    """Undo is timed as a client sees it, training as the slowest rank reports it."""
    if not options.ours:
        return []
    undo = Table(f"Undo on {options.ranks} CPU ranks with {MIB} MiB each", "s", UNDO)
    training = Table(f"A cell of training on {options.ranks} CPU ranks with {MIB} MiB each", "s", PLAIN)
    with Server() as server:
        client = Client(server)
        client.open_channel()
        group = client.start_group(options.ranks)["id"]
        client.wait_ready(group)
        for code in (STATE, MODEL, TRAIN):
            client.cell(group, code)
        for _ in range(options.rounds):
            undo.row(UNDO).values.append(_undo(client, group, undo))
            for _ in range(LATER_CELLS):  # a cell without undo drops what is kept
                training.row(PLAIN).values.append(_seconds(_run(client, group, TRAIN)))
            training.row(FIRST).values.append(_seconds(_run(client, group, TRAIN, keep_undo=True)))
            for _ in range(LATER_CELLS):
                training.row(KEPT).values.append(_seconds(_run(client, group, TRAIN, keep_undo=True)))
        client.close()
    limit = LIMITS["group"]
    undo.aim(f"undo under {limit} s: {undo.row(UNDO).median:.2f} s", undo.row(UNDO).median < limit)
    ratio = training.ratio(KEPT)
    training.aim(f"keeping undo under 10 % of a cell of training: {ratio:.2f}x", ratio < LIMITS["training"])
    return [undo, training]


def _undo(client: Client, group: str, table: Table) -> float:
    """Run the cell, undo it, and check that all is as before; return the seconds of the undo."""
    ended = _run(client, group, CHANGE, keep_undo=True)
    cost = ended["undo"]
    table.row("keeping the state before it").values.append(cost["milliseconds"] / 1000)
    began = time.perf_counter()
    execution = client.must("POST", f"/groups/{group}/undo", {})
    _wait(client, group, execution["id"])
    seconds = time.perf_counter() - began
    _run(client, group, CHECK, keep_undo=True)
    return seconds


def _run(client: Client, group: str, code: str, **options: bool) -> dict:
    """Run a cell, and return its execution."""
    execution = client.must("POST", f"/groups/{group}/executions", {"code": code, **options})
    return _wait(client, group, execution["id"])


def _wait(client: Client, group: str, execution_id: str) -> dict:
    while True:
        execution = client.must("GET", f"/groups/{group}/executions/{execution_id}?wait=30")["execution"]
        if execution["ended_at"] is not None:
            assert execution["state"] == "ok", execution
            return execution


def _seconds(execution: dict) -> float:
    """Return the time of the slowest rank; it has the time in which the state before the cell was kept."""
    return max(execution["rank_seconds"].values())
