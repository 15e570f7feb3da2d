"""How long a user who types waits for a rank that is idle, and for one that runs a cell."""

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
WARM_UP_ROUNDS = 3


def measure(options: Options) -> list[Table]:
    """A table of both requests by REST, on an idle rank and on a busy one."""
    if not options.ours:
        return []
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
    return [table]


def _ask(client: Client, group: str, state: str, table: Table, options: Options) -> None:
    for number in range(WARM_UP_ROUNDS + options.rounds * 5):
        for what, body in ASKED.items():
            begun = time.perf_counter()
            client.must("POST", f"/groups/{group}/ranks/0/{what}", body)
            if number >= WARM_UP_ROUNDS:
                table.row(f"{what}, {state}").values.append(1000 * (time.perf_counter() - begun))
