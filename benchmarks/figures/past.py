"""A long past: pages of a long log, the view of an old cell, and the adoption of a group with 2000 cells."""

from __future__ import annotations

import time

from benchmarks.options import Options
from benchmarks.ours import FINAL, Client, Json, Server
from benchmarks.tables import Table

CELLS = 2000
AT_ONCE = 50
RANKS = 4
# 4 ranks, of which 3 print 10 kB in each cell: 60 MB, four segments of the journal.
CODE = "if rank:\n    print(chr(10).join([f'{rank:4} ' + 'x' * 95] * 100))"
PLACES = {"the newest page": 1.0, "a page in the middle": 0.5, "the first page": 0.001}
LISTENS, ADOPTED = "the new server answers", "it has the group with all of its cells"
PAGE_SECONDS, ADOPTION_SECONDS = 0.05, 0.3


def measure(options: Options) -> list[Table]:
    """Run the cells, read pages of their output, and start the server again."""
    if not options.ours:
        return []
    pages = Table(f"Reading the past: {CELLS} cells of {RANKS} ranks, 60 MB of output", "ms", "")
    adoption = Table(f"`kill -9` of the server of a group with {CELLS} cells, from the kill", "s", LISTENS)
    with Server() as server:
        client = Client(server)
        group = client.start_group(RANKS)["id"]
        client.wait_ready(group)
        first = _run_cells(client, group)
        for _ in range(options.rounds):
            _read(client, group, first, pages)
        for _ in range(max(2, options.rounds // 2)):
            _adopt(server, group, adoption)
    slowest, least = max(row.median for row in pages.rows), max(row.minimum for row in pages.rows)
    text = f"each in under {PAGE_SECONDS * 1000:g} ms: {slowest:.0f} ms (in the best round {least:.0f} ms)"
    pages.aim(text, least < PAGE_SECONDS * 1000)
    rows = zip(adoption.row(ADOPTED).values, adoption.row(LISTENS).values, strict=True)
    least = min(mine - other for mine, other in rows)
    text = f"adopted within {ADOPTION_SECONDS:g} s of the server being there: {least:.2f} s"
    adoption.aim(text, least < ADOPTION_SECONDS)
    return [pages, adoption]


def _run_cells(client: Client, group: str) -> str:
    """Run them, some at a time; return the id of the first."""
    ids = []
    for number in range(CELLS):
        ids.append(client.must("POST", f"/groups/{group}/executions", {"code": CODE})["id"])
        if number % AT_ONCE == AT_ONCE - 1:
            _wait(client, group, ids[-1])
    return str(ids[0])


def _wait(client: Client, group: str, execution: str) -> Json:
    answer: Json = client.must("GET", f"/groups/{group}/executions/{execution}?wait=30")
    if answer["execution"]["state"] not in FINAL:
        raise RuntimeError(f"the cell is {answer['execution']['state']}")
    return answer


def _read(client: Client, group: str, first: str, table: Table) -> None:
    last_seq = client.must("GET", f"/groups/{group}/ranks/0/log")["seq"]
    for rank, who in ((1, "a rank that prints"), (0, "a rank that prints nothing")):
        for what, place in PLACES.items():
            before = max(2, int(last_seq * place))
            began = time.perf_counter()
            client.must("GET", f"/groups/{group}/ranks/{rank}/log?before={before}")
            table.row(f"{what} of {who}").values.append(1000 * (time.perf_counter() - began))
    began = time.perf_counter()
    view = client.must("GET", f"/groups/{group}/executions/{first}")
    if not view["items"]:
        raise RuntimeError("the first cell has no output any more")
    table.row("the output of the first cell").values.append(1000 * (time.perf_counter() - began))


def _adopt(server: Server, group: str, table: Table) -> None:
    began = time.perf_counter()
    server.kill_and_restart()
    table.row(LISTENS).values.append(time.perf_counter() - began)
    client = Client(server)
    found = client.must("GET", f"/groups/{group}/executions")["executions"]
    table.row(ADOPTED).values.append(time.perf_counter() - began)
    if len(found) < CELLS:
        raise RuntimeError(f"{len(found)} cells were adopted")
    client.must("GET", f"/groups/{group}/ranks/0/log")
    client.close()
