"""How much a run does."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """Given on the command line."""

    ranks: int = 8
    rounds: int = 5  # of what takes seconds; a cell is measured 20 times as often
    rival_rounds: int = 2  # of what takes a rival many seconds of all cores
    megabytes: int = 1024  # on each rank, of what is saved
    rivals: bool = True
    ours: bool = True
    keeps: bool = True  # results and images are stored
