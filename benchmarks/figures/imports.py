"""What `import` costs in a kernel that has just started."""

from __future__ import annotations

import sys

from benchmarks import rivals
from benchmarks.driver import Driver
from benchmarks.options import Options
from benchmarks.tables import Table

CELL = """
import sys, time
began = time.perf_counter()
import {modules}
print(time.perf_counter() - began, "torch" in sys.modules)
"""
US = "jupyter_dist, with its client and magics"
OURS = "jupyter_dist, jupyter_dist.client, jupyter_dist.magics.extension"
RIVALS = {"nbdistributed": "nbdistributed, nbdistributed.magic", "ipyparallel": "ipyparallel"}
MAX_SECONDS = 0.2


def measure(options: Options) -> list[Table]:
    """A fresh kernel per round."""
    table = Table("`import` in a kernel that has just started", "s", "")
    with_torch = _rounds(table, US, OURS, sys.executable, options.rounds)
    row = table.row(US)
    held = row.minimum < MAX_SECONDS and not with_torch
    torch = "with torch" if with_torch else "without torch"
    table.aim(f"under {MAX_SECONDS} s, without torch: {row.median:.3f} s, {torch}", held)
    if options.rivals:
        for system, modules in RIVALS.items():
            imports_torch = _rounds(table, system, modules, rivals.ensure(), options.rounds)
            table.row(system).note = "imports torch" if imports_torch else ""
    return [table]


def _rounds(table: Table, system: str, modules: str, python: str, rounds: int) -> bool:
    with_torch = False
    with Driver("kernel", python) as driver:
        for number in range(rounds + 1):  # the first one writes bytecode, and fills the page cache
            driver.ask("start", 120, cells=[], patience=60)
            seconds, torch = driver.ask("cell", code=CELL.format(modules=modules))["said"].split()
            with_torch |= torch == "True"
            if number:
                table.row(system).values.append(float(seconds))
    return with_torch
