"""A cell that a notebook's user sends to ranks by a magic: through a real kernel, from the request to its idle."""

from __future__ import annotations

import sys
from contextlib import ExitStack

from benchmarks import rivals
from benchmarks.driver import Driver, DriverError
from benchmarks.options import Options
from benchmarks.tables import Table, note_failure

BODY = "x = 1 + 1"
FLOOR, US = "the kernel alone", "jupyter_dist, %%rank"
NBD, IPP = "nbdistributed, %%distributed", "ipyparallel, %%px"
WARM_UP_ROUNDS = 10
START_SECONDS = 120
RANKS = (1, 2, 4, 8)


def measure(options: Options) -> list[Table]:
    """A table for each number of ranks, up to that of the options; the rounds of all systems are interleaved."""
    return [_on(ranks, options) for ranks in RANKS if ranks <= options.ranks]


def _on(ranks: int, options: Options) -> Table:
    table = Table(f"`{BODY}` on {ranks} ranks by a cell magic, through a real kernel", "ms", FLOOR)
    systems = {FLOOR: ([], BODY)}
    if options.ours:
        systems[US] = (["%load_ext jupyter_dist", f"%dist_init -n {ranks} --accelerator cpu"], f"%%rank all\n{BODY}")
    if options.rivals:
        systems[NBD] = (["%load_ext nbdistributed", f"%dist_init -n {ranks}"], f"%%distributed\n{BODY}")
        cluster = f"import ipyparallel\ncluster = ipyparallel.Cluster(n={ranks}, log_level=40)"
        activate = f"client = cluster.start_and_connect_sync(n={ranks})\nclient[:].activate()"
        systems[IPP] = ([cluster, activate], f"%%px\n{BODY}")
    with ExitStack() as stack:
        kernels = {}
        for system, (cells, cell) in systems.items():
            python = sys.executable if system in (FLOOR, US) else rivals.ensure()
            try:
                driver = stack.enter_context(Driver("kernel", python))
                driver.ask("start", START_SECONDS, cells=cells, patience=START_SECONDS)
                kernels[system] = (driver, cell)
            except DriverError as error:
                note_failure([table], system, error)
        for number in range(WARM_UP_ROUNDS + options.rounds * 10):
            for system, (driver, cell) in kernels.items():
                seconds = driver.ask("cell", code=cell)["seconds"]
                if number >= WARM_UP_ROUNDS:
                    table.row(system).values.append(seconds * 1000)
    if options.ours and options.rivals:
        for system in (system for system in (NBD, IPP) if table.row(system).values):
            table.aim(f"faster than {system}: {1 / table.ratio(US, system):.1f}x", table.ratio(US, system) < 1)
    return table
