"""An array of 256 MB to 4 ranks and back: beside memcpy of the same bytes, once."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np

from benchmarks import rivals
from benchmarks.calls import Call, asked, timed
from benchmarks.driver import Driver
from benchmarks.options import Options
from benchmarks.ours import Server
from benchmarks.tables import Row, Table
from jupyter_dist.client import connect

RANKS = 4
SIZE_BYTES = 256 << 20
FLOOR, NEW, US, IPP = "memcpy", "memcpy to new memory", "jupyter_dist", "ipyparallel"
READ = "int(x[::4096].sum())"
MIN_OF_MEMCPY, MIN_OF_IPP = 0.5, 5
COLD_ROUNDS = 3  # untouched memory is slow everywhere


def measure(options: Options) -> list[Table]:
    """Push, push and read a byte of every page, pull; the rounds of all are interleaved."""
    mb = f"{SIZE_BYTES >> 20} MB"
    tables = {
        "push": Table(f"push of {mb} to {RANKS} ranks", "ms", FLOOR),
        "push_and_read": Table(f"push of {mb} to {RANKS} ranks, and each reads a byte of every page", "ms", FLOOR),
        "pull": Table(f"pull of {mb} from a rank, which the client reads a byte of every page of", "ms", FLOOR),
    }
    array = np.random.default_rng(0).integers(0, 255, SIZE_BYTES, dtype=np.uint8)
    target = np.ones_like(array)
    floors = {FLOOR: timed(lambda: np.copyto(target, array)), NEW: timed(array.copy)}
    with ExitStack() as stack:
        systems = {name: dict.fromkeys(tables, call) for name, call in floors.items()}
        if options.ours:
            systems[US] = _ours(stack, array)
        if options.rivals:
            systems[IPP] = _theirs(stack, list(tables))
        for number in range(COLD_ROUNDS + options.rounds):
            for kind, table in tables.items():
                for system, calls in systems.items():
                    seconds = calls[kind]()
                    if number >= COLD_ROUNDS:
                        table.row(system).values.append(seconds * 1000)
    for kind, table in tables.items():
        _judge(table, kind, options)
    return list(tables.values())


def _ours(stack: ExitStack, array: np.ndarray) -> dict[str, Call]:
    server = stack.enter_context(Server())
    client = stack.enter_context(connect(f"http://127.0.0.1:{server.port}/", server.token))
    group = client.start("bench", num_ranks=RANKS, accelerator="cpu")
    group.run("import numpy")

    def push() -> None:
        group.push({"x": array})

    def push_and_read() -> None:
        group.push({"x": array})
        group.run(READ, check=True)

    def pull() -> None:
        assert group.pull("x")[::4096].sum() == group_sum

    group_sum = array[::4096].sum()
    return {"push": timed(push), "push_and_read": timed(push_and_read), "pull": timed(pull)}


def _theirs(stack: ExitStack, kinds: list[str]) -> dict[str, Call]:
    driver = stack.enter_context(Driver("ipp", rivals.ensure()))
    driver.ask("start", 120, ranks=RANKS, code="import numpy", join=False)
    driver.ask("hold", size_bytes=SIZE_BYTES)
    return {kind: asked(driver, kind, 120, read=READ) for kind in kinds}


def _judge(table: Table, kind: str, options: Options) -> None:
    for row in table.rows:
        row.note = f"{_gb_per_second(row):.2f} GB/s"
    if options.ours and kind != "push_and_read":
        ratio, least = 1 / table.ratio(US), 1 / table.least_ratio(US)
        text = f"at least {MIN_OF_MEMCPY}x memcpy: {ratio:.2f}x (best against best {least:.2f}x), "
        table.aim(f"{text}{1 / table.ratio(US, NEW):.2f}x memcpy to new memory", max(ratio, least) >= MIN_OF_MEMCPY)
    if options.ours and options.rivals:
        faster = 1 / table.ratio(US, IPP)
        table.aim(f"at least {MIN_OF_IPP}x ipyparallel: {faster:.1f}x", faster >= MIN_OF_IPP)


def _gb_per_second(row: Row) -> float:
    return SIZE_BYTES / row.median / 1e6
