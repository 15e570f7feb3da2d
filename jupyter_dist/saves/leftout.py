"""What ranks could not save: equal entries of several ranks once. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jupyter_dist.protocol.ranks import RankSet

if TYPE_CHECKING:
    from jupyter_dist.protocol.models.saves import SavedName, SaveNote, Skipped

MAX_ENTRIES = 2000

OfRanks = Sequence[Sequence[Mapping[str, Any]]]  # a list of each rank, in the order of ranks


def merged_skipped(of_ranks: OfRanks) -> list[Skipped]:
    """Return the names that could not be saved."""
    return [
        {"name": name, "ranks": ranks, "reason": reason, "execution_count": count, "code": code}
        for (name, reason, count, code), ranks in _merged(of_ranks, ("name", "reason", "execution_count", "code"))
    ]


def merged_notes(of_ranks: OfRanks) -> list[SaveNote]:
    """Return the parts of other names that could not be saved."""
    return [
        {"name": name, "ranks": ranks, "reason": reason}
        for (name, reason), ranks in _merged(of_ranks, ("name", "reason"))
    ]


def merged_names(of_ranks: OfRanks) -> list[SavedName]:
    """Return the names that ranks would save."""
    return [{"name": name, "ranks": ranks} for (name,), ranks in _merged(of_ranks, ("name",))]


def _merged(of_ranks: OfRanks, fields: Sequence[str]) -> list[tuple[tuple[Any, ...], str]]:
    found: dict[tuple[Any, ...], list[int]] = {}
    for rank, entries in enumerate(of_ranks):
        for entry in entries:
            found.setdefault(tuple(entry.get(name) for name in fields), []).append(rank)
    return [(key, str(RankSet(ranks))) for key, ranks in list(found.items())[:MAX_ENTRIES]]
