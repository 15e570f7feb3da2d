"""Tensors of all ranks to disk and back: by us, and in cells by torch.save, torch.load and DCP, in turn.

`--megabytes` is the size on each rank, `--ranks` their number. Each round writes to an empty folder of the same disk.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.calls import timed
from benchmarks.options import Options
from benchmarks.ours import Server
from benchmarks.tables import Table
from jupyter_dist.client import Group, connect

US, TORCH, SYNCED, DCP = "jupyter_dist", "torch.save", "torch.save and fsync", "DCP"
LOAD = "torch.load"
PIECES = 100  # tensors on each rank: one of them is 1 %
MAX_OF_TORCH, MIN_FASTER = 1.3, 10

SETUP = """
import os
import torch.distributed.checkpoint as dcp
generator = torch.Generator().manual_seed(rank)
pieces = {{f"t{{i}}": torch.rand({numbers}, generator=generator) for i in range({pieces})}}
"""
SAVE = "torch.save(pieces, '{folder}/rank-%d.pt' % rank)"
SYNC = SAVE + "\nfd = os.open('{folder}/rank-%d.pt' % rank, os.O_RDONLY); os.fsync(fd); os.close(fd)"
DCP_SAVE = "_ = dcp.save({{f'{{rank}}.{{name}}': piece for name, piece in pieces.items()}}, checkpoint_id='{folder}')"
LOAD_CELL = "pieces = torch.load('{folder}/rank-%d.pt' % rank)"
DCP_LOAD = (
    "here = {{f'{{rank}}.{{name}}': torch.empty_like(piece) for name, piece in pieces.items()}}\n"
    "dcp.load(here, checkpoint_id='{folder}'); pieces = {{name.split('.')[1]: piece for name, piece in here.items()}}"
)
CHANGE = "pieces['t0'].uniform_()"


def measure(options: Options) -> list[Table]:
    """Save, save again with 1 % changed, and restore; the rounds of all are interleaved."""
    size = f"{options.ranks} ranks with {options.megabytes} MB each"
    saving = Table(f"saving {size}", "s", TORCH)
    again = Table(f"saving {size} again, of which 1 % changed", "s", TORCH)
    loading = Table(f"restoring {size}", "s", LOAD)
    place = Path(tempfile.mkdtemp(prefix="jupyter-dist-saves-", dir=Path.home()))
    try:
        with Server() as server, connect(f"http://127.0.0.1:{server.port}/", server.token) as client:
            group = client.start("bench", num_ranks=options.ranks, accelerator="cpu")
            numbers = options.megabytes * (1 << 20) // 4 // PIECES
            group.run(SETUP.format(numbers=numbers, pieces=PIECES), check=True)
            for number in range(options.rounds):
                folder = place / str(number)
                _round(group, folder, options, (saving, again, loading))
                shutil.rmtree(folder)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    _judge(saving, again, loading, options)
    return [saving, again, loading]


def _round(group: Group, folder: Path, options: Options, tables: tuple[Table, Table, Table]) -> None:
    saving, again, loading = tables

    def cell(code: str, name: str) -> float:
        (folder / name).mkdir(parents=True, exist_ok=True)
        return _alone(lambda: group.run(code.format(folder=folder / name), check=True))

    def save() -> float:
        return _alone(lambda: group.save("bench", folder=str(folder / "ours")))

    saving.row(TORCH).values.append(cell(SAVE, "torch"))
    saving.row(SYNCED).values.append(cell(SYNC, "synced"))
    if options.rivals:
        saving.row(DCP).values.append(cell(DCP_SAVE, "dcp"))
    saving.row(US).values.append(save())
    group.run(CHANGE, check=True)
    again.row(TORCH).values.append(cell(SAVE, "torch"))
    again.row(US).values.append(save())
    loading.row(LOAD).values.append(cell(LOAD_CELL, "torch"))
    if options.rivals:
        loading.row(DCP).values.append(cell(DCP_LOAD, "dcp"))
    loading.row(US).values.append(_alone(lambda: group.restore("bench", folder=str(folder / "ours"))))


def _alone(work: Callable[[], object]) -> float:
    """Measure work while nothing is left to write of what was before it, which a sync of the work would wait for."""
    os.sync()
    return timed(work)()


def _judge(saving: Table, again: Table, loading: Table, options: Options) -> None:
    if not options.ours:
        return
    for table, reference in ((saving, TORCH), (loading, LOAD)):
        ratio, least = table.ratio(US, reference), table.least_ratio(US, reference)
        text = f"at most {MAX_OF_TORCH}x {reference}: {ratio:.2f}x (best against best {least:.2f}x)"
        table.aim(text, min(ratio, least) <= MAX_OF_TORCH)
    faster = saving.row(US).median / again.row(US).median
    again.aim(f"at least {MIN_FASTER}x faster than the first: {faster:.1f}x", faster >= MIN_FASTER)
