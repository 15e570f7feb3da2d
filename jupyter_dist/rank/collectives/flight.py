"""torch's flight recorder: the collectives that this rank began and that have not completed. Any thread, 0.1 ms."""

from __future__ import annotations

from typing import Any, TypedDict

from . import torch_compat

_forgotten: set[int] = set()


class Collective(TypedDict):
    """A collective that was begun: torch's name for it, its process group, and its number there."""

    name: str
    group: str
    seq: int


def outstanding() -> Collective | None:
    """Return the oldest incomplete collective; None if there is none, or torch does not say."""
    if not any(begun > completed for begun, completed in torch_compat.collectives_by_group()):
        return None
    for entry in torch_compat.unfinished_collectives():
        if entry["record_id"] not in _forgotten:
            return _describe(entry)
    return None


def forget() -> None:
    """Ignore collectives that are incomplete now: they were abandoned and will never complete."""
    _forgotten.update(entry["record_id"] for entry in torch_compat.unfinished_collectives())


def _describe(entry: dict[str, Any]) -> Collective:
    return {"name": entry["name"], "group": entry["group"], "seq": entry["seq"]}
