"""How long a trivial cell takes on all ranks: through the product, and through the agent alone."""

from __future__ import annotations

import sys
from contextlib import ExitStack

from benchmarks import rivals
from benchmarks.agents import Agent
from benchmarks.calls import Call, asked, timed
from benchmarks.driver import Driver
from benchmarks.options import Options
from benchmarks.ours import Client, Server
from benchmarks.processes import scheduled_seconds
from benchmarks.tables import Table

CELL = "x = 1 + 1"
FLOOR, US = "raw zmq echo", "jupyter_dist"
AGENT = "our agent"
NBD, NBD_MAGIC, IPP = "nbdistributed, its manager", "nbdistributed, %%distributed", "ipyparallel"
ECHOED = "x" * 100
WARM_UP_ROUNDS = 10
MAX_AGENT, MAX_WHOLE = 4, 6  # times the echo


def measure(options: Options) -> list[Table]:
    """Both tables."""
    tables = [_agent_alone(options)] if options.ours else []
    return [*tables, _whole(options)]


def _agent_alone(options: Options) -> Table:
    table = Table(f"`{CELL}` on {options.ranks} ranks through the agent's socket, without a server", "ms", FLOOR)
    with Agent(options.ranks) as agent, Driver("echo", sys.executable) as echo:
        echo.ask("start", ranks=options.ranks)
        calls = {FLOOR: asked(echo, "round", message=ECHOED), AGENT: timed(lambda: agent.cell(CELL))}
        _rounds(table, calls, WARM_UP_ROUNDS, keep=False)
        before = {pid: scheduled_seconds(pid) for pid in agent.processes()}
        _rounds(table, calls, options.rounds * 20)
        used = {pid: scheduled_seconds(pid) - before[pid] for pid in before}
        ms = {name: sum(used[pid] for pid in pids) * 50 / options.rounds for name, pids in agent.named.items()}
    table.row(AGENT).note = f"CPU per cell: agent {ms['agent']:.2f} ms, each rank {ms['ranks'] / options.ranks:.2f} ms"
    ratio, least = table.ratio(AGENT), table.least_ratio(AGENT)
    text = f"at most {MAX_AGENT:g}x the echo: {ratio:.1f}x (least against least {least:.1f}x)"
    table.aim(text, min(ratio, least) <= MAX_AGENT)
    return table


def _whole(options: Options) -> Table:
    table = Table(f"`{CELL}` on {options.ranks} ranks, from the request to all replies at the client", "ms", FLOOR)
    with ExitStack() as stack:
        echo = stack.enter_context(Driver("echo", sys.executable))
        echo.ask("start", ranks=options.ranks)
        calls = {FLOOR: asked(echo, "round", message=ECHOED)}
        if options.ours:
            calls[US] = _through_server(stack, options)
        if options.rivals:
            calls.update(_rival_calls(stack, options))
        _rounds(table, calls, WARM_UP_ROUNDS, keep=False)
        _rounds(table, calls, options.rounds * 20)
    if options.ours:
        ratio, least = table.ratio(US), table.least_ratio(US)
        text = f"at most {MAX_WHOLE:g}x the echo: {ratio:.1f}x (least against least {least:.1f}x)"
        table.aim(text, min(ratio, least) <= MAX_WHOLE)
    if options.ours and options.rivals:
        for system in (NBD, NBD_MAGIC, IPP):
            table.aim(f"faster than {system}: {1 / table.ratio(US, system):.1f}x", table.ratio(US, system) < 1)
    return table


def _through_server(stack: ExitStack, options: Options) -> Call:
    server = stack.enter_context(Server())
    client = Client(server)
    stack.callback(client.close)
    client.open_channel()
    group = client.start_group(options.ranks)["id"]
    client.wait_ready(group)
    return timed(lambda: client.cell(group, CELL))


def _rival_calls(stack: ExitStack, options: Options) -> dict[str, Call]:
    python = rivals.ensure()
    nbd = stack.enter_context(Driver("nbd", python))
    nbd.ask("start", 120, ranks=options.ranks, code=CELL)
    ipp = stack.enter_context(Driver("ipp", python))
    ipp.ask("start", 120, ranks=options.ranks, code=CELL, join=False)
    return {
        NBD: asked(nbd, "cell", code=CELL),
        NBD_MAGIC: asked(nbd, "magic_cell", code=CELL),
        IPP: asked(ipp, "cell", code=CELL),
    }


def _rounds(table: Table, calls: dict[str, Call], rounds: int, keep: bool = True) -> None:
    for _ in range(rounds):
        for system, call in calls.items():
            seconds = call()
            if keep:
                table.row(system).values.append(seconds * 1000)
