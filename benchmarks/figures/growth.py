"""How cost grows with ranks, pages, cells of history and groups, and whether any curve is steeper than linear."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.driver import REPOSITORY
from benchmarks.options import Options
from benchmarks.ours import FINAL, Client, Server
from benchmarks.processes import descendants, proportional_bytes, scheduled_seconds
from benchmarks.tables import Table, number

RANKS = (1, 2, 4, 8, 16, 32, 64)
PAGES = (1, 2, 5, 10, 20)
HISTORY = (10, 100, 1000, 10_000)
GROUPS = (1, 2, 5, 10, 20, 50)
PART_SECONDS = 75.0  # a part that takes longer leaves out its largest values
AT_ONCE = 50
CELLS = 10  # of which the least is taken
LEAST_POINTS = 3
STEEP = 1.2  # the exponent from which a curve counts as steeper than linear
MIB = 1 << 20
IMAGE = REPOSITORY / "docs" / "images" / "growth.svg"

Point = dict[str, float]
Curves = dict[str, list[tuple[int, float]]]  # by what is measured: (how many, value)


def measure(options: Options) -> list[Table]:
    """One table per thing that grows."""
    if not options.ours:
        return []
    parts: dict[str, Callable[[], Iterator[tuple[int, Point]]]] = {
        "ranks": _ranks,
        "pages": _pages,
        "cells of history": _history,
        "groups": _groups,
    }
    curves = {name: _curves(part()) for name, part in parts.items()}
    if options.keeps:
        _draw(curves)
    return [_table(name, found) for name, found in curves.items()]


def _curves(points: Iterator[tuple[int, Point]]) -> Curves:
    found: Curves = {}
    began = None
    for many, point in points:
        began = began or time.monotonic()  # the start of the server is not part of it
        for name, value in point.items():
            found.setdefault(name, []).append((many, value))
        if time.monotonic() - began > PART_SECONDS:
            break
    return found


def _table(name: str, curves: Curves) -> Table:
    table = Table(f"Growth with {name}", "", "")
    for what, points in curves.items():
        table.row(what).values = [value for _, value in points]
        table.row(what).note = ", ".join(f"{many}: {number(value)}" for many, value in points)
        if len(points) < LEAST_POINTS:
            table.aim(f"{what}: too few values in {PART_SECONDS:g} s to tell how it grows", held=False)
            continue
        exponent = steepness(points)
        table.aim(f"{what}: not steeper than linear, exponent {exponent:.2f}", exponent < STEEP)
    return table


def steepness(points: list[tuple[int, float]]) -> float:
    """Return the exponent of the upper half of a curve: the slope of a line through the logarithms."""
    upper = points[max(0, len(points) // 2 - 1) :]
    logs = [(math.log(many), math.log(max(value, 1e-9))) for many, value in upper]
    x, y = (sum(values) / len(logs) for values in zip(*logs, strict=True))
    return sum((a - x) * (b - y) for a, b in logs) / sum((a - x) ** 2 for a, _ in logs)


# -- the parts ------------------------------------------------------------------------------------------------


def _ranks() -> Iterator[tuple[int, Point]]:
    with _server() as (server, client):
        first = client.start_group(1, "first")["id"]  # from here on there is a zygote that has imported torch
        _until_ready(client, first)
        client.end_group(first)
        client.must("POST", "/environments/python3/warm")
        for many in RANKS:
            time.sleep(5.0)  # the next zygote imports torch meanwhile
            began = time.perf_counter()
            group = client.start_group(many, f"r{many}")["id"]
            _until_ready(client, group)
            start = time.perf_counter() - began
            point = {"start, s": start, **_cell(server, client, group)}
            execution = client.must("POST", f"/groups/{group}/executions", {"code": "while True: pass"})["id"]
            time.sleep(1.0)
            began = time.perf_counter()
            client.must("POST", f"/groups/{group}/interrupt", {})
            _end(client, group, execution)
            point["interrupt of busy ranks, s"] = time.perf_counter() - began
            agent = server.agent_of(group)
            point["memory of agent and ranks, MiB"] = sum(map(proportional_bytes, [agent, *descendants(agent)])) / MIB
            yield many, point
            client.end_group(group)


def _pages() -> Iterator[tuple[int, Point]]:
    with _server() as (server, client):
        group = client.start_group(2)["id"]
        _until_ready(client, group)
        pages: list[Client] = []
        for many in PAGES:
            while len(pages) < many - 1:
                pages.append(_listen(server))
            received = sum(page.received_bytes for page in pages)
            point = _cell(server, client, group)
            bytes_each = (sum(page.received_bytes for page in pages) - received) / CELLS / max(1, len(pages))
            yield many, {**point, **({"bytes to each other page for a cell": bytes_each} if pages else {})}


def _history() -> Iterator[tuple[int, Point]]:
    with _server() as (server, client):
        group = client.start_group(2)["id"]
        _until_ready(client, group)
        done = 0
        for many in HISTORY:
            while done < many:
                last = client.must("POST", f"/groups/{group}/executions", {"code": "print('x' * 80)"})["id"]
                done += 1
                if done % AT_ONCE == 0 or done == many:
                    _end(client, group, last)
            page = Client(server)
            began = time.perf_counter()
            page.open_channel()
            point = {"a page connects, s": time.perf_counter() - began, "bytes to it": float(page.received_bytes)}
            agent = server.agent_of(group)
            point["memory of server and agent, MiB"] = sum(map(proportional_bytes, (server.pid, agent))) / MIB
            yield many, {**point, **_cell(server, page, group)}
            page.close()


def _groups() -> Iterator[tuple[int, Point]]:
    with _server() as (server, client):
        groups: list[str] = []
        for many in GROUPS:
            while len(groups) < many:
                groups.append(client.start_group(1, f"g{len(groups)}")["id"])
                _until_ready(client, groups[-1])
            page = Client(server)
            page.open_channel()
            point = {"bytes to a page that connects": float(page.received_bytes), **_cell(server, page, groups[0])}
            page.close()
            before, began = scheduled_seconds(server.pid), time.perf_counter()
            time.sleep(4.0)
            idle = (scheduled_seconds(server.pid) - before) / (time.perf_counter() - began)
            yield many, {"server's CPU while all are idle, % of a core": 100 * idle, **point}


# -- what they share ------------------------------------------------------------------------------------------


@contextmanager
def _server() -> Iterator[tuple[Server, Client]]:
    with Server() as server:
        client = Client(server)
        client.open_channel()
        yield server, client
        client.close()


def _cell(server: Server, client: Client, group: str) -> Point:
    """The least time of some cells, and the CPU time and bytes of each."""
    agent = server.agent_of(group)
    client.cell(group, "x = 1")
    before, received, times = scheduled_seconds(server.pid), client.received_bytes, []
    of_agent = scheduled_seconds(agent)
    for _ in range(CELLS):
        began = time.perf_counter()
        client.cell(group, "x = 1")
        times.append(time.perf_counter() - began)
    return {
        "a cell, ms": 1000 * min(times),
        "server's CPU for a cell, ms": 1000 * (scheduled_seconds(server.pid) - before) / CELLS,
        "agent's CPU for a cell, ms": 1000 * (scheduled_seconds(agent) - of_agent) / CELLS,
        "bytes to the page for a cell": (client.received_bytes - received) / CELLS,
    }


def _until_ready(client: Client, group: str) -> None:
    """Wait for a start as long as a busy machine needs."""
    for _ in range(4):
        answer: dict[str, Any] = client.must("GET", f"/groups/{group}?wait=30&not_state=starting")
        if answer["state"] != "starting":
            break
    client.wait_ready(group)


def _end(client: Client, group: str, execution: str) -> None:
    while client.must("GET", f"/groups/{group}/executions/{execution}?wait=30")["execution"]["state"] not in FINAL:
        pass


def _listen(server: Server) -> Client:
    """Return another page, which takes what comes."""
    page = Client(server)
    page.open_channel()

    def listen() -> None:
        try:
            page.receive(lambda _: False, 3600)
        except Exception:  # the server ended, and with it this thread
            return

    threading.Thread(target=listen, daemon=True).start()
    return page


def _draw(curves: dict[str, Curves]) -> None:
    from matplotlib import pyplot  # noqa: PLC0415 (not every environment of a quick run has it)

    figure, axes = pyplot.subplots(2, 2, figsize=(11, 8))
    for axis, (name, found) in zip(axes.flat, curves.items(), strict=True):
        for what, points in found.items():
            first = points[0][1] or 1.0
            axis.plot([many for many, _ in points], [value / first for _, value in points], marker="o", label=what)
        many = [many for many, _ in next(iter(found.values()))]
        axis.plot(many, [value / many[0] for value in many], color="gray", linestyle="--", label="linear")
        axis.set(xscale="log", yscale="log", xlabel=name, ylabel="times the first value")
        axis.legend(fontsize=7)
    figure.tight_layout()
    IMAGE.parent.mkdir(exist_ok=True)
    figure.savefig(IMAGE)
