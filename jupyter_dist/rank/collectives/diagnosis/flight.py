"""The collectives that this rank began and that have not completed, by torch's flight recorders. Any thread, 0.2 ms."""

from __future__ import annotations

from jupyter_dist.rank.collectives import torch_compat

from . import records
from .records import IncompleteCollective

_forgotten: set[tuple[str, int]] = set()


def outstanding(backend: str | None = None) -> IncompleteCollective | None:
    """Return the oldest incomplete collective, of this backend if one is given; None if torch has none."""
    return next((entry for entry in unfinished() if backend is None or entry["backend"] == backend), None)


def unfinished() -> list[IncompleteCollective]:
    """Return all incomplete collectives, oldest first: also collectives that torch has given up at its time limit."""
    found = records.unfinished_collectives() if records.are_unfinished() else []
    if not found and torch_compat.gives_up_on_devices():
        found = records.abandoned_collectives()
    return [entry for entry in found if entry["record"] not in _forgotten]


def newest(number: int) -> list[IncompleteCollective]:
    """Return the collectives that were begun last, complete or not."""
    return records.all_collectives()[-number:]


def forget() -> None:
    """Ignore collectives that are incomplete now: they were abandoned and will never complete."""
    _forgotten.update(entry["record"] for entry in records.unfinished_collectives())
