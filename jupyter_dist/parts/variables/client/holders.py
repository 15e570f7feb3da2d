"""The holders of the memory of ranks: `group.variables().holders`, and their text; equal holders are listed once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jupyter_dist.client.answers.infos import HeldMemoryInfo
from jupyter_dist.client.answers.texts import format_bytes
from jupyter_dist.client.bundles.bundle import rank_label
from jupyter_dist.parts.variables.models import HeldMemory
from jupyter_dist.protocol.models.memory import MemoryHolder
from jupyter_dist.protocol.ranks import RankSet

MAX_LINES = 20


class MemoryHolders:
    """The holders of the memory of ranks: `holders[0]` is the HeldMemoryInfo of rank 0; `models` is the JSON."""

    def __init__(self, models: Sequence[HeldMemory], notes: Sequence[str] = ()) -> None:
        self.models = list(models)
        self._notes = notes

    def __iter__(self) -> Iterator[HeldMemoryInfo]:
        return map(HeldMemoryInfo, self.models)

    def __len__(self) -> int:
        return len(self.models)

    def __getitem__(self, rank: int) -> HeldMemoryInfo:
        found = next((one for one in self.models if one["rank"] == rank), None)
        if found is None:
            raise KeyError(f"Rank {rank} has not answered.")
        return HeldMemoryInfo(found)

    def __repr__(self) -> str:
        lines = [line for same in _alike(self.models) for line in _lines(same)]
        return "\n".join([*lines, *self._notes]) or "No rank has answered."


def _alike(models: Sequence[HeldMemory]) -> list[list[HeldMemory]]:
    """Put ranks together whose holders are the same."""
    alike: list[list[HeldMemory]] = []
    for one in models:
        same = next((known for known in alike if known[0]["holders"] == one["holders"]), None)
        if same is None:
            alike.append([one])
        else:
            same.append(one)
    return alike


def _lines(same: Sequence[HeldMemory]) -> Iterator[str]:
    first = same[0]
    ranks = rank_label(str(RankSet(one["rank"] for one in same)))
    holders = first["holders"][:MAX_LINES]
    each = " on each" if len(same) > 1 else ""
    yield f"[{ranks}] {format_bytes(first['bytes'])} held{each}; {_counters(same)}"
    width = max((len(one["name"]) for one in holders), default=0)
    yield from (
        f"  {one['name']:{width}}  {format_bytes(one['bytes']):>9}  {_details(one)}".rstrip() for one in holders
    )
    if more := len(first["holders"]) - len(holders) + first["left_out"]:
        yield f"  and {more} smaller"
    if not first["is_whole"]:
        yield "  Lists of many objects were not looked at to their ends."


def _counters(same: Sequence[HeldMemory]) -> str:
    """Return the largest counters: these are never quite the same on two ranks."""
    up_to = "up to " if len(same) > 1 else ""
    allocated = [one["allocated_bytes"] for one in same if one["allocated_bytes"] is not None]
    if allocated:
        reserved = max(one["reserved_bytes"] or 0 for one in same)
        return f"{up_to}{format_bytes(max(allocated))} allocated, {format_bytes(reserved)} reserved"
    return f"{up_to}{format_bytes(max(one['resident_bytes'] for one in same))} of host memory"


def _details(one: MemoryHolder) -> str:
    parts = ", ".join(f"{name} {format_bytes(size)}" for name, size in one["parts"].items())
    shared = f"shared with {', '.join(one['also'])}" if one["also"] else ""
    return "; ".join(filter(None, (one["type"], parts, shared)))
