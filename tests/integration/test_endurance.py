"""Long use in short: what cells, reloads of a page and restarts leave in memory. benchmarks/figures/endurance.py has figures."""

from __future__ import annotations

import gc
from collections import Counter

from waits import until_async

from jupyter_dist.server.folding import viewstore
from jupyter_dist.server.mirror import executions

KEPT = 4  # what the server keeps of cells that have ended: full after the first round
CODES = ("{n}", "print('x' * 1000)", "1 / {n} / 0", "dist.all_reduce(torch.ones(1))")


async def work(api) -> None:
    """Eight cells, four reloads of a page that shows the last ones, a restart."""
    shown = []
    for number in range(8):
        code = CODES[number % len(CODES)].format(n=number + 1)
        view = await api.run("g", code, notebook="n.ipynb", cell_id=f"c{number}", stop_on_error=False)
        shown = [*shown, view["execution"]["id"]][-KEPT:]
        if number % 2:
            channel = await api.channel()
            channel.subscribe("log", group="g", rank=0, since=0)
            channel.subscribe("memory", group="g")
            for execution in shown:
                await channel.follow("g", execution)
            channel.socket.close()
    await api.ask("POST", "groups/g/restart")
    await api.settled("g", "restarting")


FOR_AN_HOUR = {"_Row"}  # samples of memory, which are bounded (tests/devices/test_samples.py)


def ours() -> Counter[str]:
    """How many objects of our classes there are in this process, which has the server."""
    gc.collect()
    kinds = Counter(map(type, gc.get_objects()))
    ours: Counter[str] = Counter()
    for kind, number in kinds.items():  # of hundreds of thousands of objects, which have few types
        if str(kind.__module__).startswith("jupyter_dist."):
            ours[kind.__qualname__] += number
    return ours


async def test_the_server_keeps_nothing_of_cells_pages_and_ranks_that_are_gone(api, monkeypatch):
    monkeypatch.setattr(viewstore, "MAX_FINISHED", KEPT)
    monkeypatch.setattr(executions, "MAX_KEPT", KEPT)
    await api.start(name="g")
    await work(api)
    before = ours()
    for _ in range(2):
        await work(api)

    def grown() -> dict[str, int]:
        # One or two more may be in use just now; a leak is one for each of 16 cells or 8 reloads.
        more = {kind: number - before[kind] for kind, number in ours().items()}
        return {kind: number for kind, number in more.items() if number > 5 and kind not in FOR_AN_HOUR}

    await until_async(lambda: not grown(), grown)  # tornado keeps a closed socket for five seconds


async def test_a_rank_keeps_little_of_each_cell(shared_api):
    count = "import gc; gc.collect(); print(len(gc.get_objects()))"
    # A rank keeps inputs and results of cells, as IPython does.
    await work_once(shared_api)
    before = await printed(shared_api, count)
    for _ in range(10):
        await work_once(shared_api)
    assert await printed(shared_api, count) - before < 40 * 40


async def work_once(api) -> None:
    for code in CODES:
        await api.run("g", code.format(n=1), stop_on_error=False)


async def printed(api, code: str) -> int:
    view = await api.run("g", code, ranks="0")
    return int(view["items"][0]["output"]["text"])
