"""How long a user waits for what ranks know: one that types, of a rank; one that looks at variables, of all of them."""

from __future__ import annotations

import time

from benchmarks.options import Options
from benchmarks.ours import Client, Server
from benchmarks.tables import Table

ASKED = {
    "inspect": {"code": "model.forward", "detail": 0},
    "complete": {"code": "torch.nn."},
}
SETUP = "import torch\nmodel = torch.nn.Linear(2, 2)"
BUSY = "import time\ntime.sleep(1000)"
AIM_MS = 100
VARIABLE_RANKS = 8
VARIABLES = """
import torch
for i in range(100):
    globals().update({f"tensor_{i}": torch.zeros(10, 10), f"text_{i}": "x" * i, f"list_{i}": [1, 2, i]})
for i in range(200):
    globals()[f"number_{i}"] = i * 1.5
model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(20)))
optimizer = torch.optim.Adam(model.parameters())
mine = rank
"""
VARIABLES_AIM_MS = 300
WARM_UP_ROUNDS = 3


def measure(options: Options) -> list[Table]:
    """A table of both requests by REST, on an idle rank and on a busy one; and one of the variables of all ranks."""
    if not options.ours:
        return []
    return [_known(options), _variables(options)]


def _variables(options: Options) -> Table:
    table = Table(f"500 variables on {VARIABLE_RANKS} ranks, by REST", "ms", "")
    row = table.row("all that the panel shows")
    with Server() as server:
        client = Client(server)
        client.open_channel()
        group = client.start_group(VARIABLE_RANKS)["id"]
        client.wait_ready(group)
        client.cell(group, VARIABLES)
        for number in range(WARM_UP_ROUNDS + options.rounds * 3):
            begun = time.perf_counter()
            found = client.must("GET", f"/groups/{group}/variables?ranks=all")
            if number >= WARM_UP_ROUNDS:
                row.values.append(1000 * (time.perf_counter() - begun))
    row.note = f"{len(found['variables'])} names"
    table.aim(f"under {VARIABLES_AIM_MS} ms: {row.median:.0f}", row.median < VARIABLES_AIM_MS)
    return table


def _known(options: Options) -> Table:
    table = Table("What a rank knows, by REST", "ms", "inspect, idle")
    with Server() as server:
        client = Client(server)
        client.open_channel()
        group = client.start_group(2)["id"]
        client.wait_ready(group)
        client.cell(group, SETUP)
        _ask(client, group, "idle", table, options)
        client.must("POST", f"/groups/{group}/executions", {"code": BUSY})
        time.sleep(1)  # until it runs
        _ask(client, group, "busy", table, options)
    for name in ("inspect, idle", "inspect, busy"):
        median = table.row(name).median
        table.aim(f"{name}: under {AIM_MS} ms: {median:.0f}", median < AIM_MS)
    return table


def _ask(client: Client, group: str, state: str, table: Table, options: Options) -> None:
    for number in range(WARM_UP_ROUNDS + options.rounds * 5):
        for what, body in ASKED.items():
            begun = time.perf_counter()
            client.must("POST", f"/groups/{group}/ranks/0/{what}", body)
            if number >= WARM_UP_ROUNDS:
                table.row(f"{what}, {state}").values.append(1000 * (time.perf_counter() - begun))
