"""torch's flight recorder: which collective this rank began that has not completed. Any thread, 0.1 ms."""

from __future__ import annotations

from typing import Any, TypedDict

from . import torch_compat

_forgotten: set[int] = set()


class Collective(TypedDict):
    """One that was begun: what torch calls it, its process group and its number there."""

    name: str
    group: str
    seq: int


def outstanding() -> Collective | None:
    """Return the oldest collective that is not complete; None when all are, or torch does not tell."""
    if not any(begun > completed for begun, completed in torch_compat.collectives_by_group()):
        return None
    for entry in torch_compat.unfinished_collectives():
        if entry["record_id"] not in _forgotten:
            return _describe(entry)
    return None


def forget() -> None:
    """What is not complete now will never be: it was given up."""
    _forgotten.update(entry["record_id"] for entry in torch_compat.unfinished_collectives())


def _describe(entry: dict[str, Any]) -> Collective:
    return {"name": entry["name"], "group": entry["group"], "seq": entry["seq"]}
