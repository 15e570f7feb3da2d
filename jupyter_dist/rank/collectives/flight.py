"""torch's flight recorder: the collectives that this rank began and that have not completed. Any thread, 0.1 ms."""

from __future__ import annotations

from . import torch_compat

_forgotten: set[int] = set()


def outstanding() -> torch_compat.Entry | None:
    """Return the oldest incomplete collective; None if there is none, or torch does not say."""
    if not any(begun > completed for begun, completed in torch_compat.collectives_by_group()):
        return None
    return next((e for e in torch_compat.unfinished_collectives() if e["record_id"] not in _forgotten), None)


def forget() -> None:
    """Ignore collectives that are incomplete now: they were abandoned and will never complete."""
    _forgotten.update(entry["record_id"] for entry in torch_compat.unfinished_collectives())
