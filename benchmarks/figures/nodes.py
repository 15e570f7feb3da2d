"""Groups over two nodes, both on this machine: start, restart and a trivial cell, by each launcher that is there."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from benchmarks.calls import timed
from benchmarks.driver import REPOSITORY, Driver, DriverError
from benchmarks.options import Options
from benchmarks.ours import Client, Json, Server
from benchmarks.tables import Table, note_failure

FIRST_CELL = "import torch, torch.distributed as dist; dist.all_reduce(torch.ones(1))"
CELL = "x = 1 + 1"
NODES, RANKS_PER_NODE = 2, 2
TORCHRUN, ONE_MACHINE = "torchrun, an agent per node", "one machine"
OVER_NODES = "2 nodes"
LAUNCHERS = {"processes": "node agents on this machine", "slurm": "Slurm", "ray": "Ray"}
MAX_RESTART_SECONDS, MAX_CELL = 0.5, 1.5
WARM_UP_ROUNDS = 10
START_SECONDS = 180.0


def measure(options: Options) -> list[Table]:
    """Start and restart, then cells."""
    what = f"{NODES} nodes with {RANKS_PER_NODE} CPU ranks each"
    tables = {
        "start": Table(
            f"Start of {what} to the end of their first all_reduce", "s", TORCHRUN if options.rivals else ""
        ),
        "restart": Table(f"Restart of {what} to the end of their first all_reduce", "s", ""),
    }
    if options.rivals:
        _torchrun(tables["start"], options)
    if options.ours:
        with _clusters(tables) as there, Server() as server:
            client = Client(server)
            client.open_channel()
            for _ in range(options.rounds):
                for launcher in there:
                    _start_and_restart(server, client, launcher, tables)
            client.close()
        for launcher in there:
            median = tables["restart"].row(LAUNCHERS[launcher]).median
            text = f"{LAUNCHERS[launcher]}: at most {MAX_RESTART_SECONDS:g} s: {median:.2f} s"
            tables["restart"].aim(text, median <= MAX_RESTART_SECONDS)
    return [*tables.values(), *([_cells(options)] if options.ours else [])]


def _torchrun(table: Table, options: Options) -> None:
    for _ in range(options.rival_rounds):
        try:
            with Driver("torchrun", sys.executable) as driver:
                asked = {"nodes": NODES, "ranks": RANKS_PER_NODE, "code": FIRST_CELL}
                table.row(TORCHRUN).values.append(driver.ask("start_nodes", START_SECONDS, **asked)["seconds"])
        except DriverError as error:
            note_failure([table], TORCHRUN, error)


def _start_and_restart(server: Server, client: Client, launcher: str, tables: dict[str, Table]) -> None:
    client.must("POST", "/environments/python3/warm")
    server.wait_for_warm_agent()
    began = time.perf_counter()
    group = _over_nodes(client, launcher)
    client.cell(group, FIRST_CELL, START_SECONDS)
    tables["start"].row(LAUNCHERS[launcher]).values.append(time.perf_counter() - began)
    began = time.perf_counter()
    client.must("POST", f"/groups/{group}/restart")
    client.cell(group, FIRST_CELL, START_SECONDS)
    tables["restart"].row(LAUNCHERS[launcher]).values.append(time.perf_counter() - began)
    client.end_group(group)


def _over_nodes(client: Client, launcher: str) -> str:
    shape = {"launcher": launcher, "num_nodes": NODES, "ranks_per_node": RANKS_PER_NODE, "accelerator": "cpu"}
    group: Json = client.must("POST", "/groups", {"name": "nodes", **shape})
    while group["state"] == "starting":
        group = client.must("GET", f"/groups/{group['id']}?wait=30&not_state=starting")
    if group["state"] != "ready":
        raise RuntimeError(f"the group is {group['state']}: {group['error']}")
    return str(group["id"])


def _cells(options: Options) -> Table:
    """The same ranks on one machine and over two nodes, in turns."""
    ranks = NODES * RANKS_PER_NODE
    table = Table(f"`{CELL}` on {ranks} ranks, from the request to all replies at the client", "ms", ONE_MACHINE)
    with ExitStack() as stack:
        server = stack.enter_context(Server())
        calls = {}
        for name in (ONE_MACHINE, OVER_NODES):
            client = Client(server)
            stack.callback(client.close)
            client.open_channel()
            group = client.start_group(ranks)["id"] if name == ONE_MACHINE else _over_nodes(client, "processes")
            client.wait_ready(group)
            calls[name] = timed(lambda client=client, group=group: client.cell(group, CELL))
        for turn in range(WARM_UP_ROUNDS + options.rounds * 20):
            for name, call in calls.items():
                value = 1000 * call()
                if turn >= WARM_UP_ROUNDS:
                    table.row(name).values.append(value)
    ratio = table.ratio(OVER_NODES)
    table.aim(f"at most {MAX_CELL:g}x one machine and the link's round trip: {ratio:.1f}x", ratio <= MAX_CELL)
    return table


@contextlib.contextmanager
def _clusters(tables: dict[str, Table]) -> Iterator[list[str]]:
    """Start the clusters of the tests; yield the launchers that can be used, and note why others cannot."""
    sys.path.append(str(REPOSITORY / "tests"))
    there = ["processes"]
    with ExitStack() as stack:
        for launcher, kind in (("slurm", "SlurmCluster"), ("ray", "RayCluster")):
            module = importlib.import_module(f"launchers.{launcher}cluster")
            if lacks := module.missing():
                for table in tables.values():
                    table.row(LAUNCHERS[launcher]).note = f"not measured: {lacks}"
                continue
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="jdb-", ignore_cleanup_errors=True)))
            cluster = getattr(module, kind)(*([folder] if launcher == "slurm" else []))
            stack.callback(cluster.end)
            cluster.start()
            os.environ.update(cluster.env)
            there.append(launcher)
        yield there
