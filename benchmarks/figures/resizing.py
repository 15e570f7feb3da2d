"""How long a group takes to have more ranks, and fewer again; each new rank gets a model, bit for bit."""

from __future__ import annotations

import time

from benchmarks.options import Options
from benchmarks.ours import Client, Server
from benchmarks.tables import Table

MODEL_MB = 64
MODEL = f"""
torch.manual_seed(0)
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1024, {MODEL_MB * 256}, bias=False))
"""
CHECKSUM = "print(net.module.weight.view(torch.int32).sum(dtype=torch.int64).item())"
GROW, SHRINK, BACK = "{0} to {1} ranks", "{1} to {0} ranks", "both"
RESTART = "a restart instead, which loses the variables"
AIM_SECONDS = 2.0


def measure(options: Options) -> list[Table]:
    """Resize a group to twice its ranks and back, and restart it for comparison."""
    if not options.ours:
        return []
    few, many = options.ranks, 2 * options.ranks
    grow, shrink = GROW.format(few, many), SHRINK.format(few, many)
    table = Table(f"`group.resize` with a DDP model of {MODEL_MB} MB", "s", BACK)
    differing = 0
    with Server() as server:
        client = Client(server)
        client.open_channel()
        group = client.start_group(few)["id"]
        client.wait_ready(group)
        client.cell(group, MODEL)
        before = _checksums(client, group)
        for _ in range(max(2, options.rounds // 2)):
            table.row(grow).values.append(_resized(client, group, many))
            differing += len(_checksums(client, group) - before)
            table.row(shrink).values.append(_resized(client, group, few))
            differing += len(_checksums(client, group) - before)
        pairs = zip(table.row(grow).values, table.row(shrink).values, strict=True)
        table.row(BACK).values.extend(one + other for one, other in pairs)
        began = time.perf_counter()
        client.must("POST", f"/groups/{group}/restart")
        _settled(client, group, "restarting")
        table.row(RESTART).values.append(time.perf_counter() - began)
    best = table.row(BACK).minimum
    table.aim(f"{few} to {many} ranks and back under {AIM_SECONDS:g} s: {best:.2f} s", best < AIM_SECONDS)
    table.aim(f"parameters equal bit for bit: {differing} ranks differ", differing == 0)
    return [table]


def _checksums(client: Client, group: str) -> set[str]:
    """Return the different checksums of the ranks."""
    execution = client.must("POST", f"/groups/{group}/executions", {"code": CHECKSUM})["id"]
    view = client.must("GET", f"/groups/{group}/executions/{execution}?wait=60")
    return {item["output"]["text"] for item in view["items"] if "output" in item}


def _resized(client: Client, group: str, num_ranks: int) -> float:
    began = time.perf_counter()
    client.must("POST", f"/groups/{group}/resize", {"num_ranks": num_ranks})
    model = _settled(client, group, "resizing")
    if model["resized"]["error"] or model["world_size"] != num_ranks:
        raise RuntimeError(f"not resized: {model['resized']}")
    return time.perf_counter() - began


def _settled(client: Client, group: str, state: str) -> dict[str, object]:
    model = client.must("GET", f"/groups/{group}?wait=60&not_state={state}")
    while model["state"] == state:
        model = client.must("GET", f"/groups/{group}?wait=60&not_state={state}")
    return dict(model)
