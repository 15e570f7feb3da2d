"""Eight hours of work in minutes: 10 000 cells, 2000 reloads of the page, 200 restarts; what does memory do?"""

from __future__ import annotations

from benchmarks.options import Options
from benchmarks.ours import Client, Server
from benchmarks.processes import proportional_bytes
from benchmarks.tables import Table

CELLS, RELOADS, RESTARTS = 10_000, 2000, 200
FIRST = 500  # cells after which memory is compared with
RANKS = 2
SHOWN = 10  # cells that a page shows, and asks for when it loads
GROWTH = 1.10
MIB = 1 << 20
# What notebooks do: a result, text, a flood that is cut, an error, a rich output, a collective.
CODES = (
    "x = {n}\nx",
    "for i in range(20):\n    print('step', i, {n})",
    "print(('line {n} ' * 20 + chr(10)) * 200)",
    "def f{n}():\n    return 1 / 0\nf{n}()",
    "from IPython.display import HTML\ndisplay(HTML('<b>{n}</b>' * 50))",
    "t = torch.ones(1000) * {n}\ndist.all_reduce(t)",
)


def measure(options: Options) -> list[Table]:
    """Run all of it. In the first half with restarts, in the second without, so that ranks grow old."""
    if not options.ours:
        return []
    with Server() as server:
        table = run(server, CELLS, RELOADS, RESTARTS)
    return [table]


def run(server: Server, cells: int, reloads: int, restarts: int, first: int = FIRST) -> Table:
    """Run cells; return the memory of each kind of process after the first ones and at the end."""
    table = Table(f"Memory over {cells} cells, {reloads} reloads and {restarts} restarts", "MiB", "")
    client = Client(server)
    group = client.start_group(RANKS)["id"]
    client.wait_ready(group)
    shown: list[str] = []
    early: dict[str, float] = {}
    for number in range(cells):
        shown = [*shown, _cell(client, group, number)][-SHOWN:]
        if number % max(1, cells // reloads) == 0:
            _reload(server, group, shown)
        if restarts and number < cells // 2 and number % max(1, cells // 2 // restarts) == 0:
            client.must("POST", f"/groups/{group}/restart")
            client.wait_ready(group)
        if number + 1 in (first, cells // 2 + first):  # ranks: of the same age
            early = {**_memory(server, group), **early} if number + 1 == first else {**early, **_ranks(server, group)}
        if (number + 1) % max(1, cells // 10) == 0:
            for name, size in _memory(server, group).items():
                table.row(name).values.append(size)
    for name, size in _memory(server, group).items():
        least = min(table.row(name).values[-3:])  # a garbage collector may be about to run
        table.row(name).note = f"{early[name]:.1f} after {first} cells, {size:.1f} at the end"
        text = f"{name} within {GROWTH - 1:.0%} of the memory after {first} cells: {least / early[name] - 1:+.1%}"
        table.aim(text, least <= GROWTH * early[name])
    client.end_group(group)
    client.close()
    return table


def _cell(client: Client, group: str, number: int) -> str:
    code = CODES[number % len(CODES)].format(n=number)
    body = {"code": code, "cell_id": f"c{number % 100}", "notebook": "work.ipynb", "stop_on_error": False}
    execution = str(client.must("POST", f"/groups/{group}/executions", body)["id"])
    client.must("GET", f"/groups/{group}/executions/{execution}?wait=30")
    return execution


def _reload(server: Server, group: str, shown: list[str]) -> None:
    """Connect as a page that loads does, and take the whole view of each cell."""
    page = Client(server)
    page.open_channel()
    page.subscribe("log", group=group, rank=0, since=0)
    for execution in shown:
        page.subscribe("execution", group=group, execution=execution, since=0)
    left = set(shown)
    while left:
        left.discard(page.receive(lambda message: message["type"] == "execution")["execution"]["id"])
    page.close()


def _memory(server: Server, group: str) -> dict[str, float]:
    agent = server.agent_of(group)
    return {
        "server": proportional_bytes(server.pid) / MIB,
        "agent": proportional_bytes(agent) / MIB,
        **_ranks(server, group),
    }


def _ranks(server: Server, group: str) -> dict[str, float]:
    client = Client(server)
    pids = [rank["pid"] for rank in client.must("GET", f"/groups/{group}")["ranks"]]
    client.close()
    return {"each rank": sum(map(proportional_bytes, pids)) / len(pids) / MIB}
