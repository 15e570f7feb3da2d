"""`python -m benchmarks [figure ...]`: measure, print, keep."""

from __future__ import annotations

import argparse
import importlib

from . import machine, report
from .options import Options
from .processes import nothing_left

FIGURES = {
    "start": "start",
    "cell": "cell",
    "nodes": "nodes",
    "thousand": "thousand",
    "late": "late",
    "first": "first",
    "magics": "magics",
    "knowing": "knowing",
    "asking": "asking",
    "widgets": "widgets",
    "objects": "objects",
    "saves": "saves",
    "import": "imports",
    "flood": "flood",
    "stall": "stall",
    "idle": "idle",
    "keystroke": "keystroke",
    "notebook": "notebook",
    "timeline": "timeline",
    "adoption": "adoption",
    "resizing": "resizing",
    "memory": "memory",
    "past": "past",
    "growth": "growth",
    "endurance": "endurance",
    "faults": "faults",
    "hangs": "hangs",
    "undo": "undo",
    "slow": "slow",
    "checks": "checks",
    "watching": "watching",
}


def main() -> None:
    """Measure the figures named, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("figures", nargs="*", default=[], help=f"of {', '.join(FIGURES)}")
    parser.add_argument("--ranks", type=int, default=Options.ranks)
    parser.add_argument("--rounds", type=int, default=Options.rounds)
    parser.add_argument("--rival-rounds", type=int, default=Options.rival_rounds)
    parser.add_argument("--megabytes", type=int, default=Options.megabytes, help="on each rank, of what is saved")
    parser.add_argument("--no-rivals", action="store_true", help="us and the floor only")
    parser.add_argument("--only-rivals", action="store_true", help="the floor and the rivals only")
    parser.add_argument("--dry", action="store_true", help="print, and keep nothing")
    arguments = parser.parse_args()
    unknown = set(arguments.figures) - FIGURES.keys()
    if unknown:
        parser.error(f"unknown figures: {', '.join(sorted(unknown))}")
    options = Options(
        arguments.ranks,
        arguments.rounds,
        arguments.rival_rounds,
        arguments.megabytes,
        rivals=not arguments.no_rivals,
        ours=not arguments.only_rivals,
        keeps=not arguments.dry,
    )
    for name in arguments.figures or FIGURES:
        _measure(name, options, arguments.dry)


def _measure(name: str, options: Options, dry: bool) -> None:
    description = machine.describe()
    figure = importlib.import_module(f"benchmarks.figures.{FIGURES[name]}")
    with nothing_left():
        tables = figure.measure(options)
    for table in tables:
        print("\n" + table.markdown(), flush=True)
    if not dry:
        report.keep(name, description, tables)


if __name__ == "__main__":
    main()
