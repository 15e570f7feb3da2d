"""A million lines from each of two ranks: is any lost, how long until all are kept, what does it cost the others."""

from __future__ import annotations

import hashlib
import sys
import threading
import time
from itertools import chain
from pathlib import Path

from benchmarks import rivals
from benchmarks.driver import Driver, DriverError
from benchmarks.options import Options
from benchmarks.ours import Client, Server
from benchmarks.processes import MemoryWatch
from benchmarks.tables import Table, note_failure
from jupyter_dist.journal.reader import JournalCursor
from jupyter_dist.journal.records.wide import each_rank

RANKS = 2
LINES = 1_000_000
FLOOD = f"""
import os
name = os.environ['RANK']
for number in range({LINES}):
    print(f'{{name}} {{number:09d}}')
"""
FLOOR, US = "plain pipe", "jupyter_dist"
RIVALS = {"ipyparallel": "ipp", "nbdistributed": "nbd"}
RIVAL_SECONDS = 90.0
MAX_GROWTH = 64 << 20
MAX_STALL_MS = 200


def measure(options: Options) -> list[Table]:
    """One table; its notes have what was lost and what it cost."""
    title = f"{RANKS} ranks print {LINES:,} lines of 12 bytes each".replace(",", " ")
    table = Table(title, "s", FLOOR)
    with Driver("forked", sys.executable) as floor:
        if options.ours:
            with Server() as server:
                _floor_and_ours(floor, server, table, options.rounds)
        else:
            _floor(floor, table)
    if options.rivals:
        for system, module in RIVALS.items():
            try:
                _rival(system, module, table)
            except DriverError as error:
                note_failure([table], system, error)
    return [table]


def _floor(floor: Driver, table: Table) -> None:
    answer = floor.ask("flood", 120, ranks=RANKS, code=FLOOD)
    assert answer["bytes"] == [12 * LINES] * RANKS, answer
    table.row(FLOOR).values.append(answer["seconds"])


def _floor_and_ours(floor: Driver, server: Server, table: Table, rounds: int) -> None:
    client = Client(server)
    client.open_channel()
    group = client.start_group(RANKS)["id"]
    client.wait_ready(group)
    server.wait_for_warm_agent()
    client.cell(group, "for number in range(1000): print(number)")
    lost, growth, stalls = 0, {"server": 0, "agent": 0}, []
    for _ in range(rounds):
        _floor(floor, table)
        watched = {"server": server.pid, "agent": server.agent_of(group)}
        with MemoryWatch(watched) as memory, Stalls(server) as stall:
            began = time.perf_counter()
            execution = client.cell(group, FLOOD, 120)
            table.row(US).values.append(time.perf_counter() - began)
        growth = {name: max(growth[name], grown) for name, grown in memory.growth.items()}
        stalls.append(stall.longest * 1000)
        lost += _lost_lines(server.journal_of(group), execution["id"])
    table.row(US).note = f"{lost} lines lost; received {client.received_bytes / 1e6 / rounds:.1f} MB at the page"
    table.aim(f"no line lost, every byte as written: {lost} of {rounds * RANKS * LINES} lost", lost == 0)
    ratio, least = table.ratio(US), table.least_ratio(US)
    table.aim(f"at most 1.5x the pipe: {ratio:.2f}x (least against least {least:.2f}x)", min(ratio, least) <= 1.5)
    grown = ", ".join(f"{name} {size / 2**20:.0f} MiB" for name, size in growth.items())
    table.aim(f"memory grows by at most 64 MiB: {grown}", max(growth.values()) <= MAX_GROWTH)
    table.aim(
        f"the server answers within 200 ms all the time: slowest {max(stalls):.0f} ms", max(stalls) <= MAX_STALL_MS
    )
    client.close()


def _lost_lines(journal: Path, execution_id: str) -> int:
    """Lines of the flood that the journal does not have; all of a rank's where one byte differs."""
    found = {rank: hashlib.sha256() for rank in range(RANKS)}
    sizes = dict.fromkeys(found, 0)
    cursor = JournalCursor(journal)
    while records := cursor.read():
        for header, payload in chain.from_iterable(each_rank(record.header, record.payload) for record in records):
            if header["kind"] == "stream" and header["execution_id"] == execution_id:
                found[header["rank"]].update(payload)
                sizes[header["rank"]] += len(payload)
    cursor.close()
    lost = 0
    for rank, digest in found.items():
        if digest.digest() != _expected(rank):
            lost += max(1, LINES - sizes[rank] // 12)
    return lost


def _expected(rank: int) -> bytes:
    digest = hashlib.sha256()
    for number in range(LINES):
        digest.update(b"%d %09d\n" % (rank, number))
    return digest.digest()


def _rival(system: str, module: str, table: Table) -> None:
    with Driver(module, rivals.ensure()) as driver:
        driver.ask("start", 120, ranks=RANKS, code="pass", **({"join": False} if module == "ipp" else {}))
        answer = driver.ask("flood", RIVAL_SECONDS + 30, code=FLOOD, patience=RIVAL_SECONDS)
    row = table.row(system)
    row.values.append(answer["seconds"])
    lost = f"{LINES * RANKS - answer['lines']:,} lines lost".replace(",", " ")
    row.note = lost if answer["ended"] else f"stopped after {RIVAL_SECONDS:.0f} s, {lost} by then"


class Stalls:
    """How long the server takes to answer the smallest request, asked again and again."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.longest = 0.0

    def __enter__(self) -> Stalls:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(10)

    def _run(self) -> None:
        client = Client(self._server)
        while not self._stop.wait(0.05):
            began = time.perf_counter()
            client.get("/")
            self.longest = max(self.longest, time.perf_counter() - began)
        client.close()
