"""A server that is killed: how long until the next one has the group again, with every line once."""

from __future__ import annotations

import time

from benchmarks.options import Options
from benchmarks.ours import Client, Server
from benchmarks.tables import Table

LISTENS, ADOPTED = "the new server answers", "it has the group, whose cell runs on, and takes cells"
TICKING = """
import time
for number in range({ticks}):
    print(number)
    time.sleep(0.005)
"""
TICKS = 1000


def measure(options: Options) -> list[Table]:
    """Kill the server while a cell prints; start it again."""
    if not options.ours:
        return []
    table = Table(f"`kill -9` of the server under {options.ranks} printing ranks, from the kill", "s", LISTENS)
    lost = 0
    with Server() as server:
        client = Client(server)
        client.open_channel()
        group = client.start_group(options.ranks)["id"]
        client.wait_ready(group)
        client.cell(group, "x = 1")
        for _ in range(max(2, options.rounds // 2)):
            lost += _kill_and_return(server, group, table)
    after = max(mine - other for mine, other in zip(table.row(ADOPTED).values, table.row(LISTENS).values, strict=True))
    table.aim(f"adopted within 2 s of the server being there: at most {after:.2f} s", after < 2)
    table.aim(f"no line lost or doubled: {lost} ranks with another text than they printed", lost == 0)
    return [table]


def _kill_and_return(server: Server, group: str, table: Table) -> int:
    client = Client(server)
    body = {"code": TICKING.format(ticks=TICKS), "stop_on_error": False}
    execution = client.must("POST", f"/groups/{group}/executions", body)["id"]
    time.sleep(0.5)  # so that the kill comes in the middle of the text
    began = time.perf_counter()
    server.kill_and_restart()
    table.row(LISTENS).values.append(time.perf_counter() - began)
    client = Client(server)
    client.must("DELETE", f"/groups/{group}/executions/{_queued(client, group)}")
    table.row(ADOPTED).values.append(time.perf_counter() - began)
    view = client.must("GET", f"/groups/{group}/executions/{execution}?wait=30")
    text = "".join(f"{number}\n" for number in range(TICKS))
    shown = "".join(item["output"]["text"] for item in view["items"] if "output" in item)
    client.close()
    return 0 if shown == text and view["execution"]["state"] == "ok" else 1


def _queued(client: Client, group: str) -> str:
    return str(client.must("POST", f"/groups/{group}/executions", {"code": "x = 1"})["id"])
