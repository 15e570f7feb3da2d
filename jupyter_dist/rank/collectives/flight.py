"""torch's flight recorder: the collectives that this rank began and that have not completed. Any thread, 0.1 ms."""

from __future__ import annotations

from typing import TypedDict

from . import torch_compat

_forgotten: set[int] = set()


class Collective(TypedDict):
    """A collective that was begun: torch's name for it, its process group, and its number there."""

    name: str
    group: str
    seq: int


def outstanding() -> Collective | None:
    """Return the oldest incomplete collective; None if there is none, or torch does not say."""
    entry = oldest()
    return None if entry is None else {"name": entry["name"], "group": entry["group"], "seq": entry["seq"]}


def oldest() -> torch_compat.Entry | None:
    """Return the recorder's entry of the oldest incomplete collective, with shapes and types."""
    if not any(begun > completed for begun, completed in torch_compat.collectives_by_group()):
        return None
    return next((e for e in torch_compat.unfinished_collectives() if e["record_id"] not in _forgotten), None)


def forget() -> None:
    """Ignore collectives that are incomplete now: they were abandoned and will never complete."""
    _forgotten.update(entry["record_id"] for entry in torch_compat.unfinished_collectives())
