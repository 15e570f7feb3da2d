"""How long until ranks have done their first all_reduce: from nothing but a warm zygote, and after a restart."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack

from benchmarks import rivals
from benchmarks.driver import Driver, DriverError
from benchmarks.options import Options
from benchmarks.ours import Client, Server
from benchmarks.tables import Table, note_failure

FIRST_CELL = "import torch, torch.distributed as dist; dist.all_reduce(torch.ones(1))"
FLOOR, US = "bare fork", "jupyter_dist"
RIVALS = {"nbdistributed": "nbd", "torchrun": "torchrun", "ipyparallel": "ipp"}


def measure(options: Options) -> list[Table]:
    """Start and restart, in interleaved rounds."""
    tables = {
        "start": Table(f"Start of {options.ranks} CPU ranks to the end of their first all_reduce", "s", FLOOR),
        "restart": Table(f"Restart of {options.ranks} CPU ranks to the end of their first all_reduce", "s", FLOOR),
    }
    _without_rivals(options, tables)
    if options.rivals:
        _rivals(options, tables)
    for table in tables.values():
        _judge(table, options)
    return list(tables.values())


def _without_rivals(options: Options, tables: dict[str, Table]) -> None:
    with ExitStack() as stack:
        floor = stack.enter_context(Driver("forked", sys.executable))
        server = stack.enter_context(Server()) if options.ours else None
        client = Client(server) if server else None
        if client:
            client.open_channel()
        for _ in range(options.rounds):
            _driven(floor, FLOOR, tables, options)
            if server and client:
                _ours(server, client, tables, options)
        if client:
            client.close()


def _ours(server: Server, client: Client, tables: dict[str, Table], options: Options) -> None:
    client.must("POST", "/environments/python3/warm")
    server.wait_for_warm_agent()
    cpu, began = server.cpu_seconds(), time.perf_counter()
    group = client.start_group(options.ranks)["id"]
    client.cell(group, FIRST_CELL)
    tables["start"].row(US).values.append(time.perf_counter() - began)
    tables["start"].row(US).cpu.append(server.cpu_seconds() - cpu)
    server.wait_for_warm_agent()  # the next one warms meanwhile; its work is not the restart's
    cpu, began = server.cpu_seconds(), time.perf_counter()
    client.must("POST", f"/groups/{group}/restart")
    client.cell(group, FIRST_CELL)
    tables["restart"].row(US).values.append(time.perf_counter() - began)
    tables["restart"].row(US).cpu.append(server.cpu_seconds() - cpu)
    client.end_group(group)


def _rivals(options: Options, tables: dict[str, Table]) -> None:
    python = rivals.ensure()
    for _ in range(options.rival_rounds):
        for system, module in RIVALS.items():
            try:
                with Driver(module, python) as driver:
                    _driven(driver, system, tables, options, stop=module != "torchrun")
            except DriverError as error:
                note_failure(list(tables.values()), system, error)
    tables["restart"].row("torchrun").note = "has no restart: a start"
    tables["restart"].row("nbdistributed").note = "has no restart: shutdown and start"


def _driven(driver: Driver, system: str, tables: dict[str, Table], options: Options, stop: bool = True) -> None:
    for kind, table in tables.items():
        cpu = driver.cpu_seconds()
        answer = driver.ask(kind, 120, ranks=options.ranks, code=FIRST_CELL)
        table.row(system).values.append(answer["seconds"])
        table.row(system).cpu.append(driver.cpu_seconds() - cpu)
    if stop:
        driver.ask("stop")


def _judge(table: Table, options: Options) -> None:
    if not options.ours:
        return
    ratio, least = table.ratio(US), table.least_ratio(US)
    table.aim(f"at most 2x the bare fork: {ratio:.1f}x (least against least {least:.1f}x)", min(ratio, least) <= 2)
    if options.rivals:
        for system in (system for system in RIVALS if table.row(system).values):
            faster = 1 / table.ratio(US, system)
            table.aim(f"at least 10x faster than {system}: {faster:.0f}x", faster >= 10)
